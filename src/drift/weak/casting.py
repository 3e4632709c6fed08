"""Let rules vote on texts, piece by piece, in one process or in several."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from drift.errors import DataError, DriftError, LabelError
from drift.settings import nearest
from drift.weak.checking import Checked, all_cases
from drift.weak.matching import matcher
from drift.weak.python_rule import PythonRule
from drift.weak.schema import Condition

ABSTAIN = -1
TEXTS_PER_BATCH = 20_000  # texts that one process votes on at a time


def cast_votes(
    rules: Checked,
    texts: Sequence[Any],
    columns: Mapping[str, Sequence[Any]],
    *,
    jobs: int,
    tick: Callable[[int], object] | None,
    first_row: int,
) -> np.ndarray:
    """Votes (N, M), in the order of texts and rules; see `RuleSet.votes`."""
    pieces = (
        (
            rules,
            texts[start : start + TEXTS_PER_BATCH],
            {name: values[start : start + TEXTS_PER_BATCH] for name, values in columns.items()},
            first_row + start,
        )
        for start in range(0, len(texts), TEXTS_PER_BATCH)
    )
    small = len(rules.classes) <= np.iinfo(np.int8).max
    votes = np.empty((len(texts), len(rules.rules)), dtype=np.int8 if small else np.int16)
    done = 0
    for part in _in_order(pieces, jobs if len(texts) > TEXTS_PER_BATCH else 1):
        votes[done : done + len(part)] = part
        done += len(part)
        if tick is not None:
            tick(len(part))
    return votes


def _in_order(pieces: Iterable[tuple[Any, ...]], jobs: int) -> Iterator[np.ndarray]:
    if jobs == 1:
        return (_piece_votes(*piece) for piece in pieces)
    from joblib import Parallel, delayed

    found: Iterator[np.ndarray] = Parallel(n_jobs=jobs, return_as="generator")(
        delayed(_piece_votes)(*piece) for piece in pieces
    )
    return found


def _piece_votes(
    rules: Checked, given: Sequence[Any], columns: Mapping[str, Sequence[Any]], first_row: int
) -> np.ndarray:
    texts = [_text(value, first_row + row) for row, value in enumerate(given)]
    filled = np.array([bool(text) for text in texts], dtype=bool)
    codes = {name: code for code, name in enumerate(rules.classes)}
    cases = [(place, case) for place, rule in enumerate(rules.rules) for case in all_cases(rule)]
    conditions = tuple(condition for _, case in cases for condition in (case, case.unless or Condition()))
    holds = matcher(conditions, rules.strip_punctuation)(texts)  # (N, 2 K): of each case what it asks, and its unless
    votes = np.full((len(texts), len(rules.rules)), ABSTAIN, dtype=np.int64)
    for number, (place, case) in reversed([*enumerate(cases)]):  # the first that holds is set last
        asked = holds[:, 2 * number] if case.asks() else True
        votes[filled & asked & ~holds[:, 2 * number + 1], place] = codes[str(case.label)]
    for place, rule in enumerate(rules.rules):
        if isinstance(rule, PythonRule):
            answers: Iterable[Any] = (_answer(rule, text, first_row + row) for row, text in enumerate(texts))
            votes[:, place] = list(_coded(answers, codes, f"rule {rule.name!r} voted", first_row))
        elif rule.column is not None:
            votes[:, place] = list(_coded(columns[rule.column], codes, f"column {rule.column!r} has", first_row))
    return votes


def _text(value: Any, row: int) -> str:
    if isinstance(value, str):
        return value
    if is_missing(value):
        return ""
    raise DataError(f"row {row + 1}: the text is {value!r}, a {type(value).__name__}; give texts as strings")


def is_missing(value: Any) -> bool:
    """None, an empty string, NaN, or what pandas has for them, which cannot be compared."""
    if isinstance(value, str):
        return not value
    return value is None or str(value) in ("nan", "<NA>", "NaT")


def _answer(rule: PythonRule, text: str, row: int) -> str | None:
    try:
        return rule(text) if text else None
    except DriftError:
        raise
    except Exception as error:
        raise DataError(f"row {row + 1}: rule {rule.name!r} failed ({type(error).__name__}: {error})") from error


def _coded(values: Iterable[Any], codes: Mapping[str, int], seen: str, first_row: int) -> Iterator[int]:
    for row, value in enumerate(values):
        if is_missing(value):
            yield ABSTAIN
        elif (code := codes.get(str(value))) is not None:
            yield code
        else:
            raise LabelError(f"row {first_row + row + 1}: {seen} {value!r}{nearest(str(value), codes)}")
