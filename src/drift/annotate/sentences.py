"""Sentences to label, with entities: spans of words, each with a class as its type."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from drift.annotate.answers import OUTSIDE, Answer
from drift.annotate.entities import EntityPredictions, numbers_of
from drift.annotate.entries import Mark
from drift.annotate.learner import Result, Vectors
from drift.annotate.pool import RULES, Pool, Request
from drift.annotate.predictions import Predictions
from drift.annotate.sentence_output import check_sentence_output, write_sentences
from drift.annotate.state import State
from drift.annotate.vectors import word_vectors
from drift.data.cache import content_key
from drift.data.sentence_formats import sentence_of
from drift.data.sentences import Sentences, read_sentences
from drift.data.tags import OUTSIDE as NO_ENTITY
from drift.data.tags import Span, guess_scheme, spans_of, split_tag, tags_of
from drift.errors import ConfigError, LabelError, ShapeError

Entities = list[tuple[int, int, str]]  # the words [start, end), and a type


@dataclass
class SentencePool(Pool):
    """Sentences of a file, a table or a list. A label is a list of entities, (first word, end, type).

    tokens, label: columns as the user named them, None for obvious ones.
    """

    sentences: Sentences = field(default_factory=lambda: Sentences("", [], [], []))
    tokens: str | None = None
    label: str | None = None
    unit = "sentence"

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of words of each sentence."""
        return np.array([len(words) for words in self.sentences.tokens], dtype=np.int64)

    def header(self) -> dict[str, Any]:
        return {"texts": content_key("\0".join(words) for words in self.sentences.tokens), "task": "tokens"}

    def run_classes(self) -> list[str]:
        scheme = guess_scheme([self.run.classes])
        return sorted({split_tag(tag, scheme)[1] for tag in self.run.classes} - {""})

    def names_in(self, label: Any) -> list[str]:
        return [name for _, _, name in label]

    def coded(self, row: int, label: Any, number_of: Callable[[str], int]) -> Answer:
        try:
            spans = sorted(Span(int(start), int(end), str(name)) for start, end, name in label)
        except (TypeError, ValueError) as error:
            raise LabelError(
                f"row {row}: give a list of entities, such as [(0, 2, 'person')]: words 0 and 1"
            ) from error
        tags_of(spans, len(self.sentences.tokens[row]))  # refuses what overlaps, or is outside the sentence
        return tuple((span.start, span.end, number_of(span.type)) for span in spans)

    def named(self, answer: Answer, names: Mapping[int, str]) -> Entities:
        assert isinstance(answer, tuple)
        return [(start, end, names[number]) for start, end, number in answer]

    def shown(self, row: int, label: Any) -> str:
        words = self.sentences.tokens[row]
        return "; ".join(f"{name}: {' '.join(words[start:end])}" for start, end, name in label) or "no entity"

    def details(self, row: int) -> dict[str, Any]:
        """The words, and what stands before, between and after them."""
        words = self.sentences.tokens[row]
        if self.sentences.offsets is None:
            return {"words": words, "gaps": ["", *[" "] * (len(words) - 1), ""]}
        text, offsets = self.texts[row], self.sentences.offsets[row]
        edges = [0, *(edge for pair in offsets for edge in pair), len(text)]
        return {"words": words, "gaps": [text[edges[k] : edges[k + 1]] for k in range(0, len(edges), 2)]}

    def ids(self, classes: Sequence[int]) -> list[int]:
        return [OUTSIDE, *classes]

    def codes(self, marks: Mapping[int, Mark], rows: Sequence[int], ids: Sequence[int]) -> np.ndarray:
        place = {number: position for position, number in enumerate(ids)}
        numbers = [numbers_of(marks[row].answer, self.sizes[row]) for row in rows]
        return np.array([place[number] for each in numbers for number in each.tolist()], dtype=np.int64)

    def predictions(self, result: Result) -> Predictions:
        assert result.probabilities is not None
        assert result.left_out is not None
        parts = np.split(result.left_out, np.cumsum(self.sizes[result.job.rows])[:-1])
        pairs = zip(result.job.rows.tolist(), parts, strict=True)
        held = {row: part for row, part in pairs if not np.isnan(part).any()}
        return EntityPredictions(result.job.ids, result.probabilities, held, sizes=self.sizes)

    def first_predictions(self, state: State) -> Predictions | None:
        if self.run is None and not self.weak:
            return None
        ids = self.ids([each.id for each in state.active])
        place = {each.name: ids.index(each.id) for each in state.active}
        p = self._of_run(place, len(ids)) if self.run is not None else self._of_votes(place, len(ids))
        return EntityPredictions(ids, p, independent=True, sizes=self.sizes)

    def _of_run(self, place: Mapping[str, int], columns: int) -> np.ndarray:
        scheme = guess_scheme([self.run.classes])
        by_tag = np.concatenate(self.run.predict_proba(self.sentences.tokens))
        p = np.zeros((len(by_tag), columns), dtype=np.float32)
        for code, tag in enumerate(self.run.classes):
            p[:, place.get(split_tag(tag, scheme)[1], 0)] += by_tag[:, code]
        return p

    def _of_votes(self, place: Mapping[str, int], columns: int) -> np.ndarray:
        """The share of the sources that give each word a type."""
        first = np.cumsum(self.sizes) - self.sizes
        p = np.zeros((int(self.sizes.sum()), columns), dtype=np.float32)
        for votes in self.weak.values():
            for row, vote in enumerate(votes):
                for start, end, name in vote or ():
                    p[first[row] + start : first[row] + end, place.get(name, 0)] += 1 / len(self.weak)
        p[:, 0] += 1 - p.sum(1)
        return p

    def embedded(self, encoder: str, vectors: Any, *, quiet: bool) -> Vectors:
        if vectors is None:
            return Vectors(word_vectors(self.sentences.tokens, encoder, quiet=quiet), self.sizes)
        if np.ndim(vectors) != 2 or len(vectors) != self.sizes.sum():
            raise ShapeError(
                f"vectors has shape {np.shape(vectors)}; give one row for each of {self.sizes.sum():,} words"
            )
        return Vectors(vectors, self.sizes)

    def check_out(self, out: Path) -> None:
        check_sentence_output(out)

    def write(self, out: Path, labels: Sequence[Any], flags: set[int], notes: Mapping[int, str]) -> list[str]:
        tags = [None if label is None else self._tags(row, label) for row, label in enumerate(labels)]
        columns = [name for name in self.weak if name != RULES]
        return write_sentences(self, out, tags, labels, flags, notes, not_label=columns)

    def _tags(self, row: int, label: Entities) -> list[str]:
        spans = (Span(start, end, name) for start, end, name in label)
        return tags_of(spans, int(self.sizes[row]), self.sentences.scheme)


def read_tagged(wanted: Request) -> SentencePool:
    """Read everything: a file, a table or a list of sentences. The words are in `tokens`, or texts in `text`."""
    column, source = wanted.tokens or wanted.text, wanted.source
    if isinstance(source, (list, tuple)):
        if wanted.weak or wanted.label or column:
            raise ConfigError("a list of sentences has no columns; give a table, or leave their names out")
        sentences = _listed(source)
    else:
        sentences = _read(wanted, wanted.label, "")
    texts = sentences.texts or [" ".join(words) for words in sentences.tokens]
    pool = SentencePool(source, texts, wanted.encoding, sentences=sentences, tokens=column, label=wanted.label)
    gold = {row: tags for row, tags in enumerate(sentences.labels) if tags is not None and None not in tags}
    pool.given = {row: _entities(tags, sentences.scheme) or [] for row, tags in gold.items()}
    for name in wanted.weak:
        found = _read(wanted, "", name)
        pool.weak[name] = [_entities(tags, found.scheme) for tags in found.weak]
    if wanted.rules is not None:
        from drift.weak.token_labeling import label_tokens

        tagged = label_tokens(sentences.tokens, wanted.rules, texts=sentences.texts)
        pool.weak[RULES] = [_entities(tags, "IOB2") for tags in tagged.tags]
    return pool


def _read(wanted: Request, label: str | None, weak: str) -> Sentences:
    column = wanted.tokens or wanted.text
    return read_sentences(wanted.source, tokens=column, label=label, weak=weak, encoding=wanted.encoding)


def _entities(tags: Sequence[str | None] | None, scheme: str) -> Entities | None:
    """The entities in tags; None if no word has a tag."""
    if tags is None or all(tag is None for tag in tags):
        return None
    plain = [NO_ENTITY if tag is None else tag for tag in tags] if scheme == "IO" else tags
    return [(span.start, span.end, span.type) for span in spans_of(plain, scheme)]


def _listed(source: Sequence[Any]) -> Sentences:
    """Sentences of a list, each a text or a list of words."""
    rows = [sentence_of(value, "the list of sentences", row) for row, value in enumerate(source)]
    rows = [row for row in rows if row.tokens]
    none: list[Any] = [None] * len(rows)
    raw = bool(rows) and all(row.text is not None for row in rows)
    texts, offsets = ([row.text or "" for row in rows], [row.offsets or [] for row in rows]) if raw else (None, None)
    return Sentences("the list of sentences", [row.tokens for row in rows], none, none, texts, offsets)
