"""Sessions: actions and their undo, going on after a restart, learning, clients, and starts from other labels."""

import io
from pathlib import Path

import numpy as np
import pytest

import drift
from drift.annotate.messages import receive, send
from drift.errors import ConfigError, FileError, LabelError, StateError
from tests.annotate.small import CLASSES, answer, clusters, session


def snapshot(opened: drift.Annotation) -> tuple[object, ...]:
    state = opened.state
    return opened.labels(), opened.classes, dict(state.flags), dict(state.notes), dict(state.skipped)


def test_the_model_learns_and_the_audit_measures_it() -> None:
    opened, codes = session(300)
    asked = answer(opened, codes, 60)
    assert len(set(asked)) == 60  # no text is asked about twice
    predicted = [name for name, _ in opened.predictions()]
    accuracy = np.mean([name == CLASSES[code] for name, code in zip(predicted, codes, strict=True)])
    assert accuracy > 0.9
    at = opened.estimate()
    assert at.audited >= 60 // 5 - 1  # the first texts had no prediction
    assert at.low <= accuracy <= at.high
    assert opened.state.rounds[-1].labels > 50


def test_undo_takes_back_every_kind_of_action() -> None:
    opened, codes = session()
    answer(opened, codes, 6)
    state = [snapshot(opened)]
    question = opened.next()
    assert question is not None
    actions = [
        lambda: opened.label(question.row, "bug"),
        lambda: opened.label(question.row, "praise"),
        lambda: opened.label_many([50, 51, 52], "question"),
        lambda: opened.flag([question.row, 50]),
        lambda: opened.note(3, "odd"),
        lambda: opened.note(3, ""),
        lambda: opened.add_class("spam", "adverts"),
        lambda: opened.rename_class("spam", "junk"),
        lambda: opened.label(60, "junk"),
        lambda: opened.merge_class("junk", "bug"),
        lambda: opened.set_guideline("bug", "it is broken"),
        lambda: opened.skip(70),
        lambda: opened.label(60, None),
    ]
    for action in actions:
        action()
        state.append(snapshot(opened))
    for before in reversed(state[:-1]):
        opened.undo()
        assert snapshot(opened) == before


def test_the_text_whose_label_was_undone_is_asked_about_again() -> None:
    opened, codes = session()
    answer(opened, codes, 4)
    audit = opened.next()
    assert audit is not None
    assert audit.audit
    opened.label(audit.row, "bug")
    assert opened.next().row != audit.row
    opened.undo()
    again = opened.next()
    assert (again.row, again.audit) == (audit.row, True)
    for _ in range(4):
        opened.undo()
    assert opened.labels() == [None] * 90
    with pytest.raises(StateError, match="nothing to undo"):
        opened.undo()


def test_a_restart_gives_the_same_state(tmp_path: Path) -> None:
    opened, codes = session(journal=tmp_path / "j")
    answer(opened, codes, 12)
    opened.skip(opened.next().row)
    opened.rename_class("praise", "thanks")
    opened.add_class("spam")
    opened.merge_class("spam", "bug")
    opened.flag(5)
    opened.undo()
    opened.note(7, "ä\n<b>")
    before, at, rounds = snapshot(opened), opened.estimate(), opened.state.rounds[:]
    opened.close()
    again, _ = session(journal=tmp_path / "j")
    assert snapshot(again) == before
    assert again.classes == ["bug", "thanks", "question"]  # the old names on the command line add nothing
    assert again.state.rounds[: len(rounds)] == rounds
    assert again.estimate().audited == at.audited
    again.undo()  # goes back over the restart
    assert 7 not in again.state.notes


def test_one_file_has_one_session(tmp_path: Path) -> None:
    opened, _ = session(journal=tmp_path / "j")
    with pytest.raises(StateError, match="another drift annotate"):
        session(journal=tmp_path / "j")
    opened.close()
    with pytest.raises(StateError, match="closed"):
        opened.label(0, "bug")
    session(journal=tmp_path / "j")[0].close()


def test_clients_get_different_texts_and_keep_theirs() -> None:
    opened, codes = session()
    one, two = opened.next("one"), opened.next("two")
    assert one.row != two.row
    assert opened.next("one") == one  # with the same reason
    opened.label(one.row, CLASSES[codes[one.row]])
    assert opened.next("two").row == two.row
    assert opened.next("one").row not in (one.row, two.row)


def test_every_text_is_asked_about_once_and_then_none() -> None:
    texts, vectors, _ = clusters(20)
    texts[3] = "  "  # nothing to read
    opened = drift.Annotation(texts, CLASSES, vectors=vectors)
    rows = []
    while (question := opened.next()) is not None:
        rows.append(question.row)
        if len(rows) % 4:
            opened.label(question.row, CLASSES[len(rows) % 2])
        else:
            opened.skip(question.row)
    assert sorted(rows) == [row for row in range(20) if row != 3]


def test_a_wrong_label_is_suspected() -> None:
    opened, codes = session(150)
    rows = answer(opened, codes, 45)
    wrong = next(row for row in rows if codes[row] == 0)
    opened.label(wrong, "question")
    opened.train()
    row, predicted, confidence = opened.suspects()[0]
    assert (row, predicted) == (wrong, "bug")
    assert confidence > 0.5


def test_labels_of_the_table_are_where_it_goes_on(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    texts, vectors, codes = clusters(60)
    labels = [CLASSES[code] if row < 20 else None for row, code in enumerate(codes)]
    frame = pandas.DataFrame({"body": texts, "topic": labels})
    opened = drift.Annotation(frame, text="body", label="topic", vectors=vectors, journal=tmp_path / "j")
    assert opened.labels() == labels
    assert opened.next().row >= 20
    assert opened.predictions()[0] is not None  # it has learned from them
    opened.label(0, CLASSES[(codes[0] + 1) % 3])
    opened.close()
    again = drift.Annotation(frame, text="body", label="topic", vectors=vectors, journal=tmp_path / "j")
    assert again.labels()[:2] == [CLASSES[(codes[0] + 1) % 3], labels[1]]


def test_noisy_labels_predict_until_the_model_is_better() -> None:
    pandas = pytest.importorskip("pandas")
    texts, vectors, codes = clusters(200)
    half = [CLASSES[code if code != 2 else 1] for code in codes]  # never says question
    frame = pandas.DataFrame({"text": texts, "weak": half})
    opened = drift.Annotation(frame, CLASSES, label="", weak=["weak"], vectors=vectors)
    assert opened.shows_initial
    first = np.mean([name == CLASSES[c] for (name, _), c in zip(opened.predictions(), codes, strict=True)])
    assert first < 0.8
    answer(opened, codes, 40)
    opened.train()
    assert not opened.shows_initial
    assert np.mean([name == CLASSES[c] for (name, _), c in zip(opened.predictions(), codes, strict=True)]) > first


def test_merged_classes_share_predictions_and_labels() -> None:
    opened, codes = session()
    answer(opened, codes, 30)
    opened.merge_class("praise", "bug")
    assert set(filter(None, opened.labels())) == {"bug", "question"}
    assert {name for name, _ in opened.predictions()} == {"bug", "question"}
    opened.label(0, "praise")  # the old name still finds the class
    assert opened.labels()[0] == "bug"


def test_mistakes_are_one_line() -> None:
    opened, _ = session()
    with pytest.raises(LabelError, match="not a class"):
        opened.label(0, "nonsense")
    with pytest.raises(LabelError, match="rows 0 to 89"):
        opened.label(90, "bug")
    with pytest.raises(ConfigError, match="already"):
        opened.add_class(" bug ")
    with pytest.raises(ConfigError, match="itself"):
        opened.merge_class("bug", "bug")
    with pytest.raises(ConfigError, match="list of names"):
        drift.Annotation(["a", "b"], "bug, praise")
    assert opened.state.can_undo is False  # none of them left a trace


def test_a_label_that_cannot_be_written_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, _ = session(journal=tmp_path / "j")
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(FileError, match="not saved"):
            opened.label(0, "bug")
    assert opened.labels()[0] is None
    opened.label(1, "bug")
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(FileError, match="not saved"):
            opened.undo()
    assert opened.labels()[:2] == [None, "bug"]
    opened.undo()
    assert opened.labels()[:2] == [None, None]
    opened.label(1, "bug")
    opened.close()
    assert session(journal=tmp_path / "j")[0].labels()[:2] == [None, "bug"]


def test_training_in_another_process_is_used_too() -> None:
    opened, codes = session(120, background=True)
    try:
        opened.label_many(np.flatnonzero(codes == 0)[:5].tolist(), "bug")
        opened.label_many(np.flatnonzero(codes == 1)[:5].tolist(), "praise")
        opened.train()
        assert opened.wait(120)
        right = [name == CLASSES[c] for (name, _), c in zip(opened.predictions(), codes, strict=True) if c < 2]
        assert np.mean(right) > 0.8
        opened._learner._process.kill()  # it is started again, and learns from the next labels
        opened.label_many(np.flatnonzero(codes == 2)[:5].tolist(), "question")
        opened.train()
        assert opened.wait(120)
        assert opened.classes[int(codes[0])] in CLASSES
    finally:
        opened.close()


def test_a_target_that_is_reached_is_good_enough() -> None:
    opened, codes = session(120)
    answer(opened, codes, 60)
    opened.train()
    assert opened.advice()[0] != "enough"
    opened.target = opened.estimate().low
    assert opened.advice()[0] == "enough"
    assert opened.advice(1.0)[0] != "enough"


def test_messages_between_the_processes_are_whole_or_nothing() -> None:
    stream = io.BytesIO()
    arrays = {
        "p": np.arange(6, dtype=np.float32).reshape(2, 3),
        "names": np.array(["a", "ü"]),
        "none": np.empty((0, 3)),
    }
    send(stream, {"number": 3}, **arrays)
    whole = stream.getvalue()
    message, got = receive(io.BytesIO(whole))
    assert message == {"number": 3}
    assert all(np.array_equal(got[name], array) for name, array in arrays.items())
    assert receive(io.BytesIO(whole[:-1])) is None
    assert receive(io.BytesIO(b"")) is None
