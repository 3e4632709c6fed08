"""Labels that were filled in after `drift suggest`, merged into the tables of a run on texts."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from drift.data.columns import PREDICTED, WHY, guess_label_column
from drift.data.filled_labels import merge_files, read_filled
from drift.data.tables import read_chunks, source_name
from drift.data.text_tables import TextColumns, TextTable, choose_held_out, label_of, read_texts
from drift.errors import ConfigError
from drift.tasks.text.settings import TextDataSettings

Labels = list[str | None]


def with_filled_labels(
    train: TextTable, sources: Mapping[str, Any], columns: TextColumns, settings: TextDataSettings, *, only: bool
) -> tuple[TextTable, Labels | None, list[str]]:
    """The training table with filled labels, labels of the unlabelled table if some are of it, and notes.

    only: drop the labels of the table itself, which are there to measure noisy labels and not to train on.
    """
    tables = sources.get("labels") or settings.labels
    if not tables:
        return train, None, []
    names, texts = [train.name], [list(train.texts["text"])]
    labels: list[Labels] = [[None] * len(train) if only else train.labels]
    if (unlabeled := sources.get("unlabeled")) is not None:
        others = choose_held_out(unlabeled, columns, text=settings.text, need_labels=False, encoding=settings.encoding)
        table = read_texts(unlabeled, others, encoding=settings.encoding)
        names.append(table.name)
        texts.append(list(table.texts["text"]))
        labels.append([None] * len(table))
    label = settings.label or columns.label
    files = [read_filled(source, text=columns.text, label=label, encoding=settings.encoding) for source in tables]
    (own, *others_labels), notes = merge_files(files, names, texts, labels)
    more = others_labels[0] if others_labels and any(others_labels[0]) else None
    return replace(train, labels=own), more, notes


def ignored_labels(source: Any, train: TextColumns, settings: TextDataSettings) -> list[str]:
    """A warning if the unlabelled table has labels, unless they are merged with `labels`."""
    count = rows = 0
    column = None
    name = source_name(source)
    if name in settings.labels:
        return []
    for chunk in read_chunks(source, encoding=settings.encoding):
        if column is None:
            column = _label_column(chunk, train)
            if column is None:
                return []
        count += sum(label_of(value) is not None for value in chunk.columns[column])
        rows += len(chunk)
    if not count:
        return []
    return [
        f"warning: {count:,} of {rows:,} rows of {name} have a label in column {column!r}, which --unlabeled ignores;"
        f" --labels {name} uses them"
    ]


def _label_column(chunk: Any, train: TextColumns) -> str | None:
    names = list(chunk.columns)
    if train.label in names:
        return train.label
    try:
        return guess_label_column([name for name in names if name not in (*PREDICTED, *WHY)], chunk, train.text)
    except ConfigError:  # several columns could be labels: none is certain
        return None
