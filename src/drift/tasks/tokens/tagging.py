"""How good tags are: entities as seqeval counts them, strictly, or single tokens where tags have no B- and I-."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drift.data.tags import OUTSIDE, repaired


@dataclass(frozen=True)
class Tagging:
    """Scores of the tags of some sentences, from probabilities of all their words, one after another.

    tags: the class names, O among them. sizes: words of each sentence. entities: tags are B- and I-; an I- that
    continues nothing begins an entity. Without them a slot is its tokens, and scores count those that are not O.
    """

    tags: Sequence[str]
    sizes: np.ndarray
    entities: bool

    def __call__(self, probabilities: np.ndarray, labels: np.ndarray) -> dict[str, float]:
        """F1, precision, recall, and accuracy over all words. probabilities: `(n, C)`; labels: `(n,)`."""
        predicted = probabilities.argmax(-1)
        right, found, true = (len(targets) for targets in self._compared(predicted, labels))
        return {**_scores(right, found, true), "accuracy": float((predicted == labels).mean())}

    def by_type(self, probabilities: np.ndarray, labels: np.ndarray) -> dict[str, dict[str, float]]:
        """F1, precision, recall and the number of true ones, by type, and over all (micro)."""
        compared = self._compared(probabilities.argmax(-1), labels)
        kinds = self._kinds
        counts = np.array([np.bincount(targets % len(kinds), minlength=len(kinds)) for targets in compared])
        named = {**dict(zip(kinds, counts.T.tolist(), strict=True)), "all": counts.sum(1).tolist()}
        return {kind: {**_scores(*three), "true": three[-1]} for kind, three in named.items()}

    def sentences(self, codes: np.ndarray) -> list[list[str]]:
        """The tags of each sentence; with entities, repaired."""
        bounds = np.cumsum(self.sizes)[:-1]
        found = [[self.tags[code] for code in part] for part in np.split(codes, bounds)]
        return [[str(tag) for tag in repaired(tags)] for tags in found] if self.entities else found

    @property
    def _kinds(self) -> list[str]:
        return sorted({tag[2:] if self.entities else tag for tag in self.tags if tag != OUTSIDE})

    def _compared(self, predicted: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What was found rightly, what was found, and what is true."""
        found, true = self._targets(predicted), self._targets(labels)
        return np.intersect1d(found, true, assume_unique=True), found, true

    def _targets(self, codes: np.ndarray) -> np.ndarray:
        """A number for each entity, or each token that is not O; its remainder by the number of kinds is its kind.

        Counted with arrays: dev is looked at often, and sentences may be long.
        """
        kinds = self._kinds
        kind_of = [kinds.index(tag[2:] if self.entities else tag) if tag != OUTSIDE else -1 for tag in self.tags]
        kind = np.array(kind_of)[codes]
        begins, goes_on = kind >= 0, np.zeros(len(codes), dtype=bool)
        if self.entities:
            first = np.zeros(len(codes), dtype=bool)
            first[np.cumsum(self.sizes) - self.sizes] = True
            marked = np.array([tag.startswith("B-") for tag in self.tags])[codes]
            goes_on = begins & ~(marked | first | (kind != np.concatenate([[-1], kind[:-1]])))
            begins &= ~goes_on
        starts, stops = np.flatnonzero(begins), np.append(np.flatnonzero(~goes_on), len(codes))
        ends = stops[np.searchsorted(stops, starts, side="right")]
        targets: np.ndarray = (starts * (len(codes) + 1) + ends) * len(kinds) + kind[starts]
        return targets


def _scores(right: int, found: int, true: int) -> dict[str, float]:
    return {
        "f1": 2 * right / max(found + true, 1),
        "precision": right / max(found, 1),
        "recall": right / max(true, 1),
    }
