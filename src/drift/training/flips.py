"""Which unlabelled rows the student puts in another class at the end of a run than at θinit."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from drift.data.examples import Unlabeled
from drift.methods.method import Method
from drift.training.devices import SingleProcess
from drift.training.pool import AllUnlabeled

WATCHED = 256  # rows, the first ones


@dataclass(frozen=True)
class Flips:
    """Class indices of the same targets at θinit and at the end, `(n,)`, or `(trials, n)` if stacked.

    targets: numbers of texts, words or nodes among all. gold: true classes, -1 where unknown, if there are any.
    """

    targets: np.ndarray
    before: np.ndarray
    after: np.ndarray
    gold: np.ndarray | None

    def of_trial(self, trial: int) -> "Flips":
        """Those of one of the stacked trials; of a run that is not stacked, all."""
        if self.before.ndim == 1:
            return self
        gold = None if self.gold is None else self.gold[trial]
        return Flips(self.targets[trial], self.before[trial], self.after[trial], gold)


def watched_classes(method: Method, unlabeled: Unlabeled, machine: SingleProcess) -> Tensor:
    """What the student says of the rows that are watched, without dropout."""
    places = torch.arange(min(WATCHED, unlabeled.rows.shape[-1])).expand(*unlabeled.rows.shape[:-1], -1)
    method.student.eval()
    found = AllUnlabeled(unlabeled, machine).ask(method.predict_proba, places).argmax(-1)
    method.student.train()
    return found


def find_flips(unlabeled: Unlabeled, before: Tensor, after: Tensor) -> Flips:
    gold = unlabeled.first_gold(WATCHED)
    targets = unlabeled.first_targets(WATCHED)
    return Flips(targets.numpy(), before.numpy(), after.numpy(), None if gold is None else gold.numpy())
