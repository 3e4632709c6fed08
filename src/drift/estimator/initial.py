"""The first phase of `DriftClassifier`: which rows it uses, and its loss on soft labels."""

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from drift.core import Game
from drift.core.forward import log_probabilities
from drift.core.labels import sample_weight
from drift.core.losses import student_loss
from drift.data.examples import Batch
from drift.data.labels import Encoded
from drift.estimator.parameters import given_shares
from drift.estimator.selection import Start, make_start
from drift.methods.method import Context
from drift.methods.self_training import GameMethod

if TYPE_CHECKING:
    from drift.estimator.classifier import DriftClassifier
    from drift.estimator.scaling import SparseRows

MOST_ROWS = 20_000  # of the neighbour graph: a search among all rows would take time quadratic in their number
ROWS_PER_FORWARD = 4096
CONSTANT = 1e-6  # a feature whose deviation is smaller, where 1 is the root mean square of all, stays as it is


class StartMethod(GameMethod):
    """The game, with a first phase that also accepts soft labels `(N, C)` in place of class indices."""

    @classmethod
    def around_start(cls, game: Game, start: Start | None) -> GameMethod:
        """The method of this game; without soft labels, the one for given labels."""
        context = Context(game.teacher, game.stacked, game.single_process)
        return GameMethod.around(game) if start is None else cls(game.student, game, context)

    def make_game(self, settings: Game, context: Context) -> Game:
        return settings

    def initial_loss(self, batch: Batch) -> Tensor:
        """Mean of ω KL(y ‖ f(x, θS)) over soft labels y, weighted by their certainty; else as for class indices."""
        if batch.labeled is None or not batch.labeled[1].is_floating_point():
            return super().initial_loss(batch)
        x, y = batch.labeled
        log_q = log_probabilities(self.student, x)
        log_y = y.to(log_q.dtype).log()
        omega = sample_weight(log_y)
        return student_loss(log_y, omega, log_q).sum() / omega.sum().clamp(min=1.0)


def find_start(
    classifier: "DriftClassifier", X: "Tensor | SparseRows", encoded: Encoded, numbers: np.random.Generator
) -> Start | None:
    """Soft labels for the first phase; None if it uses the given labels alone.

    If all features were divided by one number, because they seem to have one unit, the start is also made with each
    divided by its own deviation. The one that recognises labels better if they are left out is used.
    """
    fixed = classifier.start == "labels" or classifier.initial_steps != "auto"
    if fixed or classifier.weak or classifier.coupling == "none" or encoded.labeled.all():
        return None
    rows = _graph_rows(encoded, numbers)
    codes = encoded.codes[rows]
    counts = np.bincount(codes[codes >= 0], minlength=len(encoded.classes)).astype(float)
    shares = counts / counts.sum()
    prior, plain, same_folds = _start_prior(classifier, encoded, shares), _plain_rows(X, rows), copy.deepcopy(numbers)
    start = make_start(plain, rows, codes, shares, numbers, prior)
    if classifier.standardize != "auto" or not isinstance(X, Tensor) or len(np.unique(classifier.scale_)) > 1:
        return start
    deviation = X.double().std(0, unbiased=False).cpu().numpy()
    divisor = np.where(deviation > CONSTANT, deviation, 1.0)
    other = make_start((plain / divisor).astype(plain.dtype), rows, codes, shares, same_folds, prior)
    return replace(other, divisor=divisor) if other.likelihood > start.likelihood else start


def _start_prior(classifier: "DriftClassifier", encoded: Encoded, shares: np.ndarray) -> np.ndarray | None:
    """Class shares of the rows for the start; None if they are to be estimated. shares: among the labels, `(C,)`."""
    if not classifier.class_mass:
        return shares
    if isinstance(classifier.prior, str) and classifier.prior == "auto":
        return None
    given = given_shares(classifier.prior, encoded)
    return shares if given is None else np.array(given) / sum(given)


def _graph_rows(encoded: Encoded, numbers: np.random.Generator) -> np.ndarray:
    """All rows, or a sample with at most half of it labelled; every class keeps a label."""
    if len(encoded.codes) <= MOST_ROWS:
        return np.arange(len(encoded.codes))
    labeled, others = (numbers.permutation(np.flatnonzero(mask)) for mask in (encoded.labeled, ~encoded.labeled))
    one_each = labeled[np.unique(encoded.codes[labeled], return_index=True)[1]]
    labeled = np.union1d(one_each, labeled[: MOST_ROWS // 2])
    return np.sort(np.concatenate([labeled, others[: MOST_ROWS - len(labeled)]]))


def _plain_rows(X: "Tensor | SparseRows", rows: np.ndarray) -> Any:
    """Scaled rows as an array, or as a CSR matrix."""
    if isinstance(X, Tensor):
        return X[torch.from_numpy(rows)].to("cpu", torch.float32).numpy()
    return X.matrix[rows]


@torch.no_grad()
def student_probabilities(student: nn.Module, X: "Tensor | SparseRows", rows: Tensor) -> Tensor:
    """Class probabilities `(len(rows), C)` of the student in evaluation mode, on the CPU; its mode is restored."""
    if not len(rows):  # modules need not accept an empty batch
        return torch.empty(0, 0)
    mode = student.training
    student.eval()
    parts = [log_probabilities(student, X[part]).exp().cpu() for part in torch.split(rows, ROWS_PER_FORWARD)]
    student.train(mode)
    return torch.cat(parts)
