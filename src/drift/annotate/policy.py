"""Which text to ask about next, and why.

Every fifth text is drawn at random from all texts, whatever the model thinks: the audit, from which accuracy is
estimated. The others are chosen from a random sample of candidates. With u and d the ranks (0 to 1) of a text's
uncertainty and of the disagreement between the heads about it, f the rank of its distance to everything that was
labelled, ρ the rank of its similarity to its neighbours among the candidates, and m labels,

    score = w (u + d) / 2 + (1 - w) f + ρ / 2,   w = m / (m + 20)

With few labels the model does not know what it does not know, so texts that are unlike anything labelled come first;
later the model's own doubt decides. ρ keeps outliers away, from which nothing can be learned about other texts. Texts
are chosen one by one, and each choice changes f, so that one batch holds no near-copies.

Two rules keep rare classes from being overlooked, because a common class is denser and has more doubtful texts:

- Predicted classes take turns, in proportion to the square root of their shares, and ranks are those within a class.
- As long as all labels are of one class there is no model, and texts are drawn at random: ρ would ask for that class
  again, and f alone for so many outliers that the labels say nothing about how common a class is.
"""

from dataclasses import dataclass

import numpy as np

CANDIDATES = 1500  # rows that are compared; a random sample of more is as good, and takes constant time
NEIGHBOURS = 15  # whose mean similarity is the density of a row
HALF_WAY = 20.0  # labels at which the model's doubt counts as much as novelty
DENSITY = 0.5  # weight of ρ
AUDIT_EVERY = 5

REASONS = ("disagree", "unsure", "novel", "typical", "random", "waiting")
DISAGREE, UNSURE, NOVEL, TYPICAL, RANDOM, WAITING = REASONS  # waiting: at random, as there is no model yet


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
    predicted: np.ndarray | None = None,
    seed: int = 0,
) -> Ranked:
    """Choose `count` rows.

    vectors: of all texts, `(n, D)`. free: rows to choose from. labeled: rows with a label, or that were skipped.
    uncertainty, disagreement, predicted: doubt about all texts and their predicted classes, each `(n,)`, if there is a
        model. Without predicted classes, rows compete with each other directly.
    """
    generator = np.random.default_rng((seed, 2))
    if uncertainty is None and len(labeled):
        drawn = generator.permutation(free)[:count]
        return Ranked(drawn, [WAITING] * len(drawn))
    groups, turns = _groups(free, predicted, generator)
    parts = [_Group(_unit(vectors[rows])) for rows in groups]
    w = 0.0 if uncertainty is None else len(labeled) / (len(labeled) + HALF_WAY)
    for part, rows in zip(parts, groups, strict=True):
        part.density = DENSITY * _ranks(_densities(part.x))
        if len(labeled):
            part.near = _nearest(part.x, _unit(vectors[labeled]))
        if uncertainty is not None:
            u = _ranks(uncertainty[rows])
            d = u if disagreement is None else _ranks(disagreement[rows])
            part.doubt, part.reason = w * (u + d) / 2, np.where(d >= u, DISAGREE, UNSURE)
    return _in_turns(groups, parts, turns, w, count)


def _groups(
    free: np.ndarray, predicted: np.ndarray | None, generator: np.random.Generator
) -> tuple[list[np.ndarray], np.ndarray]:
    """Candidates by predicted class, a random sample of each, and the part of the questions that each gets, `(g,)`."""
    _, classes, counts = np.unique(
        np.zeros(len(free)) if predicted is None else predicted[free], return_inverse=True, return_counts=True
    )
    turns = np.sqrt(counts) / np.sqrt(counts).sum()
    shuffled = generator.permutation(len(free))
    groups = []
    for code, part in enumerate(turns):
        own = free[shuffled[classes[shuffled] == code]]
        groups.append(np.sort(own[: int(np.ceil(part * CANDIDATES))]))
    return groups, turns


class _Group:
    """Candidates with the same predicted class. x: unit vectors, `(n, D)`. near: similarity to the nearest label."""

    def __init__(self, x: np.ndarray) -> None:
        self.x, self.near = x, np.empty(0)
        self.density, self.doubt = np.zeros(len(x)), np.zeros(len(x))
        self.reason = np.full(len(x), UNSURE)
        self.open = np.ones(len(x), dtype=bool)

    def best(self, w: float) -> tuple[int, str]:
        """The row with the best score, and the reason. w: weight of doubt."""
        if not len(self.near):
            return int(np.where(self.open, self.density, -np.inf).argmax()), TYPICAL
        novelty = (1 - w) * _ranks(-self.near)
        row = int(np.where(self.open, self.doubt + novelty + self.density, -np.inf).argmax())
        return row, str(self.reason[row]) if self.doubt[row] >= novelty[row] else NOVEL

    def saw(self, x: np.ndarray) -> None:
        """A text was chosen. x: its unit vector."""
        similar = self.x @ x
        self.near = np.maximum(self.near, similar) if len(self.near) else similar


def _in_turns(groups: list[np.ndarray], parts: list[_Group], turns: np.ndarray, w: float, count: int) -> Ranked:
    """Take the best row of one group after the other. turns: the part of the rows that each group gets, `(g,)`."""
    rows: list[int] = []
    reasons: list[str] = []
    given = np.zeros(len(parts))
    for _ in range(min(count, sum(map(len, groups)))):
        left = np.array([part.open.any() for part in parts])
        group = int(np.where(left, turns * (len(rows) + 1) - given, -np.inf).argmax())
        row, reason = parts[group].best(w)
        parts[group].open[row] = False
        given[group] += 1
        rows.append(int(groups[group][row]))
        reasons.append(reason)
        for part in parts:
            part.saw(parts[group].x[row])
    return Ranked(np.array(rows, dtype=np.int64), reasons)


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
