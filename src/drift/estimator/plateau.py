"""Callbacks that end a phase of `DriftClassifier` when it has converged."""

from collections.abc import Callable

import torch
from torch import Tensor

from drift.training.callbacks import Callback, TrainingState
from drift.training.plateau import STABLE, Plateau

WINDOW = 50  # steps between two looks


class LossPlateau(Callback):
    """Ends a phase when the mean loss of 50 steps has twice fallen by less than `least` of the best mean so far."""

    def __init__(self, least: float = 0.02) -> None:
        self.plateau = Plateau(WINDOW, least, relative_to="best")

    def on_step_end(self, state: TrainingState) -> None:
        state.stop |= self.plateau.add(state.loss)


class PredictionPlateau(Callback):
    """Ends a phase when at most `most` of the predicted labels of some rows changed, twice in a row, in 50 steps.

    predict: returns the student's predicted labels of these rows. most: share of the rows.
    """

    def __init__(self, predict: Callable[[], Tensor], most: float = 0.005) -> None:
        self.predict, self.most = predict, most
        self.last = predict()
        self.waited = 0

    def on_step_end(self, state: TrainingState) -> None:
        if state.step % WINDOW:
            return
        labels = self.predict()
        changed = float((labels != self.last).to(torch.float64).mean())
        self.last = labels
        self.waited = self.waited + 1 if changed <= self.most else 0
        state.stop |= self.waited >= STABLE
