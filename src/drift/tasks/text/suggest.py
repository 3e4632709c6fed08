"""`drift.suggest`: which unlabelled rows to label next, those the classifier is least sure of and no two alike."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappush, heappushpop
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.columns import find_column, guess_label_column
from drift.data.table_writer import TableWriter, with_columns
from drift.data.tables import read_chunks, source_name
from drift.data.text_tables import label_of
from drift.errors import ConfigError, LabelError
from drift.runs.predict import ROWS_PER_CHUNK, load, predictions, stored, text_column
from drift.runs.result import Run
from drift.tasks.text.model import TextModel
from drift.tasks.tokens.model import TokenModel

POOL = 10  # times as many rows as are wanted are kept by doubt, to choose different ones from
ALIKE = 0.6  # cosine of character 4-grams: about what one piece of news has in two papers; other pairs have 0.03


@dataclass(frozen=True)
class Suggestion:
    """A row to label. row: counted from 1, as in messages. margin: how far the likeliest class is above the next."""

    row: int
    text: str
    columns: dict[str, Any]  # as they were given
    predicted: str
    confidence: float
    margin: float
    why: str


def suggest(
    run: Run | str | Path,
    source: Any,
    n: int = 50,
    *,
    out: str | Path | None = None,
    text: str | None = None,
    label: str | None = None,
    encoding: str = "utf-8",
    tick: Callable[[], None] = lambda: None,
) -> list[Suggestion]:
    """The rows of a table that are worth a label most, the least sure first; a table of them too, if `out` is given.

    Sureness is the margin between the two likeliest classes. Rows with a label are left out, and so are rows without
    text and near-copies of a row that was chosen: there may be fewer than `n`. label: where to look for labels, "" for
    nowhere; by default the column trained on, or an obvious one. Memory holds ten times `n` rows of any table. tick:
    called after every piece of the table.
    """
    if n < 1:
        raise ConfigError(f"{n} rows cannot be suggested; ask for 1 or more")
    writer = None if out is None else TableWriter(out)  # now, so that a wrong name is not found out at the end
    opened = run if isinstance(run, Run) else load(run)
    if not isinstance(opened.model, TextModel):
        what = "tags words" if isinstance(opened.model, TokenModel) else "classifies nodes"
        raise ConfigError(f"the run {what}, and rows are suggested by runs on texts; give the folder of one")
    text, label = _columns(opened, source, text, label, encoding)
    pool: list[tuple[float, int, Suggestion]] = []  # a heap with the surest on top
    pooled: set[str] = set()  # copies of one text would fill the pool
    for found in _doubts(opened, source, text, label, encoding, tick):
        if found.text in pooled:
            continue
        pooled.add(found.text)
        entry = (-found.margin, -found.row, found)
        if len(pool) < POOL * n:
            heappush(pool, entry)
        else:
            pooled.remove(heappushpop(pool, entry)[-1].text)
    if not pool:
        where = f" in column {label!r}" if label else ""
        raise LabelError(f"{source_name(source)}: every row has a label{where} or no text; nothing is left to suggest")
    ranked = [found for *_, found in sorted(pool, reverse=True)]
    chosen = [ranked[place] for place in _different([found.text for found in ranked], n)]
    if writer is not None:
        with writer:
            writer.write(_table(chosen))
    return chosen


def _columns(run: Run, source: Any, text: str | None, label: str | None, encoding: str) -> tuple[str, str | None]:
    """The columns that were named, those that were trained on, or obvious ones."""
    sample, name = next(read_chunks(source, size=ROWS_PER_CHUNK, encoding=encoding)), source_name(source)
    names = list(sample.columns)
    text = text or text_column(run, sample, name)
    if label is None:
        trained = stored(run, "label")
        label = trained if trained in names else guess_label_column(names, sample, text)
    return find_column(text, names, name), find_column(label, names, name) if label else None


def _doubts(
    run: Run, source: Any, text: str, label: str | None, encoding: str, tick: Callable[[], None]
) -> Iterator[Suggestion]:
    """Every row that has a text and no label, with what the classifier hesitates between."""
    for piece in predictions(run, source, text, encoding):
        columns = piece.chunk.columns
        likeliest = np.argsort(-piece.probabilities, axis=-1, kind="stable")[:, :2]
        for place, (first, second) in enumerate(likeliest):
            content = columns[text][place]
            labeled = label is not None and label_of(columns[label][place]) is not None
            if labeled or not isinstance(content, str) or not content.strip():
                continue
            high, low = (float(piece.probabilities[place, c]) for c in (first, second))
            yield Suggestion(
                piece.chunk.first + place + 1,
                content,
                {name: values[place] for name, values in columns.items()},
                run.classes[first],
                high,
                high - low,
                f"{run.classes[first]} {100 * high:.0f} %, {run.classes[second]} {100 * low:.0f} %",
            )
        tick()


def _different(texts: list[str], most: int) -> list[int]:
    """Places of texts in order, without those that are too much like one before."""
    from sklearn.feature_extraction.text import HashingVectorizer

    # Characters, for not every script puts spaces between words.
    grams = HashingVectorizer(analyzer="char", ngram_range=(4, 4), n_features=2**18, alternate_sign=False)
    vectors = grams.transform(texts)  # rows of length 1
    nearest = np.zeros(len(texts))
    chosen: list[int] = []
    for place in range(len(texts)):
        if len(chosen) < most and nearest[place] < ALIKE:
            chosen.append(place)
            nearest = np.maximum(nearest, (vectors @ vectors[place].T).toarray()[:, 0])
    return chosen


def _table(chosen: list[Suggestion]) -> dict[str, list[Any]]:
    """Columns as given, and what is to be said of each row."""
    given = {name: [found.columns[name] for found in chosen] for name in chosen[0].columns}
    added: dict[str, list[Any]] = {
        "row": [found.row for found in chosen],
        "predicted": [found.predicted for found in chosen],
        "confidence": [round(found.confidence, 6) for found in chosen],
        "why": [found.why for found in chosen],
    }
    return with_columns(given, added)
