"""A prior of its own for every stacked trial, and a prior among the classes that are balanced."""

import pytest
import torch

from drift.core import SoftStrategy, log_soft_labels
from drift.errors import ConfigError, ShapeError

PRIORS = ((0.7, 0.2, 0.1), (0.1, 0.1, 0.8))


def test_each_trial_is_balanced_towards_its_own_prior() -> None:
    log_p = torch.randn(2, 40, 3, dtype=torch.float64).log_softmax(-1)
    together = SoftStrategy(prior=PRIORS).respond(log_p)
    for trial, prior in enumerate(PRIORS):
        alone = SoftStrategy(prior=prior).respond(log_p[trial])
        torch.testing.assert_close(together.log_y[trial], alone.log_y)
        torch.testing.assert_close(together.omega[trial], alone.omega)


def test_a_prior_among_the_others_leaves_the_unbalanced_class_alone() -> None:
    log_p = torch.randn(50, 3, dtype=torch.float64).log_softmax(-1)
    even = SoftStrategy(unbalanced_class=0).respond(log_p).log_y
    same = SoftStrategy(unbalanced_class=0, prior=(0.9, 0.05, 0.05)).respond(log_p).log_y
    torch.testing.assert_close(same, even)  # equal among the others: nothing to shift
    skewed = SoftStrategy(unbalanced_class=0, prior=(0.5, 0.4, 0.1)).respond(log_p).log_y
    expected = even + torch.tensor([0.0, 1.6, 0.4], dtype=torch.float64).clamp(min=1e-300).log().clamp(min=-700)
    expected[:, 0] = even[:, 0]
    torch.testing.assert_close(skewed, expected.log_softmax(-1))


def test_the_stacked_form_of_one_prior_equals_the_plain_one() -> None:
    log_p = torch.randn(1, 20, 3).log_softmax(-1)
    stacked = SoftStrategy(prior=(PRIORS[0],)).respond(log_p).log_y
    plain = log_soft_labels(log_p, 0.5, log_prior=torch.tensor(PRIORS[0]).log())
    torch.testing.assert_close(stacked, plain)


def test_priors_of_other_shapes_are_refused() -> None:
    with pytest.raises(ConfigError, match="same number of shares"):
        SoftStrategy(prior=((0.5, 0.5), (1.0,)))
    with pytest.raises(ShapeError, match="one per trial"):
        SoftStrategy(prior=PRIORS).respond(torch.randn(3, 10, 3).log_softmax(-1))
