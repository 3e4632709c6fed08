"""A run folder names its encoder and checks it; a self-contained one travels; vectors of the fit are not recomputed."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

import drift
from drift.errors import FileError
from drift.models import embedding
from drift.models.precision import computes_bfloat16
from tests.runs.small import STEPS, small_encoder, small_table, write_csv

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")

SETTINGS = {"training": STEPS, "model": {"max_length": 32}}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    return Path(small_encoder(tmp_path / "encoder"))


def fit(tmp_path: Path, encoder: Path, **options: Any) -> Any:
    table = write_csv(tmp_path / "train.csv", small_table(24, labeled=8))
    common = {"label": "topic", "text": "body", "seeds": 2, "quiet": True, "settings": SETTINGS}
    return drift.fit(table, out=tmp_path / "run", model=str(encoder), **common, **options)


def test_a_run_refers_to_its_encoder_and_says_so(tmp_path: Path, encoder: Path) -> None:
    run = fit(tmp_path, encoder)
    model = tmp_path / "run" / "model"
    assert not list(model.rglob("model.safetensors"))
    assert not (model / "model.onnx").exists()
    assert sum("--self-contained" in note for note in run.record.notes) == 1
    stored = json.loads((model / "drift.json").read_text())["encoder"]
    assert stored["name"] == str(encoder)
    precision = "bfloat16" if computes_bfloat16() else "float32"
    assert (stored["precision"], stored["copied"], stored["revision"]) == (precision, False, None)
    texts = ["team goal", "stock price fund"]
    np.testing.assert_array_equal(drift.load(tmp_path / "run").predict_proba(texts), run.predict_proba(texts))


def test_another_encoder_of_that_name_is_refused_in_one_line(tmp_path: Path, encoder: Path) -> None:
    fit(tmp_path, encoder)
    weights = load_file(encoder / "model.safetensors")
    weights["embeddings.LayerNorm.bias"] += 0.1
    save_file(weights, encoder / "model.safetensors", {"format": "pt"})
    with pytest.raises(FileError, match=r"trained on .* with checksum .* but the one on this machine has") as caught:
        drift.load(tmp_path / "run")
    assert "\n" not in str(caught.value)
    shutil.rmtree(encoder)
    with pytest.raises(FileError, match="the encoder of the run is missing"):
        drift.load(tmp_path / "run")


def test_other_files_of_the_encoder_may_change(tmp_path: Path, encoder: Path) -> None:
    run = fit(tmp_path, encoder)
    config = json.loads((encoder / "config.json").read_text())
    (encoder / "config.json").write_text(json.dumps({**config, "transformers_version": "99"}))
    texts = ["team goal"]
    np.testing.assert_array_equal(drift.load(tmp_path / "run").predict_proba(texts), run.predict_proba(texts))


def test_a_self_contained_folder_travels(tmp_path: Path, encoder: Path) -> None:
    pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'drift-ssl[text]'")
    run = fit(tmp_path, encoder, self_contained=True)
    shutil.move(tmp_path / "run", tmp_path / "elsewhere")
    shutil.rmtree(encoder)
    shutil.rmtree(tmp_path / "cache")
    assert (tmp_path / "elsewhere" / "model" / "model.onnx").is_file()
    texts = ["team goal", "stock price fund"]
    np.testing.assert_allclose(
        drift.load(tmp_path / "elsewhere").predict_proba(texts), run.predict_proba(texts), atol=1e-6
    )


@pytest.mark.parametrize("self_contained", [False, True])
def test_predict_evaluate_and_suggest_embed_only_new_texts(
    tmp_path: Path, encoder: Path, monkeypatch: pytest.MonkeyPatch, self_contained: bool
) -> None:
    fit(tmp_path, encoder, self_contained=self_contained, onnx=False)
    seen: list[int] = []
    compute = embedding.text_vectors

    def counted(encoder: Any, ids: Any, mask: Any, pool: str) -> Any:
        seen.append(len(ids))
        return compute(encoder, ids, mask, pool)

    monkeypatch.setattr(embedding, "text_vectors", counted)
    table = small_table(30, labeled=20)  # the first 24 texts are those of the fit
    path = write_csv(tmp_path / "more.csv", table)
    known = write_csv(tmp_path / "known.csv", small_table(24))
    drift.predict(tmp_path / "run", known)
    drift.evaluate(tmp_path / "run", known)
    assert seen == []
    drift.predict(tmp_path / "run", path)
    assert sum(seen) == len(set(table["body"][24:]) - set(table["body"][:24]))
    seen.clear()
    drift.suggest(tmp_path / "run", path, n=2)
    assert seen == []
