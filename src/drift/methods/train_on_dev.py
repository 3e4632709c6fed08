"""Train-on-dev: what the labels that are kept to choose by would give if they were learnt from.

    L = mean over dev rows of -log f_y(x, θS)

A method that is chosen on dev and does no better than this has not earned its unlabelled rows. There is nothing left to
choose by, so the steps are fixed in advance, and the score on dev is not shown.
"""

from drift.methods.supervised import Supervised


class TrainOnDev(Supervised):
    """See the module."""

    name = "train-on-dev"
    summary = "the labels of dev alone, learnt from instead of chosen by"
    trains_on_dev = True
