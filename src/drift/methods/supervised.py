"""Supervised learning: the labels there are, and nothing else. It is the start of every other method."""

from torch import Tensor

from drift.data.examples import Batch
from drift.methods.method import Method
from drift.settings import Settings


class SupervisedSettings(Settings):
    """There is nothing to choose."""


class Supervised(Method):
    """L = mean over labelled rows of -log f_y(x, θS) (Eq. 1): the first phase alone."""

    name = "supervised"
    summary = "the labelled rows alone: what every other method starts from"
    settings_type = SupervisedSettings
    relative_cost = 1
    has_second_phase = False

    def loss(self, batch: Batch) -> Tensor:
        return self.initial_loss(batch)
