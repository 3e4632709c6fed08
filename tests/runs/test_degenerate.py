"""Sizes at the edge, on texts, tokens and vectors: each trains and predicts, or is refused in one line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drift import DriftClassifier
from drift.errors import DataError, DriftError, LabelError
from drift.runs.result import Run
from tests.runs.small import small_encoder, small_fit, small_table
from tests.runs.small_tokens import Table, small_sentences, small_word_encoder, write_jsonl

pandas = pytest.importorskip("pandas")
pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("encoders")


@pytest.fixture(scope="module")
def encoder(folder: Path) -> str:
    return small_encoder(folder / "texts")


@pytest.fixture(scope="module")
def word_encoder(folder: Path) -> str:
    return small_word_encoder(folder / "words")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))


def blank(labels: list[str], rows: int) -> list[str | None]:
    """These labels, and no label for the rest of the rows."""
    return [*labels, *[None] * (rows - len(labels))]


def texts(rows: int) -> list[str]:
    return list(small_table(rows)["body"])


BOTH = ["money", "sport"]
TEXTS: dict[str, tuple[list[str], list[Any]]] = {
    "more than 1,000 classes": (texts(2200), [f"class {row % 1100}" for row in range(2200)]),
    "1,100 classes with one label each": (texts(1200), blank([f"class {row}" for row in range(1100)], 1200)),
    "one label per class": (texts(100), blank(BOTH, 100)),
    "100 rows": (texts(100), blank(BOTH * 10, 100)),
    "one class with a single label": (texts(100), blank(["money"] * 49 + ["sport"], 100)),
    "every row labelled": (texts(40), BOTH * 20),
    "two rows": (texts(2), BOTH),
    "one text many times": (["stock market"] * 60, blank(BOTH * 5, 60)),
    "some empty texts": (["", " "] * 10 + texts(40), blank(BOTH * 15, 60)),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str, encoder: str, tmp_path: Path) -> None:
    bodies, labels = TEXTS[name]
    table = pandas.DataFrame({"text": bodies, "label": labels})
    run = small_fit(
        table, encoder, test=table.dropna(), out=tmp_path / "run", training={"initial_steps": 2, "steps": 2}
    )
    expected = sorted({label for label in labels if label is not None})
    assert run.metrics["classes"] == expected
    probabilities = np.asarray(run.predict_proba(["stock market", ""]))
    assert probabilities.shape == (2, len(expected))
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-5)
    assert run.metrics["label_budget"]["train"] == sum(label is not None for label in labels)


@pytest.mark.parametrize(
    ("bodies", "labels", "message"),
    [
        (["", " "] * 5, BOTH * 5, "column 'text' has no text in any row"),
        (texts(50), blank(["money"] * 5, 50), "every label is 'money'; a classifier needs at least two classes"),
        (texts(1), ["money"], "every label is 'money'"),
        (texts(50), blank([], 50), "none of the 50 rows has a label"),
    ],
    ids=["no text", "labels of one class", "one row", "no label"],
)
def test_texts_that_are_refused(bodies: list[str], labels: list[Any], message: str, encoder: str) -> None:
    with pytest.raises(DriftError, match=message) as error:
        small_fit(pandas.DataFrame({"text": bodies, "label": labels}), encoder, text="text", label="label")
    assert "\n" not in str(error.value)


def test_most_of_the_test_rows_may_be_of_a_class_without_labels(encoder: str) -> None:
    table = small_table(30)
    test = pandas.DataFrame({"body": texts(9), "topic": ["weather"] * 5 + BOTH * 2})
    run = small_fit(pandas.DataFrame(table), encoder, test=test, text="body", label="topic")
    assert run.metrics["test"]["baselines"]["majority class"]["accuracy"] == pytest.approx(2 / 9)


def test_an_unknown_label_among_many_classes_is_a_short_message(encoder: str) -> None:
    bodies, labels = TEXTS["more than 1,000 classes"]
    table = pandas.DataFrame({"text": bodies, "label": labels})
    with pytest.raises(LabelError, match=r"label 'other' is not among .* \(1,100 in all\)") as error:
        small_fit(table, encoder, dev=pandas.DataFrame({"text": ["stock"], "label": ["other"]}))
    assert len(str(error.value)) < 600


def test_labels_of_one_class_are_enough_if_the_classes_are_named(encoder: str) -> None:
    table = pandas.DataFrame({"text": texts(60), "label": blank(["money"] * 5, 60)})
    seed_words = {"money": ["bank", "stock"], "sport": ["team", "goal"]}
    settings = {"method": {"seed_words": seed_words, "documents": 10, "min_count": 1}}
    run = small_fit(table, encoder, method="westclass", settings=settings)
    assert run.metrics["classes"] == ["money", "sport"]


def tagged(rows: int, tag: Any) -> Table:
    return {"tokens": [["london", "in"] for _ in range(rows)], "tags": [[tag(row), "O"] for row in range(rows)]}


def joined(tokens: list[list[str]], tags: list[Any], rows: int) -> Table:
    """These sentences, and others without tags."""
    return {"tokens": tokens + small_sentences(rows)["tokens"], "tags": tags + [None] * rows}


TOKENS: dict[str, Table] = {
    "more than 1,000 tags": tagged(1200, lambda row: f"B-T{row % 600}"),
    "one word per type": joined([["london"], ["john"]], [["B-LOC"], ["B-PER"]], 30),
    "100 sentences": small_sentences(100, labeled=20),
    "one type with a single word": joined([["john"]] + [["london", "in"]] * 20, [["B-PER"]] + [["B-LOC", "O"]] * 20, 9),
    "every sentence tagged": small_sentences(30),
    "one type": tagged(20, lambda row: "B-LOC"),
    "one sentence": tagged(1, lambda row: "B-LOC"),
    "one sentence many times": tagged(40, lambda row: ("B-LOC", "B-PER")[row % 2]),
    "some empty sentences": joined([[], ["london"]] * 5, [[], ["B-LOC"]] * 5, 9),
}


def token_fit(table: Table, encoder: str, folder: Path, **options: Any) -> Run:
    column = "tags" if "tags" in table else "ner_tags"
    kept = [row for row, tags in enumerate(table[column]) if tags]
    test = write_jsonl(folder / "test.jsonl", {name: [table[name][row] for row in kept[:20]] for name in table})
    train = write_jsonl(folder / "train.jsonl", table)
    return small_fit(train, encoder, task="tokens", test=test, out=folder / "run", **options)


@pytest.mark.parametrize("name", TOKENS)
def test_tokens(name: str, word_encoder: str, tmp_path: Path) -> None:
    run = token_fit(TOKENS[name], word_encoder, tmp_path, training={"initial_steps": 2, "steps": 2})
    predicted = run.predict([["john", "in", "london"], ["x"]])
    assert [len(tags) for tags in predicted] == [3, 1]
    assert {tag for tags in predicted for tag in tags} <= set(run.metrics["classes"])


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (tagged(10, lambda row: "O"), LabelError, "no word has a tag other than O"),
        ({"tokens": [[]] * 5, "tags": [[]] * 5}, DataError, "has no tokens in it"),
    ],
    ids=["only O", "no words"],
)
def test_tokens_that_are_refused(
    table: Table, error: type[DriftError], message: str, word_encoder: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message) as raised:
        small_fit(write_jsonl(tmp_path / "train.jsonl", table), word_encoder, task="tokens")
    assert "\n" not in str(raised.value)


def unlabelled(labels: Any, rows: int) -> np.ndarray:
    return np.concatenate([labels, np.full(rows - len(labels), -1)]).astype(int)


VECTORS: dict[str, np.ndarray] = {
    "more than 1,000 classes": np.arange(2200) % 1100,
    "1,100 classes with one label each": unlabelled(np.arange(1100), 1200),
    "one label per class": unlabelled([0, 1], 100),
    "one class with a single label": unlabelled([0] * 49 + [1], 100),
    "every row labelled": np.arange(100) % 3,
    "two rows": np.array([0, 1]),
}


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("copies", [False, True], ids=["different rows", "copies of one row"])
def test_vectors(name: str, copies: bool) -> None:
    y = VECTORS[name]
    X = np.ones((len(y), 4)) if copies else np.random.default_rng(0).normal(size=(len(y), 4))
    model = DriftClassifier(initial_steps=3, steps=3, random_state=0).fit(X, y)
    assert model.classes_.tolist() == sorted(set(y.tolist()) - {-1})
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-5)
    if copies:
        np.testing.assert_allclose(probabilities, np.broadcast_to(probabilities[:1], probabilities.shape), atol=1e-6)


@pytest.mark.parametrize("y", [[0] * 5 + [-1] * 5, [-1] * 10, [0] * 10], ids=["one class", "no label", "all one class"])
def test_vectors_that_are_refused(y: list[int]) -> None:
    with pytest.raises(LabelError) as error:
        DriftClassifier().fit(np.random.default_rng(0).normal(size=(10, 4)), y)
    assert "\n" not in str(error.value)
