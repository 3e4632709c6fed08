"""A late encoder answers as the encoder does, and is not read before it is needed."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch

from drift.models.embedding import Embedder
from drift.models.encoders import load_encoder
from drift.models.late_encoder import LateEncoder, late_encoder, read_encoder
from tests.runs.small import small_encoder, small_fit, small_table

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
TEXTS = small_table(6)["body"]


@pytest.fixture
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    return small_encoder(tmp_path / "encoder")


def test_it_answers_as_the_encoder_does(name: str) -> None:
    encoder, tokenizer = load_encoder(name)
    late, same_tokenizer = late_encoder(name)
    inputs = tokenizer(TEXTS, padding=True, return_tensors="pt")
    assert inputs["input_ids"].equal(same_tokenizer(TEXTS, padding=True, return_tensors="pt")["input_ids"])
    for each in (late, copy.deepcopy(late), pickle.loads(pickle.dumps(late))):
        assert isinstance(each, LateEncoder)
        assert each.config.hidden_size == encoder.config.hidden_size
        with torch.inference_mode():
            assert torch.equal(each(**inputs).last_hidden_state, encoder(**inputs).last_hidden_state)
        assert read_encoder(each) is each.read()
    assert read_encoder(encoder) is encoder


def test_vectors_from_the_cache_read_no_weights(name: str) -> None:
    first = Embedder(name, max_length=32, loaded=late_encoder(name)).embed(TEXTS).vectors
    loaded = late_encoder(name)
    again = Embedder(name, max_length=32, loaded=loaded).embed(TEXTS).vectors
    assert (first == again).all()
    assert isinstance(loaded[0], LateEncoder)
    assert not loaded[0]._read


@pytest.mark.parametrize("option", [{"self_contained": True}, {"onnx": True}], ids=str)
def test_a_run_from_the_cache_can_still_be_written_whole(name: str, tmp_path: Path, option: dict[str, bool]) -> None:
    table = pd.DataFrame(small_table(24, labeled=8))
    runs = [small_fit(table, name, out=tmp_path / out, **option) for out in ("cold", "warm")]
    files = [sorted(str(p.relative_to(run.path)) for p in (run.path / "model").rglob("*")) for run in runs]  # type: ignore[operator]
    assert files[0] == files[1]
    assert runs[0].predict(["team goal", "a new text"]) == runs[1].predict(["team goal", "a new text"])


def test_a_warm_fit_imports_neither_the_architecture_nor_the_compiler(name: str, tmp_path: Path) -> None:
    """Each takes a second or two: of the encoder's code, torch's compiler and its sharding."""
    pd.DataFrame(small_table(24, labeled=8)).to_csv(tmp_path / "table.csv", index=False)
    code = f"""
import sys
import drift
for out in sys.argv[1:]:
    settings = {{"training": {{"initial_steps": 3, "steps": 3, "trackers": ()}}, "model": {{"max_length": 32}}}}
    drift.fit({str(tmp_path / "table.csv")!r}, out=out, model={name!r}, label="topic", quiet=True, settings=settings)
print(*(n for n in ("torch._dynamo", "torch.distributed.tensor", "transformers.models.bert.modeling_bert")
        if n in sys.modules))
"""
    printed = []
    for out in ("cold", "warm"):
        command = [sys.executable, "-c", code, str(tmp_path / out)]
        printed.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    assert "transformers.models.bert.modeling_bert" in printed[0]
    assert printed[1] == []
