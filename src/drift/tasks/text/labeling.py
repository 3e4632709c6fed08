"""Label a table of texts by class names: the Python twin of `drift label --classes`."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from drift.data.columns import guess_text_column
from drift.data.table_writer import TableWriter
from drift.data.tables import column_names, read_chunks, source_name
from drift.data.text_tables import TextColumns, read_texts
from drift.data.tokenized import Progress
from drift.errors import ConfigError
from drift.tasks.record_parts import SourcesRecord
from drift.tasks.text.settings import TextDataSettings, TextModelSettings
from drift.tasks.text.source_facts import source_facts
from drift.tasks.text.sources import Sources, vote_by_names
from drift.weak.ballots import hard
from drift.weak.casting import ABSTAIN
from drift.weak.class_names import class_phrases
from drift.weak.diagnostics import Share

NEAREST = "nearest"  # a column that is written beside the labels: the nearest class, however uncertain


@dataclass(frozen=True)
class NamedLabels:
    """Labels from class names. labels: one per text, None where it is too uncertain. coverage: texts with a label.

    accuracy: of the labels, on texts with a gold label. found: what each name caught. notes: warnings.
    """

    labels: list[str | None]
    coverage: Share
    accuracy: Share
    found: SourcesRecord
    notes: list[str]


def label_by_names(
    source: Any,
    classes: Any,
    out: str | os.PathLike[str] | None = None,
    *,
    text: str | None = None,
    gold: str | None = None,
    column: str = "weak",
    model: str = "default",
    max_length: int = 256,
    encoding: str = "utf-8",
    spreadsheet: bool = False,
    progress: Progress | None = None,
) -> NamedLabels:
    """Label the texts of a table by the names of the classes, and show what each name caught.

    source: the path of a table, a DataFrame or a Dataset.
    classes: as for `drift.fit`.
    out: the table to write: all columns, `column` with the label, blank where it is uncertain, and `nearest` with the
        nearest class. None to return the result only.
    text, gold: the columns with texts and with gold labels, which only measure; default: obvious ones, none.
    model: the encoder that compares texts and names; texts are truncated to `max_length` tokens.
    encoding: of a CSV, TSV or JSON lines file.
    spreadsheet: write CSV in which no text can become a formula in a spreadsheet program; it is read back unchanged.
    progress: as for `Embedder.embed`.
    """
    phrases = class_phrases(classes)
    names, where = column_names(source, encoding=encoding), source_name(source)
    if out is not None and (taken := [name for name in (column, NEAREST) if name in names]):
        raise ConfigError(f"{where} has a column {taken[0]!r} already; rename it, or give another with --column")
    # First, so that a wrong name fails before the work.
    writer = None if out is None else TableWriter(out, spreadsheet=spreadsheet)
    text = text or guess_text_column(names, next(read_chunks(source, encoding=encoding)))
    table = read_texts(source, TextColumns(text, gold), encoding=encoding)
    settings = TextDataSettings(train=where, classes=phrases)
    encoder = TextModelSettings(name=model, max_length=max_length)
    votes = vote_by_names(settings, encoder, model, table.texts["text"], progress)
    order = sorted(phrases)
    code_of = {name: code for code, name in enumerate(order)}
    truth = np.array([code_of.get(str(label), ABSTAIN) if label else ABSTAIN for label in table.labels])
    sources = Sources(order).with_names(votes).combine(settings, None)
    codes = hard(votes.votes)
    labels = [None if code == ABSTAIN else order[code] for code in codes]
    if writer is not None:
        with writer:
            for chunk in read_chunks(source, encoding=encoding):
                rows = slice(chunk.first, chunk.first + len(chunk))
                nearest = [order[code] for code in votes.likely[rows]]
                writer.write({**chunk.columns, column: labels[rows], NEAREST: nearest})
    facts = SourcesRecord.model_validate(source_facts(sources, truth, table.texts)["sources"])
    (own,) = facts.sources
    return NamedLabels(labels, own.coverage, own.accuracy, facts, sources.notes)
