"""Which unlabelled rows have another predicted class at the end of a run than at θinit."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from drift.data.examples import Unlabeled
from drift.methods.method import Method
from drift.training.devices import SingleProcess
from drift.training.pool import AllUnlabeled

WATCHED = 256  # the first rows


@dataclass(frozen=True)
class Flips:
    """Predicted classes of the same targets at θinit and at the end, `(n,)`, or `(trials, n)` if stacked.

    targets: numbers of the texts, words or nodes. gold: true classes, -1 where unknown; None if none is known.
    """

    targets: np.ndarray
    before: np.ndarray
    after: np.ndarray
    gold: np.ndarray | None

    def of_trial(self, trial: int) -> "Flips":
        """The flips of one stacked trial; all of them if the run is not stacked."""
        if self.before.ndim == 1:
            return self
        gold = None if self.gold is None else self.gold[trial]
        return Flips(self.targets[trial], self.before[trial], self.after[trial], gold)


def watched_classes(method: Method, unlabeled: Unlabeled, machine: SingleProcess, rows: int = WATCHED) -> Tensor:
    """Predicted classes of the first `rows` rows, without dropout."""
    places = torch.arange(min(rows, unlabeled.rows.shape[-1])).expand(*unlabeled.rows.shape[:-1], -1)
    method.student.eval()
    classes = AllUnlabeled(unlabeled, machine).ask(method.predict_proba, places).argmax(-1)
    method.student.train()
    return classes


def find_flips(unlabeled: Unlabeled, before: Tensor, after: Tensor) -> Flips:
    """Flips from the classes of the watched rows before and after."""
    gold = unlabeled.first_gold(WATCHED)
    targets = unlabeled.first_targets(WATCHED)
    return Flips(targets.numpy(), before.numpy(), after.numpy(), None if gold is None else gold.numpy())
