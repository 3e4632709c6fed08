"""Scores of tags: strict entity scores, as seqeval has them, or scores of single tokens if tags have no B- and I-."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drift.data.tags import OUTSIDE, repaired
from drift.tasks.tokens.decoding import decoded


@dataclass(frozen=True)
class Tagging:
    """Scores the tags of some sentences from the probabilities of all their words, sentence after sentence.

    tags: the class names, with O. sizes: number of words of each sentence.
    entities: tags are B- and I-; in given tags, an I- without a B- before it starts an entity. Otherwise every token
        that is not O counts by itself.
    restart: the log-odds with which an entity begins right after another one; see `restart_odds`.
    """

    tags: Sequence[str]
    sizes: np.ndarray
    entities: bool
    restart: float = 0.0

    def __call__(self, probabilities: np.ndarray, labels: np.ndarray) -> dict[str, float]:
        """The scores of the most likely valid tags. probabilities: `(n, C)`; labels: `(n,)`."""
        return self.scores(self.decoded(probabilities), labels)

    def decoded(self, probabilities: np.ndarray) -> np.ndarray:
        """The most likely valid tags, `(n,)`."""
        tags = self.tags[: probabilities.shape[1]]
        return decoded(probabilities, self.sizes, tags, self.restart, entities=self.entities)

    def scores(self, predicted: np.ndarray, labels: np.ndarray) -> dict[str, float]:
        """F1, precision, recall, and accuracy over all words. predicted, labels: `(n,)`."""
        right, predicted_count, true = (len(spans) for spans in self._compared(predicted, labels))
        return {**_scores(right, predicted_count, true), "accuracy": float((predicted == labels).mean())}

    def by_type(self, predicted: np.ndarray, labels: np.ndarray) -> dict[str, dict[str, float]]:
        """F1, precision, recall and the number of true spans, by type and over all types ("all", micro average)."""
        compared = self._compared(predicted, labels)
        types = self._types
        counts = np.array([np.bincount(spans % len(types), minlength=len(types)) for spans in compared])
        by_type = {**dict(zip(types, counts.T.tolist(), strict=True)), "all": counts.sum(1).tolist()}
        return {name: {**_scores(*three), "true": three[-1]} for name, three in by_type.items()}

    def sentences(self, codes: np.ndarray) -> list[list[str]]:
        """The tags of each sentence; with entities, repaired."""
        bounds = np.cumsum(self.sizes)[:-1]
        sentences = [[self.tags[code] for code in part] for part in np.split(codes, bounds)]
        return [[str(tag) for tag in repaired(tags)] for tags in sentences] if self.entities else sentences

    @property
    def _types(self) -> list[str]:
        return sorted({tag[2:] if self.entities else tag for tag in self.tags if tag != OUTSIDE})

    def _compared(self, predicted: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Spans that were predicted rightly, all predicted spans, and the true ones."""
        spans, true = self._spans(predicted), self._spans(labels)
        return np.intersect1d(spans, true, assume_unique=True), spans, true

    def _spans(self, codes: np.ndarray) -> np.ndarray:
        """One number per entity, or per token that is not O; its remainder by the number of types is its type.

        Computed with arrays: dev is evaluated often, and sentences may be long.
        """
        types = self._types
        type_of = [types.index(tag[2:] if self.entities else tag) if tag != OUTSIDE else -1 for tag in self.tags]
        of_word = np.array(type_of)[codes]
        begins, continues = of_word >= 0, np.zeros(len(codes), dtype=bool)
        if self.entities:
            first = np.zeros(len(codes), dtype=bool)
            first[np.cumsum(self.sizes) - self.sizes] = True
            marked = np.array([tag.startswith("B-") for tag in self.tags])[codes]
            continues = begins & ~(marked | first | (of_word != np.concatenate([[-1], of_word[:-1]])))
            begins &= ~continues
        starts, stops = np.flatnonzero(begins), np.append(np.flatnonzero(~continues), len(codes))
        ends = stops[np.searchsorted(stops, starts, side="right")]
        spans: np.ndarray = (starts * (len(codes) + 1) + ends) * len(types) + of_word[starts]
        return spans


def _scores(right: int, predicted: int, true: int) -> dict[str, float]:
    return {
        "f1": 2 * right / max(predicted + true, 1),
        "precision": right / max(predicted, 1),
        "recall": right / max(true, 1),
    }
