"""Callbacks that end a phase of `DriftClassifier` when it has converged."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from drift.training.callbacks import Callback, TrainingState

WINDOW = 50  # steps between two looks
PATIENCE = 2  # looks without progress that end the phase


class LossPlateau(Callback):
    """Ends a phase when the mean loss of 50 steps has twice fallen by less than `least` of the best mean so far."""

    def __init__(self, least: float = 0.02) -> None:
        self.least, self.losses = least, list[float]()
        self.best, self.waited = float("inf"), 0

    def on_step_end(self, state: TrainingState) -> None:
        self.losses.append(state.loss)
        if len(self.losses) < WINDOW:
            return
        mean = float(np.mean(self.losses))
        self.losses.clear()
        self.waited = 0 if mean < self.best * (1 - self.least) else self.waited + 1
        self.best = min(self.best, mean)
        state.stop |= self.waited >= PATIENCE


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
        state.stop |= self.waited >= PATIENCE
