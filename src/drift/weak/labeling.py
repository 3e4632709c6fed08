"""Weak labels for texts in memory: the Python twin of `drift label`."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drift.data.tables import read_chunks
from drift.errors import DataError
from drift.settings import nearest
from drift.weak.casting import ABSTAIN
from drift.weak.diagnostics import Summary, summarize
from drift.weak.given import as_list, as_rules
from drift.weak.python_rule import PythonRule
from drift.weak.rules import RuleSet
from drift.weak.schema import Rule, Ties
from drift.weak.votes import majority


@dataclass(frozen=True)
class WeakLabels:
    """What the rules say of texts."""

    votes: np.ndarray  # (N, M): the place of a class in `classes`, or ABSTAIN
    labels: list[str | None]
    classes: tuple[str, ...]
    summary: Summary


def label(
    texts: Any,
    rules: RuleSet | Sequence[Mapping[str, Any] | Rule | PythonRule] | str | os.PathLike[str],
    *,
    text: str = "text",
    gold: str | Sequence[Any] | None = None,
    ties: Ties | None = None,
    seed: int | np.random.Generator = 0,
    jobs: int = 1,
    tick: Callable[[int], object] | None = None,
    first_row: int = 0,
) -> WeakLabels:
    """Vote on texts by rules, and make one weak label a text of the votes, by majority.

    texts: a sequence of strings, or a table: a dict of columns, a DataFrame, a Dataset.
    rules: a RuleSet, a list of what one is made of, or the path of a file with rules.
    text: the column of the texts, in a table. gold: right labels, or the column that holds them; measured against only.
    ties: instead of what the rules say. seed: of ties broken at random. jobs, tick, first_row: as in `RuleSet.votes`.
    """
    rules = as_rules(rules, RuleSet)
    columns = _columns(texts)
    if columns is not None:
        for name in (text, gold) if isinstance(gold, str) else (text,):
            if name not in columns:
                known = [str(each) for each in columns]
                raise DataError(f"the table has no column {name!r}{nearest(name, known)}")
        texts = as_list(columns[text], f"column {text!r}")
        gold = columns[gold] if isinstance(gold, str) else gold
    elif isinstance(gold, str):
        raise DataError(f"gold={gold!r} names a column, but texts are no table; give the labels themselves")
    votes = rules.votes(texts, columns, jobs=jobs, tick=tick, first_row=first_row)
    ties = rules.ties if ties is None else ties
    codes = majority(votes, len(rules.classes), ties=ties, seed=seed, weights=rules.weights)
    truth = None if gold is None else as_list(gold, "gold")
    summary = summarize(votes, codes, names=rules.names, classes=rules.classes, gold=truth)
    labels = [rules.classes[code] if code != ABSTAIN else None for code in codes]
    return WeakLabels(votes, labels, rules.classes, summary)


def _columns(table: Any) -> Mapping[str, Sequence[Any]] | None:
    """The columns of a table by name; None for what is no table."""
    if isinstance(table, Mapping):
        return table
    if isinstance(table, (str, os.PathLike)):
        raise DataError(f"{str(table)!r} is one string; give a list of texts or a table, or run drift label on a file")
    if hasattr(table, "columns") or hasattr(table, "column_names"):  # a DataFrame, a Dataset
        return next(read_chunks(table, size=max(len(table), 1))).columns
    return None
