"""Use a trained tagger on files of sentences: tags, entities with their places and confidence, and scores."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.sentence_formats import SentenceRow, Wanted, conll_rows, is_conll, sentence_of, token_column
from drift.data.sentences import read_sentences
from drift.data.tables import column_names, read_chunks, source_name
from drift.data.tags import OUTSIDE, spans_of
from drift.errors import DataError
from drift.runs.result import Run
from drift.tasks.calibration import calibration_error
from drift.tasks.tokens.data import tagged_sentences
from drift.tasks.tokens.model import TokenModel
from drift.tasks.tokens.tagging import Tagging
from drift.tasks.tokens.writer import Piece, token_writer

ROWS_PER_CHUNK = 512  # sentences that are tagged at a time; as many as texts, for the command's bar counts in these


def predict_tokens(
    run: Run,
    source: Any,
    out: str | Path | None,
    *,
    column: str | None = None,
    abstain_below: float = 0.0,
    encoding: str = "utf-8",
    tick: Callable[[], None] = lambda: None,
) -> list[list[str]] | None:
    """Tag every sentence of a file: a list of tags for each, or a new file `out` in the same order.

    A new table has every column of the old one, and `predicted` (tags) and `entities`: where each begins and ends in
    characters, of the text or of the words with spaces between them, its label, its text and its confidence. A new file
    of CoNLL columns has words and tags. Entities whose confidence is below `abstain_below` are left out.
    """
    model = run.model
    assert isinstance(model, TokenModel)
    found: list[list[str]] = []
    column = _column(run, "text", column, source, encoding)
    pieces = _conll_pieces(source, column, encoding) if is_conll(source) else _table_pieces(source, column, encoding)
    with token_writer(out) as write:
        for piece in pieces:
            tags, entities = [], []
            probabilities_of = model.predict_proba([row.tokens for row in piece.rows])
            for row, probabilities in zip(piece.rows, probabilities_of, strict=True):
                kept, marked = entities_of(model, row, probabilities, abstain_below)
                tags.append(kept)
                entities.append(marked)
            write(piece, tags, entities)
            found += tags if out is None else []
            tick()
    return found if out is None else None


def entities_of(
    model: TokenModel, row: SentenceRow, probabilities: np.ndarray, abstain_below: float
) -> tuple[list[str], list[dict[str, Any]]]:
    """The tags of a sentence, and its entities; confidence is the mean probability of the type over their words."""
    tags = model.tags(probabilities)
    offsets = row.offsets or _spaced(row.tokens)
    text = " ".join(row.tokens) if row.text is None else row.text
    entities = []
    for span in spans_of(tags, "IOB2" if model.entities else "IO"):
        codes = [
            code for code, tag in enumerate(model.classes) if tag in (span.type, f"B-{span.type}", f"I-{span.type}")
        ]
        confidence = float(probabilities[span.start : span.end, codes].sum(-1).mean())
        if confidence < abstain_below:
            tags[span.start : span.end] = [OUTSIDE] * (span.end - span.start)
            continue
        start, end = offsets[span.start][0], offsets[span.end - 1][1]
        entities.append(
            {
                "start": start,
                "end": end,
                "label": span.type,
                "text": text[start:end],
                "confidence": round(confidence, 6),
            }
        )
    return tags, entities


def evaluate_tokens(
    run: Run, source: Any, *, column: str | None = None, label: str | None = None, encoding: str = "utf-8"
) -> dict[str, Any]:
    """Scores on the sentences of a file that have tags."""
    model = run.model
    assert isinstance(model, TokenModel)
    scheme = None if model.entities else "IO"
    column, label = (_column(run, *each, source, encoding) for each in (("text", column), ("label", label)))
    sentences = read_sentences(source, tokens=column, label=label, weak="", encoding=encoding, scheme=scheme)
    part = tagged_sentences(sentences, model.classes)
    probabilities = np.concatenate(model.predict_proba(part.sentences.tokens))
    tagging = Tagging(model.classes, part.sizes, model.entities)
    return {
        "rows": len(sentences),
        "labeled_rows": len(part.sentences),
        **tagging(probabilities, part.codes),
        "calibration_error": calibration_error(probabilities, part.codes),
        "by_type": tagging.by_type(probabilities, part.codes),
    }


def _column(run: Run, kind: str, named: str | None, source: Any, encoding: str) -> str | None:
    """The column that was named, or else the one that was named in training, where the source has it."""
    trained = run.metrics.get("columns", {}).get(kind)
    if named is not None or trained is None:
        return named
    there = trained.isdigit() if is_conll(source) else trained in column_names(source, encoding=encoding)
    return trained if there else None


def _conll_pieces(source: Any, column: str | None, encoding: str) -> Iterator[Piece]:
    every = conll_rows(source, Wanted(column, "", ""), encoding)
    rows = list(islice(every, ROWS_PER_CHUNK))
    if not rows:
        raise DataError(f"{source_name(source)} has no tokens in it; give a file with at least one sentence")
    while rows:
        yield Piece(rows, {"tokens": [row.tokens for row in rows]})
        rows = list(islice(every, ROWS_PER_CHUNK))


def _table_pieces(source: Any, column: str | None, encoding: str) -> Iterator[Piece]:
    name = source_name(source)
    for chunk in read_chunks(source, size=ROWS_PER_CHUNK, encoding=encoding):
        column = token_column(column, list(chunk.columns), name)
        values = chunk.columns[column]
        yield Piece([sentence_of(value, name, row) for row, value in enumerate(values, chunk.first)], chunk.columns)


def _spaced(tokens: Sequence[str]) -> list[tuple[int, int]]:
    """Where words stand when they are written with spaces between them."""
    ends = np.cumsum([len(token) + 1 for token in tokens]) - 1
    return [(int(end) - len(token), int(end)) for end, token in zip(ends, tokens, strict=True)]
