"""Training of `DriftClassifier`: a supervised phase, then self-training as a game between student and teacher."""

import math
from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from drift.core import Game, SoftStrategy
from drift.data.batches import EndlessBatches
from drift.data.examples import Batch
from drift.data.labels import Encoded
from drift.methods.self_training import GameMethod
from drift.training.callbacks import GAME, Callback, TrainingState
from drift.training.loop import Phase
from drift.training.optimizers import make_optimizer
from drift.training.progress import Tick, progress
from drift.training.settings import TrainingSettings

if TYPE_CHECKING:
    from drift.estimator.classifier import DriftClassifier
    from drift.estimator.scaling import SparseRows

TRACE_ENTRIES = 20  # at most, per fit


class Training(NamedTuple):
    """What training leaves besides the student: the trace, and the number of optimiser steps in both phases."""

    trace: list[dict[str, object]]
    steps: int


def train(
    classifier: "DriftClassifier",
    X: "Tensor | SparseRows",
    encoded: Encoded,
    strategy: SoftStrategy,
    generator: torch.Generator,
) -> Training:
    """Train `classifier.student_` in place: first on the labels (Eq. 1), then in the game (Eq. 3; Eq. 9 if weak).

    Parameters
    ----------
    classifier : the estimator, with its parameters and its new student.
    X : all rows, scaled; indexed by row numbers.
    encoded : the class index of each row.
    strategy : how the teacher makes pseudo-labels.
    generator : random numbers for the order of the rows.
    """
    y = torch.from_numpy(encoded.codes).to(X.device)
    labeled = torch.from_numpy(np.flatnonzero(encoded.labeled))
    unlabeled = torch.from_numpy(np.flatnonzero(classifier.weak | ~encoded.labeled))
    batch_size = classifier.batch_size

    def batches(use_labeled: bool, use_unlabeled: bool) -> Iterator[list[Batch]]:
        labeled_rows = EndlessBatches(len(labeled), batch_size, generator) if use_labeled else repeat(None)
        unlabeled_rows = EndlessBatches(len(unlabeled), batch_size, generator) if use_unlabeled else repeat(None)
        for i, j in zip(labeled_rows, unlabeled_rows, strict=False):
            pair = None if i is None else (X[labeled[i]], y[labeled[i]])
            yield [Batch(pair, None if j is None else X[unlabeled[j]])]

    has_teacher = classifier.coupling != "none"
    game = _game(classifier, strategy, distill=has_teacher and not len(unlabeled))
    method = GameMethod.around(game)
    total = classifier.initial_steps + classifier.steps
    with progress("DRIFT", total, shown=bool(classifier.verbose)) as tick:
        every = max(1, math.ceil(classifier.steps / TRACE_ENTRIES)) if has_teacher else None
        callback = _TraceCallback(game, tick, every)
        start = Phase(method, batches(True, False), _optimizer(classifier), initial=True)
        state = start.run(range(1, classifier.initial_steps + 1), [callback])
        method.start()
        state.phase = GAME
        second = batches(not (classifier.weak and has_teacher), has_teacher and len(unlabeled) > 0)
        Phase(method, second, _optimizer(classifier)).run(range(1, classifier.steps + 1), [callback], state)
    return Training(callback.trace, state.total_steps)


def _game(classifier: "DriftClassifier", strategy: SoftStrategy, *, distill: bool) -> Game:
    """The game; distill: the teacher also labels the labelled rows, because there are no others."""
    return Game(
        classifier.student_,
        alpha=classifier.alpha,
        strategy=strategy,
        coupling="differentiable" if classifier.coupling == "differentiable" else "detached",
        pseudo_label="all" if distill else "unlabeled",
        unlabeled_weight=classifier.unlabeled_weight,
        single_process=True,  # a fit runs in one process, even if torch.distributed is initialised
    )


def _optimizer(classifier: "DriftClassifier") -> torch.optim.Optimizer:
    settings = TrainingSettings(learning_rate=classifier.learning_rate, weight_decay=classifier.weight_decay)
    return make_optimizer(classifier.student_, settings, initial=False)


class _TraceCallback(Callback):
    """Advances the progress bar, and records the state of the game every `every` steps; None records nothing."""

    def __init__(self, game: Game, tick: Tick, every: int | None) -> None:
        self.game, self.tick, self.every = game, tick, every
        self.trace: list[dict[str, object]] = []

    def on_backward_end(self, state: TrainingState) -> None:
        self.tick()
        if state.playing and self.every is not None and state.step % self.every == 0:
            self.trace.append({"step": state.step, "loss": state.loss, **self.game.diagnostics().as_dict()})
