"""Training of `DriftClassifier`: a start, then self-training as a game between student and teacher."""

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from drift.core import Game, SoftStrategy
from drift.data.batches import EndlessBatches
from drift.data.examples import Batch
from drift.data.labels import Encoded
from drift.estimator.initial import StartMethod, find_start, student_probabilities
from drift.estimator.parameters import Prior, make_strategy
from drift.estimator.plateau import LossPlateau, PredictionPlateau
from drift.estimator.selection import Start, near_labels
from drift.training.callbacks import GAME, Callback, TrainingState
from drift.training.loop import Phase
from drift.training.optimizers import make_optimizer
from drift.training.progress import Tick, progress
from drift.training.settings import TrainingSettings

if TYPE_CHECKING:
    from drift.estimator.classifier import DriftClassifier
    from drift.estimator.scaling import SparseRows

TRACE_ENTRIES = 20  # at most, per fit
MOST_INITIAL_STEPS, MOST_STEPS = 400, 400  # of "auto"
PROBE_ROWS = 2000  # rows on which convergence of the game is judged
WORST_DROP = 0.05  # the game is rejected if the log-likelihood of the labels drops by more,
WORST_SHIFT = 0.1  # or if its class shares are that much further from the prior than those of the start,
MOST_MOVED = 0.02  # or if it moved a larger share of the rows into classes whose share cannot be known


@dataclass
class Training:
    """What training leaves besides the student."""

    prior: Prior
    start: str
    kept: str = "game"
    kept_reason: str = ""
    steps: int = 0
    trace: list[dict[str, object]] = field(default_factory=list)


def train(
    classifier: "DriftClassifier",
    X: "Tensor | SparseRows",
    encoded: Encoded,
    generator: torch.Generator,
    numbers: np.random.Generator,
) -> Training:
    """Train `classifier.student_` in place: first on labels (Eq. 1), then in the game (Eq. 3; Eq. 9 if weak).

    Parameters
    ----------
    classifier : the estimator, with its parameters and its new student.
    X : all rows, scaled; indexed by row numbers.
    encoded : the class index of each row.
    generator : random numbers for the order of the rows.
    numbers : random numbers for the choice of the start.
    """
    y = torch.from_numpy(encoded.codes).to(X.device)
    labeled = torch.from_numpy(np.flatnonzero(encoded.labeled))
    unlabeled = torch.from_numpy(np.flatnonzero(classifier.weak | ~encoded.labeled))
    batch_size, student = classifier.batch_size, classifier.student_

    def batches(use_labeled: bool, use_unlabeled: bool) -> Iterator[list[Batch]]:
        labeled_rows = EndlessBatches(len(labeled), batch_size, generator) if use_labeled else repeat(None)
        unlabeled_rows = EndlessBatches(len(unlabeled), batch_size, generator) if use_unlabeled else repeat(None)
        for i, j in zip(labeled_rows, unlabeled_rows, strict=False):
            pair = None if i is None else (X[labeled[i]], y[labeled[i]])
            yield [Batch(pair, None if j is None else X[unlabeled[j]])]

    has_teacher = classifier.coupling != "none"
    start = find_start(classifier, X, encoded, numbers)
    if start is not None and start.divisor is not None:
        assert isinstance(X, Tensor)  # sparse rows have no divisor
        X /= torch.from_numpy(start.divisor).to(X)
        classifier.scale_ = classifier.scale_ * start.divisor
    game = _game(classifier, SoftStrategy(), distill=has_teacher and not len(unlabeled))
    method = StartMethod.around_start(game, start)
    initial_steps = _steps(classifier.initial_steps, MOST_INITIAL_STEPS)
    steps = _steps(classifier.steps, MOST_STEPS)
    with progress("DRIFT", initial_steps + steps, shown=bool(classifier.verbose)) as tick:
        every = max(1, math.ceil(steps / TRACE_ENTRIES)) if has_teacher else None
        callback = _TraceCallback(game, tick, every)
        first = batches(True, False) if start is None else _with_targets(batches(True, False), start, X, batch_size)
        callbacks: list[Callback] = [callback, LossPlateau()] if classifier.initial_steps == "auto" else [callback]
        state = Phase(method, first, _optimizer(classifier), initial=True).run(range(1, initial_steps + 1), callbacks)
        pool = unlabeled[torch.from_numpy(numbers.permutation(len(unlabeled))[: 10 * PROBE_ROWS])]
        game.strategy, prior = make_strategy(
            classifier,
            encoded,
            lambda: student_probabilities(student, X, pool),
            None if start is None else start.lifts <= 0,
        )
        before = copy.deepcopy(student.state_dict())
        method.start()
        state.phase, state.stop = GAME, False
        second = batches(not (classifier.weak and has_teacher), has_teacher and len(unlabeled) > 0)
        callbacks = [callback]
        if classifier.steps == "auto":
            callbacks.append(_convergence(classifier, X, pool[:PROBE_ROWS] if has_teacher else pool[:0]))
        student.train()
        Phase(method, second, _optimizer(classifier)).run(range(1, steps + 1), callbacks, state)
    result = Training(prior, _described(start), steps=state.total_steps, trace=callback.trace)
    _keep_the_better(classifier, result, start, before, X, encoded)
    return result


def _steps(setting: int | str, most: int) -> int:
    return most if isinstance(setting, str) else setting


def _convergence(classifier: "DriftClassifier", X: "Tensor | SparseRows", probe: Tensor) -> Callback:
    """What ends the game: predictions of the probe stay the same or, without a probe, the loss stops falling."""
    if not len(probe):
        return LossPlateau()
    return PredictionPlateau(lambda: student_probabilities(classifier.student_, X, probe).argmax(1))


def _described(start: Start | None) -> str:
    return "given labels" if start is None else f"soft labels of {len(start.rows):,} rows: {start}"


def _with_targets(
    labeled: Iterator[list[Batch]], start: Start, X: "Tensor | SparseRows", batch_size: int
) -> Iterator[list[Batch]]:
    """Each labelled batch, and a batch of soft labels beside it."""
    order = EndlessBatches(len(start.rows), batch_size, torch.Generator().manual_seed(0))
    rows, targets = torch.from_numpy(start.rows), torch.from_numpy(start.targets)
    for batch, i in zip(labeled, order, strict=False):
        x = X[rows[i]]
        yield [*batch, Batch((x, targets[i].to(x)))]


def _keep_the_better(
    classifier: "DriftClassifier",
    result: Training,
    start: Start | None,
    before: dict[str, Tensor],
    X: "Tensor | SparseRows",
    encoded: Encoded,
) -> None:
    """Return to the start if the game made it worse.

    It did if the labels became less likely, judged by predictions of their unlabelled neighbours, if the shares of
    the predicted classes moved away from the prior (total variation), or if rows were moved into classes whose share
    cannot be known.
    """
    student = classifier.student_
    if start is None or classifier.steps != "auto":
        result.kept_reason = "the steps are fixed" if classifier.steps != "auto" else "there is no other start"
        return
    rows, codes = torch.from_numpy(start.rows), encoded.codes[start.rows]
    after = copy.deepcopy(student.state_dict())
    p_game = student_probabilities(student, X, rows)
    student.load_state_dict(before)
    p_start = student_probabilities(student, X, rows)
    game_score, start_score = (near_labels(p.numpy(), start, codes) for p in (p_game, p_start))
    game_shift, start_shift = (_shift(p, result.prior.values) for p in (p_game, p_start))
    moved = _moved(p_start, p_game, result.prior.held)
    is_worse = game_score < start_score - WORST_DROP or game_shift > start_shift + WORST_SHIFT
    is_worse = is_worse or moved > MOST_MOVED
    result.kept = "start" if is_worse else "game"
    if result.kept == "game":
        student.load_state_dict(after)
    result.kept_reason = (
        f"log-likelihood of the labels by their unlabelled neighbours: game {game_score:.3f}, start {start_score:.3f};"
        f" distance of predicted class shares to the prior: game {game_shift:.3f}, start {start_shift:.3f}"
    )
    if result.prior.held is not None:
        result.kept_reason += f"; the game moved {100 * moved:.1f} % of the rows into classes of unknown share"


def _moved(before: Tensor, after: Tensor, held: np.ndarray | None) -> float:
    """The share of rows that were moved into one of the classes `held`, `(C,)`. before, after: probabilities."""
    if held is None:
        return 0.0
    into = torch.from_numpy(held)
    return float((into[after.argmax(1)] & (before.argmax(1) != after.argmax(1))).double().mean())


def _shift(p: Tensor, shares: np.ndarray) -> float:
    """Total variation between the shares of the predicted classes and `shares`."""
    predicted = np.bincount(p.argmax(1).numpy(), minlength=len(shares)) / len(p)
    return float(np.abs(predicted - shares).sum() / 2)


def _game(classifier: "DriftClassifier", strategy: SoftStrategy, *, distill: bool) -> Game:
    """The game; distill: the teacher also labels the labelled rows, because there are no others."""
    return Game(
        classifier.student_,
        alpha=classifier.alpha,
        strategy=strategy,
        coupling="detached" if classifier.coupling == "none" else classifier.coupling,  # type: ignore[arg-type]
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
