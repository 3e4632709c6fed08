"""A session on sentences: entities are labelled, predicted, judged and written; the same journal and the same rules."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drift
from drift.annotate.answers import OUTSIDE
from drift.annotate.entities import entities_of
from drift.annotate.finish import write_labels
from drift.annotate.journal import Journal
from drift.annotate.word_heads import DOUBTFUL, most_doubtful
from drift.data.sentences import read_sentences
from drift.errors import ConfigError, LabelError, StateError

NAMES, PLACES, OTHERS = ["Ada", "Max", "Eva"], ["Rome", "Oslo"], ["went", "to", "saw", "and", "in"]
TYPES = ["person", "place"]


def made(rows: int = 60, seed: int = 0) -> tuple[list[list[str]], np.ndarray, list[list[tuple[int, int, str]]]]:
    """Sentences, vectors of their words that show the type of each, and their entities."""
    generator = np.random.default_rng(seed)
    sentences, vectors, gold = [], [], []
    for _ in range(rows):
        codes = generator.choice(3, size=generator.integers(3, 9), p=[0.6, 0.2, 0.2])
        words = [str(generator.choice((OTHERS, NAMES, PLACES)[code])) for code in codes]
        sentences.append(words)
        vectors.append(3 * np.eye(6)[codes] + 0.6 * generator.normal(size=(len(codes), 6)))
        spans = entities_of(np.where(codes == 0, OUTSIDE, codes - 1))
        gold.append([(start, end, TYPES[number]) for start, end, number in spans])
    return sentences, np.concatenate(vectors).astype(np.float32), gold


def opened(rows: int = 60, **options: Any) -> tuple[drift.Annotation, list[list[tuple[int, int, str]]]]:
    sentences, vectors, gold = made(rows)
    return drift.Annotation(sentences, TYPES, task="tokens", vectors=vectors, **options), gold


def answer(session: drift.Annotation, gold: list[Any], count: int) -> list[int]:
    rows = []
    for _ in range(count):
        question = session.next()
        assert question is not None
        session.label(question.row, gold[question.row])
        rows.append(question.row)
    return rows


def right(session: drift.Annotation, gold: list[Any]) -> float:
    return float(np.mean([found == label for (found, _), label in zip(session.predictions(), gold, strict=True)]))


def test_a_model_learns_entities_from_a_few_sentences() -> None:
    session, gold = opened()
    question = session.next()
    assert question.words == tuple(session.pool.sentences.tokens[question.row])
    assert question.guess is None
    rows = answer(session, gold, 25)
    session.train()
    assert right(session, gold) > 0.8
    assert session.labels()[rows[0]] == gold[rows[0]]
    estimate = session.estimate()
    assert estimate.audited >= 5
    assert estimate.low <= right(session, gold) <= estimate.high
    question = session.next()
    assert isinstance(question.guess, list)
    assert 0 < question.confidence <= 1


def test_the_audit_is_judged_by_heads_that_did_not_see_the_sentence() -> None:
    """With vectors that say nothing, heads that had seen a sentence would still be right about it."""
    sentences, _, gold = made(50)
    size = sum(map(len, sentences))
    unique = np.random.default_rng(1).normal(size=(size, 200)).astype(np.float32)
    session = drift.Annotation(sentences, TYPES, task="tokens", vectors=unique)
    answer(session, gold, 40)
    session.train()
    seen = [row for row, label in enumerate(session.labels()) if label is not None]
    fitted = np.mean([session.predictions()[row][0] == gold[row] for row in seen])
    assert session.estimate().accuracy < fitted


def test_suspected_errors_are_found() -> None:
    session, gold = opened(80)
    rows = answer(session, gold, 40)
    wrong = next(row for row in rows if any(name == "person" for *_, name in gold[row]))
    flipped = {"person": "place", "place": "person"}
    session.label(wrong, [(start, end, flipped[name]) for start, end, name in gold[wrong]])
    session.train()
    assert session.suspects()[0][:2] == (wrong, gold[wrong])


def test_a_restart_goes_on_where_it_was(tmp_path: Path) -> None:
    session, gold = opened(journal=tmp_path / "j")
    answer(session, gold, 8)
    session.add_class("event")
    session.label(3, [(0, 1, "event")])
    session.merge_class("event", "place")
    session.accept([5, 6])
    session.undo()
    with pytest.raises(StateError, match="another drift annotate"):
        opened(journal=tmp_path / "j")
    before = session.labels()
    session.close()
    again, _ = opened(journal=tmp_path / "j")
    assert again.labels() == before
    assert again.labels()[3] == [(0, 1, "place")]
    again.undo()  # of the merge: the entity has its own class again
    assert again.labels()[3] == [(0, 1, "event")]
    again.close()
    with pytest.raises(StateError, match="another task"):
        Journal(tmp_path / "j", {"texts": json.loads((tmp_path / "j").read_text().split("\n")[0])["texts"], "task": ""})


def test_predictions_are_accepted_at_once() -> None:
    session, gold = opened()
    with pytest.raises(StateError, match="no prediction"):
        session.accept([0])
    answer(session, gold, 20)
    free = [row for row, label in enumerate(session.labels()) if label is None][:5]
    predicted = [session.predictions()[row][0] for row in free]
    session.accept(free)
    assert [session.labels()[row] for row in free] == predicted
    session.undo()
    assert [session.labels()[row] for row in free] == [None] * 5


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ([(0, 99, "person")], "not within"),
        ([(0, 2, "person"), (1, 3, "place")], "overlaps"),
        ([(0, 1, "animal")], "not a class"),
        ([(0, 0, "person")], "not within"),
        ("person", "list of entities"),
        ([(0, 1)], "list of entities"),
    ],
)
def test_labels_that_do_not_fit_are_refused(label: Any, message: str) -> None:
    session, _ = opened()
    with pytest.raises(LabelError, match=message):
        session.label(0, label)
    assert session.labels()[0] is None


def test_what_the_table_has_is_where_it_goes_on(tmp_path: Path) -> None:
    sentences, vectors, gold = made(40)
    tags = [["O"] * len(words) for words in sentences]
    for row, spans in enumerate(gold):
        for start, end, name in spans:
            tags[row][start:end] = [f"B-{name}", *[f"I-{name}"] * (end - start - 1)]
    lines = [
        {"id": row, "tokens": words, "labels": tags[row] if row < 4 else None, "weak": tags[row] if row < 30 else None}
        for row, words in enumerate(sentences)
    ]
    lines.insert(5, {"id": -1, "tokens": [], "labels": None, "weak": None})  # left out, but written again
    file = tmp_path / "s.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    session = drift.Annotation(file, task="tokens", weak=["weak"], vectors=vectors)
    assert session.classes == TYPES
    assert session.labels()[:5] == [*gold[:4], None]
    assert session.shows_initial
    assert session.predictions()[25][0] == gold[25]  # as the noisy labels say
    session.label(20, gold[20])
    session.flag(21)
    session.note(21, "odd")
    options = write_labels(session, tmp_path / "out.jsonl")
    assert options == ["--task", "tokens", "--tokens", "tokens", "--label", "labels"]
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["id"] for line in written] == [line["id"] for line in lines]
    assert written[5] == {**lines[5], "row": None, "flag": None, "note": None}
    assert written[22]["flag"] == "flag"
    assert written[22]["note"] == "odd"
    again = read_sentences(tmp_path / "out.jsonl", label="labels", weak="")
    assert [row for row, found in enumerate(again.labels) if found is not None] == [0, 1, 2, 3, 20]
    assert all(found in (None, tags[row]) for row, found in enumerate(again.labels))


def test_texts_with_spans_and_conll_files_are_written_as_they_are_read(tmp_path: Path) -> None:
    texts = ["Ada Byron lived in London.", "  No name here", "Max"]
    vectors = np.random.default_rng(0).normal(size=(6 + 3 + 1, 4)).astype(np.float32)
    session = drift.Annotation(texts, TYPES, task="tokens", vectors=vectors)
    assert session.pool.details(1) == {"words": ["No", "name", "here"], "gaps": ["  ", " ", " ", ""]}
    session.label(0, [(0, 2, "person"), (4, 5, "place")])
    session.label(1, [])
    write_labels(session, tmp_path / "out.jsonl")
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert [texts[0][each["start"] : each["end"]] for each in first["spans"]] == ["Ada Byron", "London"]
    again = drift.Annotation(tmp_path / "out.jsonl", task="tokens", vectors=vectors)
    assert again.labels() == [[(0, 2, "person"), (4, 5, "place")], [], None]
    assert write_labels(session, tmp_path / "out.conll") == ["--task", "tokens"]
    other = drift.Annotation(tmp_path / "out.conll", task="tokens", vectors=vectors)
    assert other.labels() == again.labels()


def test_tables_that_cannot_hold_entities_are_refused(tmp_path: Path) -> None:
    session, _ = opened()
    with pytest.raises(ConfigError, match="entities are lists"):
        session.pool.check_out(tmp_path / "labels.csv")
    with pytest.raises(ConfigError, match="one of text, tokens"):
        drift.Annotation(["a"], task="token")


def test_long_sentences_are_not_favoured() -> None:
    sizes = np.array([3, 0, 12])
    values = np.concatenate([[0.9, 0.3, 0.3], np.full(12, 0.5)])
    assert most_doubtful(values, sizes) == pytest.approx([0.5, 0, 0.5])
    assert DOUBTFUL == 5


def test_training_in_another_process_is_used_too() -> None:
    session, gold = opened(background=True)
    try:
        answer(session, gold, 12)
        session.train()
        assert session.wait(120)
        assert right(session, gold) > 0.6
    finally:
        session.close()
