"""Cast the votes of rules on texts, batch by batch, in one process or several."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from drift.errors import DataError, DriftError, LabelError
from drift.settings import nearest
from drift.weak.checking import CheckedRules, all_cases
from drift.weak.matching import matcher
from drift.weak.python_rule import PythonRule
from drift.weak.schema import Condition

ABSTAIN = -1
TEXTS_PER_BATCH = 20_000  # texts that one process votes on at a time


def cast_votes(
    rules: CheckedRules,
    texts: Sequence[Any],
    columns: Mapping[str, Sequence[Any]],
    *,
    n_jobs: int,
    tick: Callable[[int], object] | None,
    first_row: int,
) -> np.ndarray:
    """Votes (N, M) of M rules on N texts; see `RuleSet.votes` for the parameters."""
    batches = (
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
    for batch_votes in _in_order(batches, n_jobs if len(texts) > TEXTS_PER_BATCH else 1):
        votes[done : done + len(batch_votes)] = batch_votes
        done += len(batch_votes)
        if tick is not None:
            tick(len(batch_votes))
    return votes


def _in_order(batches: Iterable[tuple[Any, ...]], n_jobs: int) -> Iterator[np.ndarray]:
    """The votes on each batch, in the order of the batches."""
    if n_jobs == 1:
        return (_batch_votes(*batch) for batch in batches)
    from joblib import Parallel, delayed

    results: Iterator[np.ndarray] = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_batch_votes)(*batch) for batch in batches
    )
    return results


def _batch_votes(
    rules: CheckedRules, values: Sequence[Any], columns: Mapping[str, Sequence[Any]], first_row: int
) -> np.ndarray:
    texts = [_text(value, first_row + row) for row, value in enumerate(values)]
    filled = np.array([bool(text) for text in texts], dtype=bool)
    codes = {name: code for code, name in enumerate(rules.classes)}
    cases = [(column, case) for column, rule in enumerate(rules.rules) for case in all_cases(rule)]
    conditions = tuple(condition for _, case in cases for condition in (case, case.unless or Condition()))
    holds = matcher(conditions, rules.strip_punctuation)(texts)  # (N, 2 K): for each case, its condition and its unless
    votes = np.full((len(texts), len(rules.rules)), ABSTAIN, dtype=np.int64)
    for number, (column, case) in reversed([*enumerate(cases)]):  # backwards: the first case that holds is set last
        condition_holds = holds[:, 2 * number] if case.asks() else True
        votes[filled & condition_holds & ~holds[:, 2 * number + 1], column] = codes[str(case.label)]
    for column, rule in enumerate(rules.rules):
        if isinstance(rule, PythonRule):
            answers: Iterable[Any] = (_answer(rule, text, first_row + row) for row, text in enumerate(texts))
            votes[:, column] = list(_coded(answers, codes, f"rule {rule.name!r} voted", first_row))
        elif rule.column is not None:
            votes[:, column] = list(_coded(columns[rule.column], codes, f"column {rule.column!r} has", first_row))
    return votes


def _text(value: Any, row: int) -> str:
    if isinstance(value, str):
        return value
    if is_missing(value):
        return ""
    raise DataError(f"row {row + 1}: the text is {value!r}, a {type(value).__name__}; give texts as strings")


def is_missing(value: Any) -> bool:
    """Whether a value is None, an empty string, NaN or one of pandas' missing values, which cannot be compared."""
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


def _coded(values: Iterable[Any], codes: Mapping[str, int], source: str, first_row: int) -> Iterator[int]:
    """Class names as codes, missing ones as `ABSTAIN`. source: the beginning of the message about an unknown name."""
    for row, value in enumerate(values):
        if is_missing(value):
            yield ABSTAIN
        elif (code := codes.get(str(value))) is not None:
            yield code
        else:
            raise LabelError(f"row {first_row + row + 1}: {source} {value!r}{nearest(str(value), codes)}")
