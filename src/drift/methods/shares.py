"""Class shares of unlabelled data, estimated without labels of it: the prior π that pseudo-labels are balanced towards.

Balancing pseudo-labels evenly, as in the paper, is harmful where classes are skewed: each batch is pushed to contain as
many rare examples as common ones. The shares of the start's predictions are much closer to the truth.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

LabelsAre = Literal["random", "per-class", "suggested"]

NOISE = 0.1  # Σ_j variance of a predicted share, times the number of labels; of linear heads, measured on texts
WEIGHT = 10.0  # labels that the predicted shares count for, beside labels that were drawn at random
WEAK = 30.0  # labels that weak labels are worth, however many they are, because their errors are not independent
UNSEEN = 0.5  # rows that are added to every class
LEAST_CORRECTED = 0.5  # of a predicted share that is left after the correction for errors
FLOOR = 0.05  # a class has at least this part of an equal share, so that it cannot vanish
SOFTNESS = 0.3  # temperature at which rows near a boundary are counted, in standard deviations of the logits
LOWEST = -30.0  # log-probabilities below this are taken for this, so that a few rows do not set the scale


@dataclass(frozen=True)
class Shares:
    """Estimated class shares. values: in class order, sum 1. source: what they are based on, for a reader.

    trust: how far predictions of the game may move the estimate, from 0 (not at all) to 1. Above 0 only if the labels
        say nothing about the shares.
    labels_are: how rows were chosen for labelling, if the estimate depends on it.
    """

    values: tuple[float, ...]
    source: str
    trust: float = 0.0
    labels_are: LabelsAre | None = None

    @property
    def refinable(self) -> bool:
        """Whether predictions of the game may improve the estimate."""
        return self.trust > 0


def estimate_shares(
    predicted: np.ndarray,
    labels: np.ndarray,
    *,
    labels_are: LabelsAre | None = None,
    weak: bool = False,
    biased: bool = True,
    noise: float = NOISE,
) -> Shares:
    """Estimate the class shares of unlabelled rows.

    The shares of the predicted classes, q, are shrunk towards equal shares u by how little is known (as by James and
    Stein), with m labels: q' = u + (1 - λ)(q - u), λ = min(1, noise / (m ‖q - u‖²)).

    If labels were chosen per class, the start takes all classes for equally common, and too many rows for rare ones.
    With a share a of right predictions, and errors spread evenly over the other classes,
    q' = a π + (1 - a)(1 - π)/(C - 1), which is solved for π. The mean confidence c of the start stands for a, half way
    to 1: a = (1 + c)/2.

    If labels were drawn at random, their counts n_j are evidence, too: π_j ∝ n_j + WEIGHT q'_j.

    If rows were suggested by a model, n_j lies between these two cases: doubtful rows are not of each class alike. The
    start takes classes for as common as their labels, so half of that is taken out before q is counted: predictions
    are divided by √n_j.

    predicted: the start's probabilities on unlabelled rows, `(n, C)`.
    labels: class indices of the labelled rows, `(m,)`.
    labels_are: how rows were chosen for labelling; default: as their counts suggest, see `likely_draw`.
    weak: labels are noisy. Rules and other sources cover some classes better than others, and the start learns that:
        predictions are divided by the shares among the labels before classes are counted, and weak labels together are
        worth `WEAK` labels.
    biased: with `weak`, whether the sources may cover some classes better than others. Class names do not: they label
        the same part of every class, and their predictions are counted as they are.
    noise: Σ_j variance of a predicted share, times the number of labels.
    """
    rows, C = predicted.shape
    counts = np.bincount(labels, minlength=C).astype(float)
    q = _predicted_shares(predicted)
    source = f"predictions of the start on {rows:,} unlabelled rows"
    if weak:
        share_of_labels = counts + UNSEEN
        q = _predicted_shares(predicted / share_of_labels) if biased else q
        shares, _ = _shrunk(q, noise / WEAK)
        if not biased:
            return Shares(_with_floor(shares), source)
        return Shares(_with_floor(shares), f"{source}, with the bias of the weak labels taken out")
    confidence = float(predicted.max(-1).mean())
    drawn = labels_are or likely_draw(counts, q, confidence)
    if drawn == "suggested":
        q = _predicted_shares(predicted / np.sqrt(counts + UNSEEN))
    shares, trust = _shrunk(q, noise / max(counts.sum(), 1))
    if drawn == "suggested":
        return Shares(_with_floor(shares), f"{source}; labels of suggested rows", trust, drawn)
    if drawn == "per-class":
        guess = "" if labels_are else ", as their counts suggest"
        shares = _corrected(shares, (1 + confidence) / 2)
        return Shares(_with_floor(shares), f"{source}; labels chosen per class{guess}", trust, drawn)
    shares = (counts + UNSEEN + WEIGHT * shares) / (counts.sum() + UNSEEN * C + WEIGHT)
    guess = "" if labels_are else ", as their counts suggest"
    drawn_labels = f"{int(counts.sum()):,} labels drawn at random{guess}"
    return Shares(_with_floor(shares), f"counts of {drawn_labels}; {source}", labels_are=drawn)


def likely_draw(counts: np.ndarray, shares: np.ndarray, sure: float = 1.0) -> LabelsAre:
    """How rows were probably chosen: at random if their counts fit the predicted shares better than equal shares.

    A start that is not sure says little about the shares: it may never predict a rare class of which there are labels.
    So the predicted shares q are mixed with those of the labels, f: sure q + (1 - sure) f. Equal counts always mean
    that rows were chosen per class.

    counts: labels per class, `(C,)`. shares: predicted, `(C,)`. sure: mean confidence of the start.
    """
    mixed = sure * shares + (1 - sure) * (counts + UNSEEN) / (counts + UNSEEN).sum()
    log_ratio = float((counts * (np.log(mixed) + np.log(len(mixed)))).sum())
    return "random" if log_ratio > 0 else "per-class"


def refine_shares(predicted: np.ndarray, shares: Shares) -> Shares:
    """Improve an estimate with predictions made during the game: few rows should lie near a boundary between classes.

    A game that is balanced towards wrong shares puts the boundary of a class where many rows are. With the student's
    logits z, biases b are chosen that minimise

        mean_x H(p(x)) / H(mean_x p(x)) + KL(π ‖ mean_x p(x)),   p(x) = softmax((z(x) + b) / T),   T = SOFTNESS std(z)

    starting from b = 0, and the new shares are π + t (mean_x p(x) - π), where t is the trust in the first estimate π.
    The first term is the part of the uncertainty about a class that remains when the row is known: 1 for any shares if
    rows say nothing, near 0 if boundaries run between clusters. π is always the first estimate: shares that follow the
    predictions alone would confirm themselves.

    predicted: the student's probabilities on unlabelled rows, `(n, C)`. shares: the first estimate.
    """
    z = np.log(np.maximum(predicted.astype(np.float64), np.exp(LOWEST)))
    z -= z.mean(-1, keepdims=True)
    z /= SOFTNESS * (float(z.std()) or 1.0)
    prior = np.array(shares.values)

    def objective(b: np.ndarray) -> tuple[float, np.ndarray]:
        log_p = log_softmax(z + b, axis=-1)
        p = np.exp(log_p)
        mean = p.mean(0)

        def slope(v: np.ndarray) -> np.ndarray:
            """Σ_c v_c ∂p_c/∂b, averaged over rows. v: `(C,)` or `(n, C)`."""
            return np.asarray((p * (v - (p * v).sum(-1, keepdims=True))).mean(0))

        H_row, H_mean = -(p * log_p).sum(-1).mean(), -(mean * np.log(mean)).sum()
        remaining = H_row / H_mean
        remaining_slope = (slope(-log_p) - remaining * slope(-np.log(mean))) / H_mean
        divergence, divergence_slope = float(prior @ np.log(prior / mean)), slope(-prior / mean)
        return remaining + divergence, remaining_slope + divergence_slope

    b = minimize(objective, np.zeros(len(prior)), jac=True, method="L-BFGS-B", options={"maxiter": 50}).x
    moved = np.exp(log_softmax(z + b, axis=-1)).mean(0)
    values = prior + shares.trust * (moved - prior)
    return replace(shares, values=_with_floor(values), source=f"{shares.source}; refined during the game")


def held_shares(shares: Shares, predicted: np.ndarray, held: np.ndarray) -> Shares:
    """The estimate, with the shares of some classes as the start predicts them. held: which, `(C,)`."""
    q, values = _predicted_shares(predicted), np.array(shares.values)
    others = values[~held].sum()
    values = np.where(held, q, values * (1 - q[held].sum()) / others if others else q)
    return replace(shares, values=_with_floor(values))


def predicted_shares(predicted: np.ndarray) -> Shares:
    """The shares of the predicted classes as they are. predicted: probabilities, `(n, C)`."""
    return Shares(
        _with_floor(_predicted_shares(predicted)), f"predictions of the start on {len(predicted):,} unlabelled rows"
    )


def _predicted_shares(predicted: np.ndarray) -> np.ndarray:
    counts = np.bincount(predicted.argmax(-1), minlength=predicted.shape[-1]) + UNSEEN
    return np.asarray(counts / counts.sum())


def label_shares(labels: np.ndarray, C: int) -> Shares:
    """The shares among the labels themselves."""
    counts = np.bincount(labels, minlength=C) + UNSEEN
    return Shares(_with_floor(counts / counts.sum()), f"counts of {len(labels):,} labels")


def _shrunk(shares: np.ndarray, noise: float) -> tuple[np.ndarray, float]:
    """Shares shrunk towards equal ones, and the part 1 - λ of their distance that is kept; see `estimate_shares`."""
    equal = 1 / len(shares)
    distance = float(((shares - equal) ** 2).sum())
    keep = 0.0 if noise >= distance else 1 - noise / distance
    return equal + keep * (shares - equal), keep


def _corrected(shares: np.ndarray, right: float) -> np.ndarray:
    """Shares of the true classes from those of the predictions. right: the share of right predictions."""
    wrong = (1 - right) / (len(shares) - 1)
    return np.maximum((shares - wrong) / (right - wrong), LEAST_CORRECTED * shares)


def _with_floor(shares: np.ndarray) -> tuple[float, ...]:
    raised = np.maximum(shares / shares.sum(), FLOOR / len(shares))
    return tuple((raised / raised.sum()).tolist())
