"""Which rows to label next: doubtful ones, from everywhere in the data.

The doubt of a row is 1 minus the margin between its two most likely classes, where the probabilities are the mean over
all heads: heads that are sure of different classes leave as much doubt as heads that are not sure. Rows are clustered
by k-means with weight doubt², one cluster per row that is wanted, and the row nearest to the centre of each is chosen:
so clusters are small where there is much doubt, and no two rows are about the same. This is diverse mini-batch active
learning (Zhdanov, 2019), with the weights squared; docs/results/suggest.md compares it with random rows.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from heapq import heappush, heapreplace
from typing import Any

import numpy as np

POOL = 2000  # candidates that are kept, however long the table is
PER_ROW = 10  # candidates that are kept at least, per row that is wanted
ITERATIONS = 20
MOST_CLUSTERS = 500  # of more rows than that, a cluster gives several


def doubt(probabilities: np.ndarray) -> np.ndarray:
    """1 - (p_first - p_second), in [0, 1]. probabilities: `(n, C)`, or `(heads, n, C)` for the mean of heads."""
    mean = probabilities.mean(0) if probabilities.ndim == 3 else probabilities
    if mean.shape[1] < 2:
        return np.zeros(len(mean))
    ordered = np.sort(mean, axis=1)
    return np.asarray(1 - (ordered[:, -1] - ordered[:, -2]), dtype=float)


def disagreement(probabilities: np.ndarray) -> np.ndarray:
    """The share of heads whose class is not the commonest one, `(n,)`. probabilities: `(heads, n, C)`."""
    votes = probabilities.argmax(-1)
    counts = np.stack([(votes == code).sum(0) for code in range(probabilities.shape[-1])])
    return np.asarray(1 - counts.max(0) / len(votes))


@dataclass
class Pool:
    """A random sample of candidates, drawn without replacement with probabilities that grow with the weights.

    Each candidate gets the key log(u) / weight, u uniform in (0, 1); those with the largest keys are kept (Efraimidis
    and Spirakis, 2006). If there are fewer than `size` candidates, all are kept. Equal candidates are kept once.

    seed: of u.
    """

    size: int
    seed: int = 0
    _heap: list[tuple[float, int, Any]] = field(default_factory=list)
    _kept: set[Hashable] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._count = 0

    def add(self, candidate: Any, weight: float, identity: Hashable) -> None:
        """Offer a candidate. identity: equal for copies."""
        self._count += 1
        key = float(np.log(self._random.random() + 1e-300)) / max(weight, 1e-9)
        if identity in self._kept or (len(self._heap) == self.size and key <= self._heap[0][0]):
            return
        entry = (key, -self._count, (candidate, identity))
        self._kept.add(identity)
        if len(self._heap) < self.size:
            heappush(self._heap, entry)
        else:
            self._kept.discard(heapreplace(self._heap, entry)[-1][1])

    def candidates(self) -> list[Any]:
        """Those that were kept, in the order in which they were offered."""
        return [candidate for *_, (candidate, _) in sorted(self._heap, key=lambda entry: -entry[1])]


def spread_rows(
    vectors: Any,
    doubts: np.ndarray,
    most: int,
    *,
    alike: Callable[[int, list[int]], bool] = lambda row, chosen: False,
    seed: int = 0,
) -> list[int]:
    """At most `most` rows, doubtful and different from each other, the most doubtful first.

    vectors: `(n, D)`, dense or sparse. doubts: `(n,)`. alike: whether a row is a near-copy of a chosen one; such rows
    are not chosen. seed: of the clusters.
    """
    from sklearn.cluster import KMeans

    count = len(doubts)
    ranked = np.argsort(-doubts, kind="stable")
    if count <= most:
        order = [int(row) for row in ranked]
    else:
        weights = np.maximum(doubts, 1e-3) ** 2  # sure rows count a little, so that there are enough clusters
        clusters = KMeans(min(most, MOST_CLUSTERS), n_init=1, max_iter=ITERATIONS, random_state=seed).fit(
            vectors, sample_weight=weights
        )
        distance = clusters.transform(vectors)[np.arange(count), clusters.labels_]
        # The nearest of each cluster, then the second nearest, and so on, for clusters of near-copies.
        place = np.empty(count, dtype=np.int64)
        for label in range(clusters.n_clusters):
            rows = np.flatnonzero(clusters.labels_ == label)
            place[rows[np.argsort(distance[rows], kind="stable")]] = np.arange(len(rows))
        order = [int(row) for row in np.lexsort((-doubts, place))]
    chosen: list[int] = []
    for row in order:
        if len(chosen) == most:
            break
        if not alike(row, chosen):
            chosen.append(row)
    return sorted(chosen, key=lambda row: -doubts[row])
