"""Augmented texts from each source, as a method receives them."""

from pathlib import Path
from typing import Any

import pytest
import torch

from drift.data.augmentation import AugmentationSettings, replaced_words
from drift.data.examples import Labeled, Vectors
from drift.data.tokenized import silent
from drift.errors import DataError
from drift.methods.augmented import augmented, views_of
from drift.methods.materials import Texts
from drift.models.translation import back_translated
from tests.models.test_translation import small_translator
from tests.runs.small import small_table

TEXTS = small_table(10)["body"]


def texts(**columns: list[str]) -> Texts:
    def encode(texts: Any) -> Vectors:
        return Vectors(torch.tensor([[float(len(text))] for text in texts]))

    labeled = Labeled(encode(TEXTS), torch.arange(4), torch.tensor([0, 1, 0, 1]))
    return Texts(TEXTS, ["money", "sport"], labeled, False, encode, (7, 8), silent, columns)


def test_words_are_replaced_anew_for_each_view() -> None:
    views = views_of(AugmentationSettings(views=3, replace=0.5), texts())
    assert views == [replaced_words(TEXTS, 0.5, seed=(7, view)) for view in range(3)]
    assert views[0] != views[1]


def test_views_are_encoded_row_by_row() -> None:
    how = AugmentationSettings(views=2)
    materials = augmented(how, texts())
    assert materials.labeled is None
    for view, examples in zip(views_of(how, texts()), materials.views, strict=True):
        assert examples.inputs(torch.arange(10)).flatten().tolist() == [len(text) for text in view]


def test_blank_cells_have_the_text_itself() -> None:
    said, heard = ["again"] * 9 + [" "], [""] + ["aloud"] * 9
    views = views_of(AugmentationSettings(column=("said", "heard")), texts(said=said, heard=heard))
    assert views == [["again"] * 9 + TEXTS[9:], [*TEXTS[:1], *["aloud"] * 9]]


def test_a_column_of_blanks_is_refused() -> None:
    with pytest.raises(DataError, match="column 'said' is blank in every row"):
        views_of(AugmentationSettings(column=("said",)), texts(said=[""] * 10))


def test_translations_are_there_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    models = small_translator(tmp_path / "there", "marian"), small_translator(tmp_path / "back", "t5")
    (view,) = views_of(AugmentationSettings(translation=models, temperature=1.5), texts())
    expected = back_translated(TEXTS, *models, temperature=1.5, seed=(7, 0))
    assert view == [other if other.strip() else text for other, text in zip(expected, TEXTS, strict=True)]
    assert view != TEXTS
