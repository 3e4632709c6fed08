"""Weak labels for texts, in memory or from a file."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drift.data.columns import find_column, guess_text_column
from drift.data.tables import Chunk, read_chunks, source_name
from drift.errors import DataError
from drift.settings import nearest
from drift.weak.arguments import TABLE_SUFFIXES, as_list, as_rules, deprecated_jobs, is_path
from drift.weak.casting import ABSTAIN
from drift.weak.diagnostics import Summary, summarize
from drift.weak.python_rule import PythonRule
from drift.weak.rules import RuleSet
from drift.weak.schema import Rule, Ties
from drift.weak.votes import majority

TEXT = "text"
SAMPLE_ROWS = 100  # rows from which the column of texts is guessed


@dataclass(frozen=True)
class WeakLabels:
    """The votes and weak labels of N texts."""

    votes: np.ndarray  # (N, M): an index into `classes`, or ABSTAIN
    labels: list[str | None]  # class names; None where no rule votes or the votes tie
    classes: tuple[str, ...]
    summary: Summary


def label(
    texts: Any,
    rules: RuleSet | Sequence[Mapping[str, Any] | Rule | PythonRule] | str | os.PathLike[str],
    *,
    text: str | None = None,
    gold: str | Sequence[Any] | None = None,
    ties: Ties | None = None,
    seed: int | np.random.Generator = 0,
    n_jobs: int = 1,
    tick: Callable[[int], object] | None = None,
    first_row: int = 0,
    encoding: str = "utf-8",
    jobs: int | None = None,
) -> WeakLabels:
    """Let rules vote on texts, and combine the votes into one weak label per text by majority.

    Parameters
    ----------
    texts : list of str, path, mapping, DataFrame or Dataset
        Texts, or a table: the path of a file (.csv, .tsv, .jsonl, each also with .gz; .parquet), a mapping of columns,
        a DataFrame or a Dataset. A string is always a path.
    rules : RuleSet, list of rules, or path
        The rules, or the path of a rule file.
    text : str, default=None
        Column with the texts of a table; by default "text", or another obvious column as in `drift.fit`.
    gold : str or sequence, default=None
        Gold labels, or the column that holds them. They are used only to measure accuracy.
    ties : {"abstain", "random", "order"}, default=None
        How to break ties; by default the policy of the rules.
    seed : int or numpy.random.Generator, default=0
        For ties that are broken at random.
    n_jobs : int, default=1
        Number of processes; -1 for one per core.
    tick : callable, default=None
        Called with the number of texts after each batch.
    first_row : int, default=0
        Row number of the first text in error messages, if the texts are part of a longer table.
    encoding : str, default="utf-8"
        Encoding of a CSV, TSV or JSON lines file.
    jobs : int, default=None
        Deprecated name of `n_jobs`.

    Returns
    -------
    WeakLabels
        Votes, labels, classes and diagnostics.
    """
    n_jobs = deprecated_jobs(n_jobs, jobs)
    rules = as_rules(rules, RuleSet)
    texts, gold, columns = _read(texts, rules, text, gold, encoding)
    votes = rules.votes(texts, columns, n_jobs=n_jobs, tick=tick, first_row=first_row)
    ties = rules.ties if ties is None else ties
    codes = majority(votes, len(rules.classes), ties=ties, seed=seed, weights=rules.weights)
    truth = None if gold is None else as_list(gold, "gold")
    summary = summarize(votes, codes, names=rules.names, classes=rules.classes, gold=truth)
    labels = [rules.classes[code] if code != ABSTAIN else None for code in codes]
    return WeakLabels(votes, labels, rules.classes, summary)


def _read(
    texts: Any, rules: RuleSet, text: str | None, gold: Any, encoding: str
) -> tuple[Any, Any, Mapping[str, Sequence[Any]] | None]:
    """The texts, the gold labels, and all columns if the texts are a table. The parameters are those of `label`."""
    columns: Mapping[str, Sequence[Any]] | None
    if is_path(texts, "texts", TABLE_SUFFIXES):
        gold_column = gold if isinstance(gold, str) else None
        text = check_columns(texts, rules, text=text, gold=gold_column, encoding=encoding)[1]
        columns = _read_columns(texts, {text, *rules.columns, *([gold_column] if gold_column else [])}, encoding)
    else:
        columns = _columns_in_memory(texts)
    if columns is None:
        if isinstance(gold, str):
            raise DataError(f"gold={gold!r} names a column, but texts is not a table; give the labels themselves")
        return texts, gold, None
    text = _text_column(columns, text)
    for name in (text, gold) if isinstance(gold, str) else (text,):
        if name not in columns:
            known = [str(each) for each in columns]
            raise DataError(f"the table has no column {name!r}{nearest(name, known)}")
    return as_list(columns[text], f"column {text!r}"), columns[gold] if isinstance(gold, str) else gold, columns


def check_columns(
    source: Any, rules: RuleSet, *, text: str | None, gold: str | None, encoding: str
) -> tuple[list[str], str]:
    """The names of all columns of a table, and the column with the texts; an error if a named column does not exist.

    source: a path, a DataFrame or a Dataset. rules: may name columns, too. text: None to guess the column.
    """
    sample = next(read_chunks(source, size=SAMPLE_ROWS, encoding=encoding))
    names = list(sample.columns)
    for name in (text, gold, *rules.columns):
        if name is not None:
            find_column(name, names, source_name(source))
    return names, text or guess_text_column(names, sample)


def _read_columns(path: Any, names: set[str], encoding: str) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for chunk in read_chunks(path, encoding=encoding):
        for name, values in columns.items():
            values += chunk.columns[name]
    return columns


def _columns_in_memory(table: Any) -> Mapping[str, Sequence[Any]] | None:
    """The columns of a mapping, a DataFrame or a Dataset; None for anything else."""
    if isinstance(table, Mapping):
        return table
    if hasattr(table, "columns") or hasattr(table, "column_names"):
        return next(read_chunks(table, size=max(len(table), 1))).columns
    return None


def _text_column(columns: Mapping[str, Sequence[Any]], text: str | None) -> str:
    """The column with the texts: the one named, "text", or an obvious one."""
    if text is not None:
        return text
    if TEXT in columns or not columns or not all(isinstance(name, str) for name in columns):
        return TEXT
    sample = {name: as_list(values, f"column {name!r}")[:SAMPLE_ROWS] for name, values in columns.items()}
    return guess_text_column(list(sample), Chunk(sample, 0))
