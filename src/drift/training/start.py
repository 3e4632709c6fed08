"""The start of a run, kept during the game: to report what the game gained, and to return to it without a dev set.

The predictions of the start on the test set are made when the start is finished and scored at the end, with those of
the final student. No choice depends on them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from drift.data.examples import Labeled
from drift.data.folds import LeftOut
from drift.methods.shares import Shares
from drift.training.convergence import changed_share
from drift.training.evaluation import predict
from drift.training.flips import watched_classes

if TYPE_CHECKING:
    from drift.training.trainer import Trainer

Observe = Callable[[], Mapping[str, Labeled]]

LEFT_OUT = "left out"  # labels that were left out for cross-fitting, among the predictions of the start
WATCHED = 2048  # unlabelled rows from which the class shares of predictions are taken
DRIFT = 0.35  # total variation between the shares that were aimed at and those of the final predictions
MOST_CHANGED = 0.5  # of the answers outside the commonest class, where no class shares were aimed at
FOLLOWED = 512  # labelled rows on which the game is compared with its start
LEFT = 0.2  # of the labelled answers outside the commonest class: more than the start that left their labels
CLEARLY = 2.0  # standard errors by which the game must have fewer left-out labels right
LESS_AGREED = 0.08  # of the answers: how much less heads of different labels may agree than at the start


@dataclass
class Start:
    """What is kept of θinit. predictions: probabilities by part. weights: empty if a dev set chooses the student."""

    predictions: dict[str, Tensor] = field(default_factory=dict)
    weights: dict[str, Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, run: "Trainer") -> "Start":
        """The start of a run whose first phase has just ended."""
        if not run.lengths[1] and not run.keeps_start:  # the start is the result
            return cls()
        parts = dict(run.observe()) if run.observe is not None else {}
        if run.data.left_out is not None:
            parts[LEFT_OUT] = run.data.left_out
        weights = {}
        if run.may_return:
            weights = {name: value.detach().clone() for name, value in run.method.student.state_dict().items()}
        return cls({name: predictions_on(run, part) for name, part in parts.items()}, weights)

    def state_dict(self) -> dict[str, Any]:
        return {"predictions": self.predictions, "weights": self.weights}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.predictions, self.weights = dict(state["predictions"]), dict(state["weights"])


@dataclass(frozen=True)
class Choice:
    """Which student is kept, chosen without a dev set. start_kept: one entry per trial. reason: for a reader."""

    start_kept: tuple[bool, ...]
    reason: str = ""


def predictions_on(run: "Trainer", part: Labeled) -> Tensor:
    """Probabilities of the student on a part, `(n, C)` or `(trials, n, C)`."""
    return predict(run.method, part.examples, part.rows, run.machine, trials=run.trials)


def choose(run: "Trainer") -> Choice:
    """Keep the game of each trial, or return to its start.

    A game is given up if the class shares of its predictions have drifted away from those that pseudo-labels were
    balanced towards, as they do when a class is taken over by another; without balancing, if most answers outside the
    commonest class have changed since the start, or if it follows weak labels that it learned from, too, clearly less
    than the start does. If each trial left out other labels, all are judged together: the game is given up if it has
    clearly fewer of these labels right than the start (their likelihood would blame the game for its confidence, which
    the temperature corrects), or if the trials agree less than at the start, because each followed its own labels.
    """
    trials = run.trials or 1
    if run.keeps_start:
        return Choice((True,) * trials, run.data.start_suffices)
    if (left_out := run.data.left_out) is not None:
        before, after = run.start.predictions[LEFT_OUT], predictions_on(run, left_out)
        if reason := _less_right(before, after, left_out, run.method.shares) or _less_agreed(run):
            return Choice((True,) * trials, reason)
    if run.data.unlabeled is None:
        return Choice((False,) * trials)
    if not run.method.shares:
        return _stable(run)
    classes = watched_classes(run.method, run.data.unlabeled, run.machine, WATCHED)
    drifts = _drifts(run.method.shares, classes.reshape(trials, -1).numpy())
    reason = (
        f"class shares drifted away from the estimate by {100 * max(drifts):.0f} points" if max(drifts) > DRIFT else ""
    )
    return Choice(tuple(drift > DRIFT for drift in drifts), reason)


def _stable(run: "Trainer") -> Choice:
    """Return to the start if the game's answers have moved away from it, or from the labels of both phases."""
    assert run.data.unlabeled is not None
    trials, before = run.trials or 1, run.first_classes
    if before is None or getattr(run.method.settings, "class_mass", True):
        return Choice((False,) * trials)
    changed = changed_share(before, watched_classes(run.method, run.data.unlabeled, run.machine))
    if changed > MOST_CHANGED:
        reason = f"{100 * changed:.0f} % of the answers outside the commonest class changed"
        return Choice((True,) * trials, reason)
    return _follows_labels(run) if run.data.weak and run.settings.keep_weak_labels else Choice((False,) * trials)


def _follows_labels(run: "Trainer") -> Choice:
    """Return to the start if the game gives clearly fewer labelled rows their label."""
    trials, after = run.trials or 1, _left_labels(run)
    game = {name: value.detach().clone() for name, value in run.method.student.state_dict().items()}
    run.method.student.load_state_dict(run.start.weights)
    before = _left_labels(run)
    run.method.student.load_state_dict(game)
    left = after - before > LEFT
    reason = f"{100 * after:.0f} % of the weak labels are not followed, by the start {100 * before:.0f} %"
    return Choice((left,) * trials, reason if left else "")


def _left_labels(run: "Trainer") -> float:
    """The share of labelled answers that differ from their label, among those outside the commonest class."""
    rows, labels = run.data.labeled.first(FOLLOWED)
    predicted = predict(run.method, run.data.labeled.examples, rows, run.machine, trials=run.trials).argmax(-1)
    known = labels >= 0
    return changed_share(predicted[known], labels[known])


def _drifts(shares: Sequence[Shares], classes: np.ndarray) -> list[float]:
    """Total variation between expected and predicted shares, for each trial. classes: predicted, `(trials, n)`."""
    pairs = zip(shares, classes, strict=True)
    return [
        float(np.abs(np.bincount(row, minlength=len(each.values)) / len(row) - each.values).sum() / 2)
        for each, row in pairs
    ]


def _less_right(before: Tensor, after: Tensor, part: Labeled, shares: Sequence[Shares]) -> str:
    """Why the start is better on left-out labels; empty if it is not. before, after: `(trials, h, C)`.

    The heads that left out the same label predict it together, as the averaged head that is kept would.
    """
    left_out = LeftOut.of(part.rows.numpy(), part.labels.numpy())
    weights = left_out.weights([each.values for each in shares])
    old, new = ((left_out.combined(p.numpy()).argmax(-1) == left_out.codes).astype(float) for p in (before, after))
    change = float(weights @ (new - old))
    m = len(weights)
    error = float(np.sqrt((weights**2 @ (new - old - change) ** 2) * m / max(1, m - 1)))
    if m < 2 or change >= -CLEARLY * error:
        return ""
    return (
        f"of the labels that were left out, the start has {100 * weights @ old:.0f} % right and the game"
        f" {100 * weights @ new:.0f} %"
    )


def _less_agreed(run: "Trainer") -> str:
    """Why the game is unstable; empty if it is not. Its heads should agree more than those of the start, or as much."""
    if run.data.unlabeled is None or run.first_classes is None:
        return ""
    after = agreement(watched_classes(run.method, run.data.unlabeled, run.machine))
    before = agreement(run.first_classes)
    if before - after <= LESS_AGREED:
        return ""
    return (
        "self-training was unstable: heads that leave out different labels agree on"
        f" {100 * after:.0f} % of the answers, at the start on {100 * before:.0f} %"
    )


def agreement(classes: Tensor) -> float:
    """How often two of the trials give a row the same class, over all pairs. classes: `(trials, n)`."""
    trials = len(classes)
    votes = torch.nn.functional.one_hot(classes).sum(0)  # (n, C)
    pairs = (votes * (votes - 1)).sum(-1).double().mean()
    return float(pairs / (trials * (trials - 1))) if trials > 1 else 1.0


def back_to_start(run: "Trainer", choice: Choice) -> None:
    """Give the trials that keep their start its weights."""
    if not any(choice.start_kept):
        return
    kept = torch.tensor(choice.start_kept)
    state = dict(run.method.student.state_dict())
    for name, value in run.start.weights.items():
        if run.trials is None:
            state[name] = value
        else:
            state[name] = state[name].clone()
            state[name][kept] = value[kept]
    run.method.student.load_state_dict(state)
