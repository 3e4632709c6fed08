"""Runs from the names of entity types."""

import os
from pathlib import Path

import pandas
import pytest

from drift.tasks.tokens.data import read_token_data
from drift.tasks.tokens.settings import TokenDataSettings
from tests.runs.small import small_fit
from tests.runs.small_tokens import small_word_encoder

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
ENCODER = Path(os.environ.get("DRIFT_MODELS") or "nowhere") / "paraphrase-MiniLM-L3-v2"
pytestmark = pytest.mark.skipif(
    not ENCODER.is_dir(), reason="set DRIFT_MODELS to a folder with paraphrase-MiniLM-L3-v2"
)
NAMES = ["London", "Paris", "Berlin", "Madrid", "Peter", "Mary", "John", "Susan"]
TABLE = {"tokens": [f"we saw {name} in the street .".split() for name in NAMES]}
CLASSES = {"LOC": ("city",), "PER": ("person",)}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))


def test_a_run_learns_from_names_alone(tmp_path: Path) -> None:
    settings = {"data": {"names_encoder": str(ENCODER)}}
    encoder = small_word_encoder(tmp_path / "encoder")
    run = small_fit(pandas.DataFrame(TABLE), encoder, task="tokens", classes=CLASSES, settings=settings)
    assert run.classes == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    assert run.metrics["label_budget"]["total"] == 0
    assert any("class names tag 4 of 8 distinct capitalised phrases" in note for note in run.notes)


def test_names_speak_where_other_weak_tags_do_not() -> None:
    noisy = [[None, None, "B-PER" if name == "London" else None, "B-LOC", None, None, None] for name in NAMES]
    settings = TokenDataSettings(weak="weak", classes=CLASSES, names_encoder=str(ENCODER))
    data = read_token_data(settings, {"train": pandas.DataFrame({**TABLE, "weak": noisy})}, seed=0)
    assert data.weak is not None
    tags = data.weak.reshape(len(NAMES), 7)
    assert (tags[:, [0, 1, 4, 5, 6]] == data.classes.index("O")).all()
    assert (tags[:, 3] == data.classes.index("B-LOC")).all()
    assert tags[0, 2] == data.classes.index("B-PER")
