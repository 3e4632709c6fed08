"""Explanations: left-out words against a model whose effects are known, and neighbours against sorting."""

from pathlib import Path

import numpy as np
import pytest

from drift.errors import FileError
from drift.tasks.explaining import Explanation, LabeledRows, occlusion, pieces

WEIGHTS = {"bank": 2.0, "goal": -1.5, "rate": 0.25}


def bag_of_words(texts: list[str]) -> np.ndarray:
    """The log-odds of the first class are the sum of the weights of the words."""
    logit = np.array([sum(WEIGHTS.get(word, 0.0) for word in text.split()) for text in texts])
    p = 1 / (1 + np.exp(-logit))
    return np.stack([p, 1 - p], 1)


def test_the_effect_of_a_word_is_its_weight_in_a_linear_model() -> None:
    text = "the bank has  a goal, no rate"
    words = occlusion(text.replace(",", " "), 0, bag_of_words([text.replace(",", " ")])[0, 0], bag_of_words, 9)
    assert [(word.text, word.effect) for word in words] == [("bank", 2.0), ("rate", 0.25)]
    assert all(text[word.start : word.end] == word.text for word in words)
    against = occlusion("a bank a goal", 1, bag_of_words(["a bank a goal"])[0, 1], bag_of_words, 1)
    assert [(word.text, word.effect) for word in against] == [("goal", 1.5)]
    assert occlusion("...", 0, 0.5, bag_of_words, 3) == []


def test_certain_predictions_have_finite_effects() -> None:
    words = occlusion("a b", 0, 1.0, lambda texts: np.array([[0.0, 1.0]] * len(texts)), 5)
    assert len(words) == 2
    assert all(np.isfinite(word.effect) for word in words)


def test_pieces_cover_every_word_and_are_few() -> None:
    text = "it's a well-known word, isn’t it? " * 30
    whole = pieces(text, 10_000)
    assert [text[a:b] for a, b in whole[:4]] == ["it's", "a", "well-known", "word"]
    few = pieces(text, 7)
    assert len(few) <= 7
    assert few[0][0] == whole[0][0]
    assert few[-1][1] == whole[-1][1]
    assert all(any(a <= start and end <= b for a, b in few) for start, end in whole)


@pytest.fixture
def rows() -> LabeledRows:
    vectors = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    return LabeledRows(vectors, list(range(1, 21)), [f"text {n} é" for n in range(20)], ["a", "b"] * 10)


def test_the_nearest_rows_are_those_with_the_largest_cosine(rows: LabeledRows, tmp_path: Path) -> None:
    rows.save(tmp_path / "labeled.safetensors")
    opened = LabeledRows.load(tmp_path / "labeled.safetensors")
    x = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
    norms = np.linalg.norm(x, axis=1)[:, None] * np.linalg.norm(rows.vectors, axis=1)
    expected = np.argsort(-(x @ rows.vectors.T) / norms, axis=1)[:, :3] + 1
    found = opened.nearest(x, 3)
    assert [[each.row for each in own] for own in found] == expected.tolist()
    assert all(each.text == f"text {each.row - 1} é" for own in found for each in own)
    assert opened.nearest(x[:, :2], 3) == [[]] * 5  # vectors of another encoder
    assert [len(own) for own in opened.nearest(x, 50)] == [20] * 5


def test_a_damaged_file_is_one_line(rows: LabeledRows, tmp_path: Path) -> None:
    file = tmp_path / "labeled.safetensors"
    for damage in (b"", b"nonsense", None):
        LabeledRows(rows.vectors, rows.rows[:3] if damage is None else rows.rows, rows.texts, rows.labels).save(file)
        if damage is not None:
            file.write_bytes(damage)
        with pytest.raises(FileError) as error:
            LabeledRows.load(file)
        assert len(str(error.value).splitlines()) == 1


def test_cells_of_a_table() -> None:
    whole = Explanation.model_validate(
        {
            "text": "a bank",
            "label": "money",
            "confidence": 0.9,
            "words": [{"text": "bank", "start": 2, "end": 6, "effect": 2.0}],
            "nearest": [{"row": 3, "text": "the bank", "label": "money", "cosine": 0.75}],
        }
    )
    assert whole.cells() == ("bank 2.00", "money 0.75 (row 3): the bank")
