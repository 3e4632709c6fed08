"""Tag files of sentences: tags, entities with their positions and confidence, and scores."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.sentence_formats import SentenceRow, Wanted, conll_rows, is_conll, sentence_of, token_column
from drift.data.sentences import read_sentences
from drift.data.tables import column_names, read_chunks, source_name
from drift.data.tags import OUTSIDE, spans_of
from drift.errors import DataError
from drift.tasks.calibration import calibration_error
from drift.tasks.parts import ROWS_PER_CHUNK, TableOptions, Trained
from drift.tasks.tokens.data import tagged_sentences
from drift.tasks.tokens.model import TokenModel
from drift.tasks.tokens.tagging import Tagging
from drift.tasks.tokens.writer import SentenceChunk, token_writer


def predict_sentences(
    run: Trained, source: Any, out: str | Path | None, options: TableOptions
) -> Iterator[list[list[str]]]:
    """The tags of every chunk of sentences.

    out: a new table has all columns of the old one, `predicted` (tags) and `entities`: start and end in characters (of
    the text, or of the words joined by spaces), label, text and confidence. A new CoNLL file has words and tags.
    Entities whose confidence is below `options.abstain_below` are left out.
    """
    model: TokenModel = run.model
    column = trained_column(run, "text", options.column, source, options.encoding)
    with token_writer(out, spreadsheet=options.spreadsheet) as write:
        for chunk in chunks_of(source, column, None, options.encoding):
            tags, entities = [], []
            by_sentence = model.predict_proba([row.tokens for row in chunk.rows])
            for row, probabilities in zip(chunk.rows, by_sentence, strict=True):
                row_tags, row_entities = entities_of(model, row, probabilities, options.abstain_below)
                tags.append(row_tags)
                entities.append(row_entities)
            write(chunk, tags, entities)
            if options.tally is not None:
                flat = [entity for row_entities in entities for entity in row_entities]
                options.tally.add(
                    sum(map(len, tags)), [entity["label"] for entity in flat], [entity["confidence"] for entity in flat]
                )
            yield tags


def entities_of(
    model: TokenModel, row: SentenceRow, probabilities: np.ndarray, abstain_below: float
) -> tuple[list[str], list[dict[str, Any]]]:
    """The tags and entities of a sentence. Confidence is the mean probability of the type over an entity's words."""
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


def evaluate_sentences(run: Trained, source: Any, options: TableOptions) -> dict[str, Any]:
    """Scores on the sentences of a file that have tags."""
    model: TokenModel = run.model
    encoding = options.encoding
    column = trained_column(run, "text", options.column, source, encoding)
    label = trained_column(run, "label", options.label, source, encoding)
    scheme = None if model.entities else "IO"
    sentences = read_sentences(source, tokens=column, label=label, weak="", encoding=encoding, scheme=scheme)
    part = tagged_sentences(sentences, model.classes, refuse=False)
    probabilities = np.concatenate(model.predict_proba(part.sentences.tokens))
    tagging = Tagging([*model.classes, *part.unknown], part.sizes, model.entities, model.restart)
    predicted = tagging.decoded(probabilities)
    return {
        "rows": len(sentences),
        "labeled_rows": len(part.sentences),
        **tagging.scores(predicted, part.codes),
        "calibration_error": calibration_error(probabilities, part.codes),
        "by_type": tagging.by_type(predicted, part.codes),
        "notes": part.notes,
    }


def trained_column(run: Trained, content: str, named: str | None, source: Any, encoding: str) -> str | None:
    """The column that was named, or the one named in training, if the source has it. content: "text" or "label"."""
    trained = run.record.columns.get(content)
    if named is not None or trained is None:
        return named
    there = trained.isdigit() if is_conll(source) else trained in column_names(source, encoding=encoding)
    return trained if there else None


def chunks_of(source: Any, column: str | None, label: str | None, encoding: str) -> Iterator[SentenceChunk]:
    """Sentences chunk by chunk. label: column of tags to read from CoNLL files; None for none."""
    if is_conll(source):
        return _conll_chunks(source, column, label or "", encoding)
    return _table_chunks(source, column, encoding)


def _conll_chunks(source: Any, column: str | None, label: str, encoding: str) -> Iterator[SentenceChunk]:
    sentences = conll_rows(source, Wanted(column, label, ""), encoding)
    rows = list(islice(sentences, ROWS_PER_CHUNK))
    if not rows:
        raise DataError(f"{source_name(source)} has no tokens in it; give a file with at least one sentence")
    while rows:
        yield SentenceChunk(rows, {"tokens": [row.tokens for row in rows]})
        rows = list(islice(sentences, ROWS_PER_CHUNK))


def _table_chunks(source: Any, column: str | None, encoding: str) -> Iterator[SentenceChunk]:
    name = source_name(source)
    for chunk in read_chunks(source, size=ROWS_PER_CHUNK, encoding=encoding):
        column = token_column(column, list(chunk.columns), name)
        rows = [sentence_of(value, name, row) for row, value in enumerate(chunk.columns[column], chunk.first)]
        yield SentenceChunk(rows, chunk.columns)


def _spaced(tokens: Sequence[str]) -> list[tuple[int, int]]:
    """Character offsets of words that are joined by spaces."""
    ends = np.cumsum([len(token) + 1 for token in tokens]) - 1
    return [(int(end) - len(token), int(end)) for end, token in zip(ends, tokens, strict=True)]
