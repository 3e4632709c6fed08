"""Texts to label, with one class each."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from drift.annotate.answers import Answer, classes_of
from drift.annotate.entries import Mark
from drift.annotate.learner import Result, Vectors
from drift.annotate.pool import RULES, Pool, Request, beside
from drift.annotate.predictions import Predictions, TextPredictions
from drift.annotate.state import State
from drift.annotate.vectors import text_vectors
from drift.data.cache import content_key
from drift.data.columns import find_column
from drift.data.table_formats import format_of
from drift.data.table_writer import TableWriter, with_columns
from drift.data.tables import column_names, read_chunks, source_name
from drift.data.text_tables import TextColumns, choose_columns, label_of, text_of
from drift.data.texts import checked
from drift.errors import ConfigError, LabelError, ShapeError

LABEL = "label"


@dataclass
class TextPool(Pool):
    """Texts of a table, or of a list: columns is None then. A label is the name of a class."""

    columns: TextColumns | None = None
    unit = "text"

    def header(self) -> dict[str, Any]:
        return {"texts": content_key(self.texts)}

    def run_classes(self) -> list[str]:
        return list(self.run.classes)

    def names_in(self, label: Any) -> list[str]:
        return [label]

    def coded(self, row: int, label: Any, number_of: Callable[[str], int]) -> Answer:
        if not isinstance(label, str):
            raise LabelError(f"row {row}: {str(label)[:60]!r} is not the name of a class")
        return number_of(label)

    def named(self, answer: Answer, names: Mapping[int, str]) -> str:
        return names[classes_of(answer)[0]]

    def shown(self, row: int, label: Any) -> str:
        return str(label)

    def details(self, row: int) -> dict[str, Any]:
        return {}

    def ids(self, classes: Sequence[int]) -> list[int]:
        return list(classes)

    def codes(self, marks: Mapping[int, Mark], rows: Sequence[int], ids: Sequence[int]) -> np.ndarray:
        place = {number: position for position, number in enumerate(ids)}
        return np.array([place[classes_of(marks[row].answer)[0]] for row in rows], dtype=np.int64)

    def predictions(self, result: Result) -> Predictions:
        assert result.probabilities is not None
        assert result.left_out is not None
        if result.job.weak:
            return TextPredictions(result.job.ids, result.probabilities, independent=True)
        known = ~np.isnan(result.left_out).any(1)
        held = dict(zip(result.job.rows[known].tolist(), result.left_out[known], strict=True))
        return TextPredictions(result.job.ids, result.probabilities, held)

    def first_predictions(self, state: State) -> Predictions | None:
        if self.run is None:
            return None
        ids = [found.id for name in self.run.classes if (found := state.find(name)) is not None]
        p = np.asarray(self.run.predict_proba(self.texts), dtype=np.float32)
        return TextPredictions(ids, p, independent=True)

    def weak_codes(self, state: State) -> tuple[np.ndarray, np.ndarray] | None:
        pairs = [(row, found.id) for row, name in enumerate(self._vote()) if name and (found := state.find(name))]
        rows, numbers = (np.array(each, dtype=np.int64) for each in (zip(*pairs, strict=True) if pairs else ([], [])))
        return None if len(np.unique(numbers)) < 2 else (rows, numbers)

    def _vote(self) -> list[str | None]:
        """One noisy label per text: the commonest of all sources, None if there is none or they tie."""
        votes = []
        for row in range(len(self.texts)):
            two = Counter(each[row] for each in self.weak.values() if each[row] is not None).most_common(2)
            votes.append(two[0][0] if len(two) == 1 or (two and two[0][1] > two[1][1]) else None)
        return votes

    def embedded(self, encoder: str, vectors: Any, *, quiet: bool) -> Vectors:
        if vectors is None:
            return Vectors(text_vectors(self.texts, encoder, quiet=quiet))
        if np.ndim(vectors) != 2 or len(vectors) != len(self.texts):
            raise ShapeError(f"vectors has shape {np.shape(vectors)}; give one row for each of {len(self.texts)} texts")
        return Vectors(vectors)

    def check_out(self, out: Path) -> None:
        format_of(out)

    def write(self, out: Path, labels: Sequence[Any], flags: set[int], notes: Mapping[int, str]) -> list[str]:
        text = "text" if self.columns is None else self.columns.text
        old = None if self.columns is None else self.columns.label
        column, start = old or LABEL, 0
        with TableWriter(out) as writer:
            for columns in self._chunks():
                rows = range(start, start + len(next(iter(columns.values()))))
                while column in columns and old is None:
                    column += "_by_drift"
                columns[column] = list(labels[rows.start : rows.stop])
                writer.write(with_columns(columns, beside(rows, flags, notes)))
                start = rows.stop
        return ["--text", text, "--label", column]

    def _chunks(self) -> Any:
        if self.columns is None:
            return [{"text": self.texts}]
        return (dict(chunk.columns) for chunk in read_chunks(self.source, encoding=self.encoding))


def read_texts(wanted: Request) -> TextPool:
    """Read everything: a table, or a list of texts."""
    if wanted.tokens is not None:
        raise ConfigError(
            f"tokens={wanted.tokens!r} is for sentences; give task='tokens' too, or name the texts with text"
        )
    source = wanted.source
    if isinstance(source, (list, tuple)) and all(isinstance(each, str) for each in source):
        if wanted.weak or wanted.label:
            raise ConfigError("a list of texts has no columns; give a table, or leave label and weak out")
        pool = TextPool("the list of texts", list(checked(source)))
        extra: dict[str, list[Any]] = {}
    else:
        pool, extra = _read_table(wanted)
    if wanted.rules is not None:
        from drift.weak import label as label_by_rules

        name = "text" if pool.columns is None else pool.columns.text
        found = label_by_rules({**extra, name: pool.texts}, _rule_set(wanted.rules), text=name)
        pool.weak[RULES] = list(found.labels)
    return pool


def _rule_set(rules: Any) -> Any:
    from drift.weak import RuleSet

    return rules if isinstance(rules, RuleSet) else RuleSet.from_file(rules)


def _read_table(wanted: Request) -> tuple[TextPool, dict[str, list[Any]]]:
    """The pool of a table, and the further columns that the rules read."""
    source, weak, encoding = wanted.source, wanted.weak, wanted.encoding
    name, names = source_name(source), column_names(source, encoding=encoding)
    for column in weak:
        find_column(column, names, name)
    first = weak[0] if weak else None
    columns = choose_columns(source, text=wanted.text, label=wanted.label, weak=first, encoding=encoding)
    read = () if wanted.rules is None else _rule_set(wanted.rules).columns
    extra: dict[str, list[Any]] = {find_column(each, names, name): [] for each in read if each != columns.text}
    votes: dict[str, list[str | None]] = {column: [] for column in weak}
    texts: list[str] = []
    given: dict[int, str] = {}
    for chunk in read_chunks(source, encoding=encoding):
        cells = chunk.columns[columns.text]
        if columns.label is not None:
            labels = enumerate(map(label_of, chunk.columns[columns.label]), chunk.first)
            given.update({row: value for row, value in labels if value is not None})
        texts += [text_of(value, name, row) for row, value in enumerate(cells, chunk.first)]
        for column, values in votes.items():
            values += map(label_of, chunk.columns[column])
        for column, others in extra.items():
            others += chunk.columns[column]
    return TextPool(source, texts, encoding, given, dict(votes), columns=columns), extra
