"""What the page shows, as plain data: a question, the progress, a part of the list, suspected label errors."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from drift.annotate.answers import Answer, classes_of
from drift.annotate.questions import Question
from drift.annotate.session import Annotation
from drift.errors import ConfigError

PAGE_ROWS = 50
EXCERPT = 400  # characters of a text in the list
LOW = 0.6  # a prediction below this is of low confidence
FILTERS = ("all", "labelled", "unlabelled", "low", "flagged", "noted", "skipped", "differs", "changed")
SORTS = ("row", "least sure", "most sure")
MOST_SHOWN = 20  # changed predictions


def question_view(session: Annotation, question: Question | None) -> dict[str, Any] | None:
    """A text to label, with what else is known about it."""
    if question is None:
        return None
    return {**asdict(question), **session.pool.details(question.row), **marks_of(session, question.row)}


def text_view(session: Annotation, row: int) -> dict[str, Any]:
    """A text that was chosen by the person, not by the session."""
    with session.lock:
        question = session.describe(row)
        return {**asdict(question), **session.pool.details(row), **marks_of(session, row)}


def marks_of(session: Annotation, row: int) -> dict[str, Any]:
    """What the person said about a text: label, flag, note; and the noisy labels that it has."""
    state = session.state
    mark = state.marks.get(row)
    return {
        "label": None if mark is None else session.pool.named(mark.answer, session.names),
        "given": mark is not None and mark.by == "given",
        "flag": row in state.flags,
        "note": state.notes.get(row, ""),
        "skipped": row in state.skipped,
        "votes": session.pool.votes_on(row),
    }


def progress_view(session: Annotation) -> dict[str, Any]:
    """Everything beside the text: classes, counts, the estimate, the curve, advice and changed predictions."""
    with session.lock:
        state, current = session.state, session.current
        labelled = [number for mark in state.marks.values() for number in classes_of(mark.answer)]
        counts = np.bincount(np.array(labelled, dtype=np.int64), minlength=len(state.classes))
        shares = {} if current is None else current.shares(state)
        at = session.estimate()
        verdict, sentence = session.advice()
        return {
            "version": state.version,
            "unit": session.pool.unit,
            "texts": len(session.texts),
            "usable": len(session.pool.usable),
            "labels": len(state.marks),
            "skipped": len(state.skipped),
            "flagged": len(state.flags),
            "training": session.training,
            "rounds": len(state.rounds),
            "can_undo": state.can_undo,
            "classes": [
                {
                    "name": each.name,
                    "guideline": each.guideline,
                    "labels": int(counts[each.id]),
                    "share": shares.get(each.id),
                }
                for each in state.active
            ],
            "estimate": asdict(at),
            "audit_every": session.audit_every,
            "curve": [each.content() for each in state.rounds],
            "advice": {"verdict": verdict, "text": sentence},
            "changed": [_changed(session, *each) for each in session.flips[:MOST_SHOWN]],
            "changed_count": len(session.flips),
            "sources": list(session.pool.weak),
            "initial": session.shows_initial,
        }


def list_view(session: Annotation, query: Mapping[str, str]) -> dict[str, Any]:
    """One page of the texts that match: query has search, class, show, sort and page."""
    show, sort = query.get("show", "all"), query.get("sort", "row")
    if show not in FILTERS or sort not in SORTS:
        raise ConfigError(f"show is one of {', '.join(FILTERS)}, sort one of {', '.join(SORTS)}")
    with session.lock:
        state, current = session.state, session.current
        keep = _kept(session, show)
        name = query.get("class", "")
        sure = None if current is None else current.sure(state)
        if name:
            keep &= _of_class(session, name)
        rows = np.flatnonzero(keep)
        if sort != "row" and sure is not None:
            rows = rows[np.argsort(sure[rows] if sort == "least sure" else -sure[rows], kind="stable")]
    needle = query.get("search", "").casefold().strip()
    if needle:  # outside of the lock: it reads every text
        rows = np.array([row for row in rows.tolist() if needle in session.folded(row)], dtype=np.int64)
    page = max(0, int(query.get("page", "0") or 0))
    shown = rows[page * PAGE_ROWS : (page + 1) * PAGE_ROWS].tolist()
    with session.lock:
        return {
            "count": len(rows),
            "page": page,
            "pages": max(1, -(-len(rows) // PAGE_ROWS)),
            "rows": [_list_row(session, row) for row in shown],
        }


def errors_view(session: Annotation) -> dict[str, Any]:
    """Labels that are probably wrong, the most suspicious first."""
    with session.lock:
        found = [
            {
                "row": row,
                "text": excerpt(session.texts[row]),
                **_answers(session, row, predicted, p),
                **marks_of(session, row),
            }
            for row, predicted, p in session.suspects()
        ]
        return {"rows": found, "judged": session.judged}


def excerpt(text: str) -> str:
    """The beginning of a text, for a list."""
    line = " ".join(text[: 2 * EXCERPT].split())
    return line if len(line) <= EXCERPT and len(text) <= 2 * EXCERPT else f"{line[:EXCERPT]}…"


def _list_row(session: Annotation, row: int) -> dict[str, Any]:
    current, text = session.current, excerpt(session.texts[row])
    predicted, confidence = None, None
    if current is not None:
        answer, confidence = current.answer(row, session.state)
        predicted = session.pool.named(answer, session.names)
    return {"row": row, "text": text, **_answers(session, row, predicted, confidence), **marks_of(session, row)}


def _answers(session: Annotation, row: int, predicted: Any, confidence: float | None) -> dict[str, Any]:
    """The prediction for a row as data, and both it and the label as lines of text."""
    mark = session.state.marks.get(row)
    label = None if mark is None else session.pool.named(mark.answer, session.names)
    return {
        "predicted": predicted,
        "confidence": confidence,
        "shown_prediction": None if predicted is None else session.pool.shown(row, predicted),
        "shown_label": None if label is None else session.pool.shown(row, label),
    }


def _kept(session: Annotation, show: str) -> np.ndarray:
    """Flags of the rows that a filter shows, `(n,)`."""
    state, current = session.state, session.current
    flags = np.zeros(len(session.texts), dtype=bool)
    if show == "all":
        flags[:] = True
    elif show in ("labelled", "flagged", "noted", "skipped"):
        names: dict[str, dict[int, Any]] = {
            "labelled": state.marks,
            "flagged": state.flags,
            "noted": state.notes,
            "skipped": state.skipped,
        }
        flags[list(names[show])] = True
    elif show == "changed":
        flags[[row for row, *_ in session.flips]] = True
    else:
        flags[session.pool.usable] = True
        if show != "differs":
            flags[list(state.marks)] = False
        if show == "low":
            flags &= np.zeros_like(flags) if current is None else current.sure(state) < LOW
        elif show == "differs":
            flags &= _differs(session)
    return flags


def _differs(session: Annotation) -> np.ndarray:
    """Rows whose label, or else prediction, is not what a noisy label says, `(n,)`."""
    state, current, pool, names = session.state, session.current, session.pool, session.names
    answers: list[Answer | None] = [None] * len(session.texts)
    if current is not None:
        answers = [answer for answer, _ in current.answers(state)]
    for row, mark in state.marks.items():
        answers[row] = mark.answer
    shown = [None if answer is None else pool.named(answer, names) for answer in answers]
    differs = np.zeros(len(shown), dtype=bool)
    for votes in pool.weak.values():
        pairs = zip(votes, shown, strict=True)
        differs |= np.array([None not in (vote, name) and vote != name for vote, name in pairs], dtype=bool)
    return differs


def _of_class(session: Annotation, name: str) -> np.ndarray:
    """Rows with this class in their label or, if they have none, in their prediction, `(n,)`."""
    state, current = session.state, session.current
    found = state.find(name)
    if found is None:
        raise ConfigError(f"{name!r} is not a class")
    flags = np.zeros(len(session.texts), dtype=bool) if current is None else current.has(found.id, state)
    flags[list(state.marks)] = [found.id in classes_of(mark.answer) for mark in state.marks.values()]
    return flags


def _changed(session: Annotation, row: int, before: Answer, after: Answer) -> dict[str, Any]:
    old, new = (session.pool.shown(row, session.pool.named(answer, session.names)) for answer in (before, after))
    return {"row": row, "text": excerpt(session.texts[row])[:120], "before": old, "after": new}
