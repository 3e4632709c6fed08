"""Which text to ask about next, and why.

Every fifth text is drawn at random from all texts, whatever the model thinks: the audit, from which accuracy is
estimated. The others are chosen from a random sample of candidates. With u and d the ranks (0 to 1) of a text's
uncertainty and of the disagreement between the heads about it, f the rank of its distance to everything that was
labelled, ρ the rank of its similarity to its neighbours among the candidates, and m labels,

    score = w (u + d) / 2 + (1 - w) f + ρ / 2,   w = m / (m + 20)

With few labels the model does not know what it does not know, so texts that are unlike anything labelled come first;
later the model's own doubt decides. ρ keeps outliers away, from which nothing can be learned about other texts. Texts
are chosen one by one, and each choice changes f, so that one batch holds no near-copies.
"""

from dataclasses import dataclass

import numpy as np

CANDIDATES = 1500  # rows that are compared; a random sample of more is as good, and takes constant time
NEIGHBOURS = 15  # whose mean similarity is the density of a row
HALF_WAY = 20.0  # labels at which the model's doubt counts as much as novelty
DENSITY = 0.5  # weight of ρ
AUDIT_EVERY = 5

DISAGREE, UNSURE, NOVEL, TYPICAL, RANDOM = REASONS = ("disagree", "unsure", "novel", "typical", "random")


@dataclass(frozen=True)
class Ranked:
    """Rows to ask about, the best first, and one of `REASONS` for each."""

    rows: np.ndarray
    reasons: list[str]


class Audit:
    """The random order in which texts are audited. rows: those that can be labelled."""

    def __init__(self, rows: np.ndarray, seed: int) -> None:
        self.order = np.random.default_rng((seed, 1)).permutation(rows)
        self.place = {int(row): place for place, row in enumerate(self.order)}

    def passed(self, answered: list[int]) -> np.ndarray:
        """The sample so far: all rows up to the last one that was drawn and answered, in the order of the audit.

        Rows in between that had a label already are part of the sample: leaving them out would favour hard ones.
        """
        places = [self.place[row] for row in answered if row in self.place]
        return self.order[: max(places, default=-1) + 1]

    def next(self, taken: np.ndarray, answered: list[int]) -> int | None:
        """The first row of the order, after those that were passed, that is not taken. taken: flags, `(n,)`."""
        rest = self.order[len(self.passed(answered)) :]
        free = rest[~taken[rest]]
        return int(free[0]) if len(free) else None


def is_audit(answered: int, every: int = AUDIT_EVERY) -> bool:
    """Whether the next question is an audit. answered: questions before it."""
    return every > 0 and (answered + 1) % every == 0


def choose(
    vectors: np.ndarray,
    free: np.ndarray,
    labeled: np.ndarray,
    count: int,
    *,
    uncertainty: np.ndarray | None = None,
    disagreement: np.ndarray | None = None,
    seed: int = 0,
) -> Ranked:
    """Choose `count` rows.

    vectors: of all texts, `(n, D)`. free: rows to choose from. labeled: rows with a label, or that were skipped.
    uncertainty, disagreement: about all texts, both `(n,)`, if there is a model.
    """
    generator = np.random.default_rng((seed, 2))
    rows = np.sort(generator.permutation(free)[:CANDIDATES])
    if not len(rows):
        return Ranked(rows, [])
    x = _unit(vectors[rows])
    density = _ranks(_densities(x))
    near = _nearest(x, _unit(vectors[labeled])) if len(labeled) else None
    w = 0.0
    doubt = np.zeros(len(rows))
    reason_of_doubt = np.full(len(rows), UNSURE)
    if uncertainty is not None:
        u = _ranks(uncertainty[rows])
        d = u if disagreement is None else _ranks(disagreement[rows])
        doubt, w = (u + d) / 2, len(labeled) / (len(labeled) + HALF_WAY)
        reason_of_doubt = np.where(d >= u, DISAGREE, UNSURE)
    return _greedy(rows, x, near, density, doubt, w, reason_of_doubt, count)


def _greedy(
    rows: np.ndarray,
    x: np.ndarray,
    near: np.ndarray | None,
    density: np.ndarray,
    doubt: np.ndarray,
    w: float,
    reason_of_doubt: np.ndarray,
    count: int,
) -> Ranked:
    """Take the row with the best score, again and again. near: similarity to the nearest labelled row, `(n,)`."""
    chosen: list[int] = []
    reasons: list[str] = []
    open_ = np.ones(len(rows), dtype=bool)
    for _ in range(min(count, len(rows))):
        novelty = np.zeros(len(rows)) if near is None else _ranks(-near)
        score = w * doubt + (1 - w) * novelty + DENSITY * density
        score[~open_] = -np.inf
        best = int(score.argmax())
        if near is None:
            reasons.append(TYPICAL)
        else:
            reasons.append(str(reason_of_doubt[best]) if w * doubt[best] >= (1 - w) * novelty[best] else NOVEL)
        chosen.append(best)
        open_[best] = False
        similar = x @ x[best]
        near = similar if near is None else np.maximum(near, similar)
    return Ranked(rows[chosen], reasons)


def _unit(x: np.ndarray) -> np.ndarray:
    x = np.asarray(x, dtype=np.float32)
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12))


def _nearest(x: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The similarity of each row to its nearest among others, `(n,)`."""
    return np.asarray((x @ others.T).max(1))


def _densities(x: np.ndarray) -> np.ndarray:
    """The mean similarity of each row to its nearest neighbours, `(n,)`."""
    k = min(NEIGHBOURS, len(x) - 1)
    if k < 1:
        return np.zeros(len(x))
    means = []
    for part in np.array_split(x, max(1, len(x) // 512)):
        similar = np.partition(part @ x.T, -(k + 1), axis=1)[:, -(k + 1) :]  # with the row itself
        means.append((similar.sum(1) - similar.max(1)) / k)
    return np.concatenate(means)


def margin_doubt(p: np.ndarray) -> np.ndarray:
    """How little the most likely class is ahead of the second, `(n,)`: 0 if it is certain. p: `(n, C)`."""
    if p.shape[1] < 2:
        return np.zeros(len(p))
    two = np.partition(p, -2, axis=1)[:, -2:]
    return np.asarray(1 - (two[:, 1] - two[:, 0]))


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 0 to 1, `(n,)`; equal values have equal ranks."""
    if len(values) < 2:
        return np.zeros(len(values))
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts + 1) / 2)[inverse] / (len(values) - 1))
