"""Would more labels help? Accuracy against the number of labels, extrapolated with a power law.

Error rates of classifiers fall about as a power of the number of labels, towards a limit:

    error(m) = c + a m^-b,  a, c >= 0

The law is fitted to the errors of classifiers that were trained on parts of the labels, each scored on labels that it
did not see. Its uncertainty is that of two bootstraps together, over the labels that are scored and over the parts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from drift.errors import LabelError
from drift.quality.crossfit import chosen_strength, copies_of, fitted, folds_of

FOLDS, REPEATS = 5, 4
LEAST = 30  # labels of a table
SMALLEST = 10  # labels of the first point
POINTS = 7
MOST = 10_000  # labels that are used: more say little more about the curve, and take long
EXPONENTS = np.linspace(0.05, 1.5, 59)  # b
SAMPLES = 500
LEVELS = 0.05, 0.95  # of intervals
AHEAD = (1, 2, 4)  # times as many labels as there are


@dataclass(frozen=True)
class Law:
    """error(m) = c + a m^-b. Each may be an array, for several laws."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray

    def error(self, labels: float) -> np.ndarray:
        return np.asarray(self.c + self.a * float(labels) ** -self.b)


@dataclass(frozen=True)
class Point:
    """Accuracy with so many labels; low and high: its interval. measured: by cross-fitting, else extrapolated."""

    labels: int
    accuracy: float
    low: float
    high: float
    measured: bool


@dataclass(frozen=True)
class Curve:
    """Accuracy against the number of labels.

    name: of the table. labels, classes: how many there are. points: measured, then extrapolated. law: the fitted one.
    gain: accuracy that twice as many labels would add, with its interval.
    """

    name: str
    labels: int
    classes: int
    points: Sequence[Point]
    law: Law
    gain: tuple[float, float, float]

    @property
    def verdict(self) -> str:
        """The answer in one line."""
        gain, low, high = (100 * value for value in self.gain)
        size = f"{gain:.1f} points of accuracy (90 % interval {low:.1f} to {high:.1f})"
        if high < 1:
            return f"more labels would hardly help: twice as many would add {size}"
        if low > 1:
            return f"more labels would help: twice as many would add {size}"
        return f"more labels may help: twice as many would add {size}"


def learning_curve(
    vectors: np.ndarray,
    codes: np.ndarray,
    classes: int,
    *,
    name: str,
    seed: int = 0,
    tick: Callable[[], None] = lambda: None,
) -> Curve:
    """Accuracy against the number of labels, of logistic regressions on vectors.

    vectors: of the labelled rows, `(m, D)`. codes: class indices, `(m,)`. tick: called `FOLDS` * `REPEATS` times.
    """
    count = len(codes)
    if count < LEAST or len(np.unique(codes)) < 2:
        raise LabelError(
            f"{name} has {count} labels of {len(np.unique(codes))} classes; a curve takes {LEAST} of two or more"
        )
    if (different := copies_of(vectors).max() + 1) < LEAST:
        raise LabelError(f"only {different} rows with a label in {name} are different; a curve takes {LEAST}")
    kept = np.sort(np.random.default_rng(seed).permutation(count)[:MOST])
    vectors, codes = vectors[kept], codes[kept]
    sizes, errors, parts = measured_errors(vectors, codes, classes, seed=seed, tick=tick)
    law = fit_law(sizes, errors.mean(0)[None])
    rng = np.random.default_rng(seed)
    drawn = _bootstrap(errors, rng) + _bootstrap(parts, rng) - parts.mean(0)
    laws = fit_law(sizes, drawn)
    points = [
        Point(int(size), float(1 - errors[:, place].mean()), *_interval(1 - drawn[:, place]), True)
        for place, size in enumerate(sizes)
    ]
    points += [
        Point(count * times, float(1 - law.error(count * times)[0]), *_interval(1 - laws.error(count * times)), False)
        for times in AHEAD
    ]
    gains = laws.error(count) - laws.error(2 * count)
    gain = float((law.error(count) - law.error(2 * count))[0]), *_interval(gains)
    return Curve(name, count, classes, points, Law(law.a[0], law.b[0], law.c[0]), gain)


def measured_errors(
    vectors: np.ndarray, codes: np.ndarray, classes: int, *, seed: int, tick: Callable[[], None] = lambda: None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of labels, `(k,)`; how often each row was predicted wrongly, `(m, k)`; the error of each part, `(t, k)`.

    Each fold is predicted `REPEATS` times, from the first labels of the other folds in a random order.
    """
    fold_of = folds_of(vectors, codes, FOLDS, seed)
    largest = min(int((fold_of != fold).sum()) for fold in range(FOLDS))
    sizes = np.unique(np.geomspace(min(max(SMALLEST, 2 * classes), largest // 2), largest, POINTS).astype(int))
    rng = np.random.default_rng(seed)
    errors, parts = np.zeros((len(codes), len(sizes))), np.zeros((FOLDS * REPEATS, len(sizes)))
    strengths: dict[int, float] = {}
    for trial in range(FOLDS * REPEATS):
        held = fold_of == trial % FOLDS
        order = rng.permutation(np.flatnonzero(~held))
        for place, size in enumerate(sizes):
            rows = order[:size]
            if size not in strengths:
                strengths[size] = chosen_strength(
                    vectors[rows], codes[rows], folds_of(vectors[rows], codes[rows], FOLDS, seed), classes, seed=seed
                )
            predicted = fitted(vectors[rows], codes[rows], vectors[held], classes, strengths[size]).argmax(1)
            errors[held, place] += (predicted != codes[held]) / REPEATS
            parts[trial, place] = (predicted != codes[held]).mean()
        tick()
    return sizes, errors, parts


def fit_law(sizes: np.ndarray, errors: np.ndarray) -> Law:
    """Least squares of c + a m^-b, for each row of errors `(s, k)`: for every b of a grid, a and c in closed form."""
    best = np.full(len(errors), np.inf)
    a, b, c = np.zeros(len(errors)), np.zeros(len(errors)), errors.mean(1)
    weights = np.sqrt(sizes) / np.sqrt(sizes).sum()  # errors with many labels vary less, and are nearer to the question
    for exponent in EXPONENTS:
        x = sizes.astype(float) ** -exponent
        mean_x, mean_y = weights @ x, errors @ weights
        slope = np.maximum(((errors - mean_y[:, None]) * (x - mean_x)) @ weights / (weights @ (x - mean_x) ** 2), 0)
        level = mean_y - slope * mean_x
        # Where c would be negative, the line through the origin is the best one with c >= 0.
        through = np.maximum((errors * x) @ weights / (weights @ x**2), 0)
        slope, level = np.where(level < 0, through, slope), np.maximum(level, 0)
        loss = ((errors - level[:, None] - slope[:, None] * x) ** 2) @ weights
        better = loss < best - 1e-15
        best[better], a[better], b[better], c[better] = loss[better], slope[better], exponent, level[better]
    return Law(a, b, c)


def _bootstrap(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Means of resampled rows, `(SAMPLES, k)`. values: `(n, k)`."""
    count = len(values)
    return np.asarray(rng.multinomial(count, np.full(count, 1 / count), SAMPLES) @ values / count)


def _interval(values: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(values, LEVELS)
    return float(low), float(high)
