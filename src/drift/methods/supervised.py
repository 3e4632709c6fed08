"""Supervised learning on labelled rows only: the first phase of every other method, and two baselines of their own."""

from torch import Tensor

from drift.data.examples import Batch
from drift.methods.method import Method
from drift.settings import Settings


class SupervisedSettings(Settings):
    """Supervised learning has no settings."""


class Supervised(Method):
    """L = mean over labelled rows of -log f_y(x, θS) (Eq. 1): the first phase only."""

    name = "supervised"
    summary = "supervised learning on the labelled rows only: the first phase of every other method"
    settings_type = SupervisedSettings
    relative_cost = 1
    has_second_phase = False

    def loss(self, batch: Batch) -> Tensor:
        return self.initial_loss(batch)


class TrainOnDev(Supervised):
    """L = mean over dev rows of -log f_y(x, θS): the labels of dev, used for training instead of model selection.

    A method that is selected on dev and scores no better than this gains nothing from its unlabelled rows. No labels
    are left for model selection, so the number of steps is fixed in advance and no dev score is reported.
    """

    name = "train-on-dev"
    summary = "supervised learning on the labels of dev, which are then not used for model selection"
    trains_on_dev = True
