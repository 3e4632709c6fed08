"""After training: which model is kept, how it is calibrated, and an estimate of its accuracy without a test set."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import softmax

from drift.data.folds import LeftOut
from drift.runs.result import Predictions
from drift.tasks import Task
from drift.tasks.calibration import fit_temperature
from drift.tasks.scoring import wilson_interval
from drift.training.outcome import Outcome
from drift.training.start import LEFT_OUT

CAUTION = 100  # left-out labels of which the temperature is half way, in its logarithm, between 1 and the fitted one


@dataclass(frozen=True)
class Kept:
    """The model to keep.

    position: of its seed among the seeds; None for the average of all seeds. because: for a reader.
    temperature: that calibrates it; None if there were no labels to fit it on.
    """

    position: int | None
    because: str
    temperature: float | None = None

    def probabilities(self, by_seed: np.ndarray) -> np.ndarray:
        """The predictions of the model, `(n, C)`, from those of all seeds, `(seeds, n, C)`.

        The mean of log p is the mean of the logits up to a constant per row: the same as of the averaged linear head.
        """
        if self.position is not None:
            return np.asarray(by_seed[self.position])
        tiny = np.finfo(np.float32).tiny
        return np.asarray(softmax(np.log(np.maximum(by_seed, tiny)).mean(0), axis=-1))


def keep(task: Task, outcome: Outcome, dev: Predictions | None, dev_scores: Any) -> Kept:
    """Choose the model. dev_scores: the best dev score of each seed, if there is a dev set."""
    seeds = len(task.seeds)
    if task.kind.averaged and task.same_labels and seeds > 1:
        kept = Kept(None, f"the average of {seeds} heads")
    elif dev is not None:
        kept = Kept(int(np.argmax(dev_scores)), "best on dev")
    else:
        kept = Kept(0, "first: there is no dev set to choose by")
    if dev is not None:
        return replace(kept, temperature=fit_temperature(kept.probabilities(dev.probabilities), dev.labels))
    fitted = cross_fitted(outcome)
    if fitted is None:
        return kept
    # One wrong label of ten would flatten all probabilities, and the average is surer than the heads it was fitted on.
    labels = fitted.left_out.codes
    temperature = fit_temperature(fitted.final, labels)
    return replace(kept, temperature=temperature ** (len(labels) / (len(labels) + CAUTION)))


@dataclass(frozen=True)
class CrossFitted:
    """Predictions of gold labels by heads that were not trained on them. start, final: `(m, C)`."""

    start: np.ndarray
    final: np.ndarray
    left_out: LeftOut


def cross_fitted(outcome: Outcome) -> CrossFitted | None:
    """Combine the heads that left out the same label. None if none was left out."""
    if outcome.left_out is None:
        return None
    part, final = outcome.left_out
    left_out = LeftOut.of(part.rows.numpy(), part.labels.numpy())
    start = outcome.start_predictions.get(LEFT_OUT, final)
    return CrossFitted(left_out.combined(start.numpy()), left_out.combined(final.numpy()), left_out)


def estimate(outcome: Outcome) -> dict[str, Any] | None:
    """The cross-fitted accuracy of start and result, with an interval. The result may be the start, if it was kept.

    Labels of a class together weigh as much as the estimated share of the class. The interval is for as many labels as
    the weights are worth.
    """
    fitted = cross_fitted(outcome)
    if fitted is None:
        return None
    labels = fitted.left_out.codes
    weights = fitted.left_out.weights([each.values for each in outcome.shares])
    start, final = (float(weights @ (p.argmax(-1) == labels)) for p in (fitted.start, fitted.final))
    return {
        "labels": len(labels),
        "start": start,
        "accuracy": final,
        "interval": wilson_interval(min(final, 1.0), float(1 / np.square(weights).sum())),
    }
