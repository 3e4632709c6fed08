"""FixMatch, AdaMatch, FreeMatch and SoftMatch: their losses against numpy, step by step from the papers' equations."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from drift.data.examples import Batch
from drift.errors import ConfigError
from drift.methods import METHODS
from drift.methods.matching import Matching
from drift.methods.method import Context
from drift.models.mlp import mlp
from drift.models.stacked import Stacked
from tests.methods.pieces import cut

DRAW = torch.Generator().manual_seed(0)
C, BATCHES = 3, 3


def drawn(rows: int) -> Tensor:
    return 3 * torch.randn(rows, 4, generator=DRAW, dtype=torch.float64)


LABELED = [(drawn(5), torch.randint(0, C, (5,), generator=DRAW)) for _ in range(BATCHES)]
UNLABELED, VIEWS = ([drawn(12) for _ in range(BATCHES)] for _ in range(2))
NAMES = ("fixmatch", "adamatch", "freematch", "softmatch")


def new_method(name: str, **settings: Any) -> Matching:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        student = mlp(4, C, hidden=(6,)).double().eval()
    method = METHODS[name](student, METHODS[name].settings_type(**settings), Context(single_process=True))
    method.start()
    assert isinstance(method, Matching)
    return method


def losses(method: Matching, *, labeled: bool = True) -> list[float]:
    """The loss of each batch; the student does not move, the averages do."""
    found = []
    for (x, y), u, view in zip(LABELED, UNLABELED, VIEWS, strict=True):
        found.append(method.loss(Batch((x, y) if labeled else None, u, views=(view,))).item())
        method.follow()
    return found


def predictions(method: Matching) -> list[tuple[np.ndarray, ...]]:
    """Per batch: p of the labelled rows, p of the weak view, q of the strong view, and the supervised loss."""

    def p(x: Tensor) -> np.ndarray:
        return torch.softmax(method.student(x), -1).detach().numpy()

    return [
        (p(x), p(u), p(view), -np.log(p(x)[np.arange(len(y)), y.numpy()]).mean())
        for (x, y), u, view in zip(LABELED, UNLABELED, VIEWS, strict=True)
    ]


def hard(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Cross-entropy of q with the most likely class of p, by row."""
    return -np.log(q[np.arange(len(q)), p.argmax(1)])


@pytest.mark.parametrize("threshold", [0.95, 0.6])
def test_fixmatch_counts_labels_above_a_fixed_threshold(threshold: float) -> None:
    method = new_method("fixmatch", threshold=threshold, unlabeled_weight=0.7)
    expected = [s + 0.7 * ((p.max(1) >= threshold) * hard(p, q)).mean() for _, p, q, s in predictions(method)]
    assert losses(method) == pytest.approx(expected)


def test_adamatch_aligns_with_the_labelled_rows_and_scales_its_threshold_by_them() -> None:
    method = new_method("adamatch", threshold=0.9, ramp_steps=2)
    expected = []
    for step, (labeled, p, q, supervised) in enumerate(predictions(method), 1):
        aligned = p * (labeled.mean(0) / p.mean(0))
        aligned /= aligned.sum(1, keepdims=True)
        counts = aligned.max(1) >= 0.9 * labeled.max(1).mean()
        assert 0 < counts.sum() < len(counts)
        weight = 0.5 - math.cos(min(math.pi, math.pi * step / 2)) / 2
        expected.append(supervised + weight * (counts * -(aligned * np.log(q)).sum(1)).mean())
    assert losses(method) == pytest.approx(expected)


def test_adamatch_without_labels_aligns_evenly() -> None:
    method = new_method("adamatch", threshold=0.9, ramp_steps=1)
    expected = []
    for _, p, q, _ in predictions(method):
        aligned = p / p.mean(0)
        aligned /= aligned.sum(1, keepdims=True)
        counts = aligned.max(1) >= 0.9 * p.max(1).mean()
        expected.append((counts * -(aligned * np.log(q)).sum(1)).mean())
    assert losses(method, labeled=False) == pytest.approx(expected)


@pytest.mark.parametrize("fairness", [0.0, 0.3])
def test_freematch_has_a_threshold_per_class_and_a_fairness_term(fairness: float) -> None:
    method = new_method("freematch", momentum=0.2, fairness_weight=fairness)
    tau, mean, shares = 1 / C, np.full(C, 1 / C), np.full(C, 1 / C)
    expected = []
    for _, p, q, supervised in predictions(method):
        tau = 0.2 * tau + 0.8 * p.max(1).mean()
        mean = 0.2 * mean + 0.8 * p.mean(0)
        shares = 0.2 * shares + 0.8 * np.bincount(p.argmax(1), minlength=C) / len(p)
        counts = p.max(1) > (mean / mean.max() * tau)[p.argmax(1)]
        of_strong = np.bincount(q[counts].argmax(1), minlength=C) / counts.sum()
        a = mean / shares
        b = np.divide(q[counts].mean(0), of_strong, out=np.zeros(C), where=of_strong > 0)
        terms = (a / a.sum() * np.log(b / b.sum(), out=np.zeros(C), where=b > 0))[of_strong > 0]
        expected.append(supervised + (counts * hard(p, q)).mean() + fairness * terms.sum())
    assert 0 < counts.sum() < len(counts)
    assert losses(method) == pytest.approx(expected)


def test_softmatch_weights_are_a_truncated_gaussian() -> None:
    method = new_method("softmatch", momentum=0.6, narrowing=2.0)
    mu, variance, mean = 1 / C, 1.0, np.full(C, 1 / C)
    expected = []
    for _, p, q, supervised in predictions(method):
        mean = 0.6 * mean + 0.4 * p.mean(0)
        aligned = p / mean / C
        confidence = (aligned / aligned.sum(1, keepdims=True)).max(1)
        mu = 0.6 * mu + 0.4 * confidence.mean()
        variance = 0.6 * variance + 0.4 * confidence.var(ddof=1)
        below = confidence < mu
        weights = np.where(below, np.exp(-((confidence - mu) ** 2) / (2 * variance / 4)), 1.0)
        expected.append(supervised + (weights * hard(p, q)).mean())
    assert below.any()
    assert losses(method) == pytest.approx(expected)


@pytest.mark.parametrize("name", NAMES)
def test_the_weak_view_gets_no_gradient(name: str) -> None:
    method = new_method(name, **({"threshold": 0.0} if name == "fixmatch" else {}))
    u = UNLABELED[0].clone().requires_grad_()
    view = VIEWS[0].clone().requires_grad_()
    method.loss(Batch(None, u, views=(view,))).backward()
    assert u.grad is None
    assert view.grad.abs().sum() > 0


@pytest.mark.parametrize("name", NAMES)
def test_stacked_trials_are_judged_apart(name: str) -> None:
    settings = {"threshold": 0.5} if name == "fixmatch" else {}
    single = [new_method(name, **settings) for _ in range(2)]
    stacked = METHODS[name](
        Stacked([method.student for method in single]).eval(),
        METHODS[name].settings_type(**settings),
        Context(stacked=True, single_process=True),
    )
    for step in range(BATCHES):
        first, second = step, (step + 1) % BATCHES
        alone = [
            method.loss(Batch(LABELED[k], UNLABELED[k], views=(VIEWS[k],))).item()
            for method, k in zip(single, (first, second), strict=True)
        ]
        x, y, u, view = (
            torch.stack([part[first], part[second]])
            for part in ([x for x, _ in LABELED], [y for _, y in LABELED], UNLABELED, VIEWS)
        )
        assert stacked.loss(Batch((x, y), u, views=(view,))).item() == pytest.approx(sum(alone))
        for method in (*single, stacked):
            method.follow()


def test_micro_batches_share_the_statistics_of_the_step() -> None:
    whole, parts = (new_method("softmatch", momentum=0.5) for _ in range(2))
    batch = Batch(LABELED[0], UNLABELED[0], views=(VIEWS[0],))
    expected = whole.loss(batch).item()
    assert parts.accumulate(cut(batch, 2, 4)).item() == pytest.approx(expected)
    for name, value in whole.averages.items():
        assert torch.allclose(parts.averages[name], value)


def test_the_fairness_term_refuses_micro_batches() -> None:
    with pytest.raises(ConfigError, match=r"^freematch's fairness term .*; set training.exact_accumulation=false, or"):
        new_method("freematch").accumulate([])


def test_the_published_settings_are_the_defaults_where_they_fit_a_short_run() -> None:
    settings = {name: METHODS[name].settings_type() for name in NAMES}
    assert (settings["fixmatch"].threshold, settings["adamatch"].threshold) == (0.95, 0.9)
    assert (settings["freematch"].fairness_weight, settings["softmatch"].narrowing) == (0.01, 2.0)
    assert all(each.unlabeled_weight == 1 for each in settings.values())
