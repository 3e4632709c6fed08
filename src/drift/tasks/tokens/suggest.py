"""Which sentences without tags to label next: doubtful ones from everywhere in the file, without near-copies."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.conll_writer import conll_file, conll_lines
from drift.data.sentence_formats import LABELS, SPANS, TOKENS, SentenceRow, is_conll
from drift.data.table_formats import format_of
from drift.data.table_writer import TableWriter
from drift.data.tables import source_name
from drift.errors import ConfigError, LabelError
from drift.quality.selection import doubt
from drift.tasks.parts import TableOptions, Trained
from drift.tasks.suggestions import Candidate, Suggestion, choose, filled_in_table, new_pool, offer
from drift.tasks.tokens.predict import chunks_of, trained_column

DOUBTFUL_WORDS = 5  # of a sentence whose mean doubt is its own: long sentences are not favoured for their length
WORDS_NAMED = 2  # in `why`


def suggest_sentences(
    run: Trained, source: Any, n: int, out: str | Path | None, options: TableOptions
) -> list[Suggestion]:
    """At most `n` sentences without tags, the most doubtful first; also written to `out`, if that is given.

    out: JSON lines with an empty column for tags, beside those that the model predicts; or CoNLL columns: words, `_` to
    fill in, and predicted tags.
    """
    form = None if out is None or is_conll(out) else format_of(Path(out))
    if form not in (None, "json"):
        raise ConfigError(f"{out}: tags are lists, which {form} cannot hold; write .jsonl or .conll")
    writer = None if form is None else TableWriter(str(out), spreadsheet=options.spreadsheet)
    column = trained_column(run, "text", options.column, source, options.encoding)
    label = options.label or run.record.columns.get("label")
    pool = new_pool(n, options.seed)
    for candidate in _candidates(run, source, column, label, options):
        offer(pool, candidate)
    chosen = choose(pool, n, options.seed)
    if not chosen:
        raise LabelError(f"{source_name(source)}: every sentence has tags; nothing is left to suggest")
    if writer is not None:
        with writer:
            writer.write(filled_in_table(chosen, label or _label_column(chosen[0].columns)))
    elif out is not None:
        _write_conll(Path(out), chosen)
    return chosen


def _candidates(
    run: Trained, source: Any, column: str | None, label: str | None, options: TableOptions
) -> Iterator[Candidate]:
    """Every sentence with words and without tags."""
    first = 0
    conll = is_conll(source)
    for chunk in chunks_of(source, column, options.label if conll else None, options.encoding):
        known = [_has_tags(chunk.columns, place, label, row) for place, row in enumerate(chunk.rows)]
        free = [place for place, row in enumerate(chunk.rows) if row.tokens and not known[place]]
        probabilities = run.model.predict_proba([chunk.rows[place].tokens for place in free]) if free else []
        for place, by_word in zip(free, probabilities, strict=True):
            columns = {name: values[place] for name, values in chunk.columns.items()}
            yield _candidate(run, chunk.rows[place], by_word, first + place + 1, columns)
        first += len(chunk.rows)
        options.tick()


def _label_column(columns: dict[str, Any]) -> str:
    """The column to fill in: one with a typical name, else a new one, for spans if the table has texts."""
    there = [name for name in (*LABELS, *SPANS) if name in columns]
    texts = any(isinstance(columns.get(name), str) for name in TOKENS)
    return there[0] if there else (SPANS if texts else LABELS)[0]


def _has_tags(columns: dict[str, list[Any]], place: int, label: str | None, row: SentenceRow) -> bool:
    """Whether a sentence has tags: in the label column that is known, else in any with a typical name."""
    if row.labels is not None:
        return any(tag is not None for tag in row.labels)
    if label == "":
        return False
    names = [label] if label in columns else [name for name in (*LABELS, *SPANS) if name in columns]
    cells = [columns[name][place] for name in names if name is not None]
    return any(cell is not None and hasattr(cell, "__len__") and not isinstance(cell, str) for cell in cells)


def _candidate(
    run: Trained, row: SentenceRow, probabilities: np.ndarray, number: int, columns: dict[str, Any]
) -> Candidate:
    """A sentence with its doubt. probabilities: of its words, `(words, C)`."""
    doubts = doubt(probabilities)
    least = np.argsort(-doubts, kind="stable")
    classes = run.model.classes
    why = []
    for word in least[:WORDS_NAMED]:
        one, other = np.argsort(-probabilities[word], kind="stable")[:2]
        shares = [f"{classes[code]} {100 * probabilities[word, code]:.0f} %" for code in (one, other)]
        why.append(f"{row.tokens[word]}: {', '.join(shares)}")
    mean = float(doubts[least[:DOUBTFUL_WORDS]].mean())
    suggestion = Suggestion(
        number,
        " ".join(row.tokens),
        columns,
        run.model.tags(probabilities),
        float(probabilities.max(1).mean()),
        1 - mean,
        "; ".join(why),
    )
    return Candidate(suggestion, mean)


def _write_conll(path: Path, chosen: Sequence[Suggestion]) -> None:
    rows = [SentenceRow(f"row {each.row}", list(each.columns["tokens"]), None, None) for each in chosen]
    tags = [[f"_\t{tag}" for tag in each.predicted] for each in chosen]
    with conll_file(path) as file:
        file.writelines(conll_lines(rows, tags))
