"""`DriftClassifier.fit`: its phases, the coupling, the seed, and limits that must hold exactly."""

import json
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_blobs
from torch import Tensor, nn

from drift import DriftClassifier
from drift.data.batches import EndlessBatches
from drift.data.labels import sample_per_class
from tests.estimator.short import PAPER, short

X, Y = make_blobs(120, n_features=4, centers=3, cluster_std=2.0, random_state=0)
FEW = np.where(np.arange(len(Y)) < 30, Y, -1)
STILL = {"dropout": 0.0, "input_dropout": 0.0}  # only the initial weights and the batches are random


def shares(y: np.ndarray = FEW, **settings: Any) -> np.ndarray:
    return short(**settings).fit(X, y).predict_proba(X)


def test_the_same_seed_gives_the_same_bits_and_another_does_not() -> None:
    assert np.array_equal(shares(), shares())
    assert not np.allclose(shares(), shares(random_state=1))


def test_the_callers_generators_have_no_effect_and_are_left_unchanged() -> None:
    results = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        np.random.seed(seed)
        before = torch.random.get_rng_state(), np.random.get_state()[1].copy()
        results.append(shares())
        assert torch.equal(torch.random.get_rng_state(), before[0])
        assert np.array_equal(np.random.get_state()[1], before[1])
    assert np.array_equal(*results)


class Counting(nn.Linear):
    """A layer that records how many threads torch uses."""

    thread_counts: ClassVar[set[int]] = set()

    def forward(self, x: Tensor) -> Tensor:
        self.thread_counts.add(torch.get_num_threads())
        return super().forward(x)


@pytest.mark.parametrize(("jobs", "used"), [(None, 1), (1, 1), (3, 3)])
def test_n_jobs_sets_the_threads_whatever_the_caller_uses(jobs: int | None, used: int) -> None:
    before = torch.get_num_threads()
    results = []
    try:
        for count in (1, 2):
            Counting.thread_counts.clear()
            torch.set_num_threads(count)
            results.append(shares(module=Counting, n_jobs=jobs))
            assert Counting.thread_counts == {used}  # in training and in prediction
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(*results)


def by_hand(y: np.ndarray, epochs: tuple[int, int], hidden: int = 16, batch: int = 256) -> np.ndarray:
    """Supervised training as a plain loop: two phases, each with a new optimiser."""
    Z = torch.tensor((X - X.mean(0)) / X.std(0), dtype=torch.float32)
    x_l, y_l = Z[y != -1], torch.tensor(y[y != -1])
    seed = int(np.random.RandomState(0).randint(2**31))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers = nn.Dropout(0.2), nn.Linear(4, hidden), nn.ReLU(), nn.Dropout(0.5), nn.Linear(hidden, 3)
        model, generator = nn.Sequential(*layers), torch.Generator().manual_seed(seed)
        for steps in epochs:
            groups = [{"params": [p for p in model.parameters() if p.dim() == 2]}]
            groups += [{"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0}]
            optimizer = torch.optim.AdamW(groups, lr=1e-3, weight_decay=1e-2)
            for rows in islice(EndlessBatches(len(x_l), batch, generator), steps):
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x_l[rows]), y_l[rows]).backward()
                optimizer.step()
    with torch.no_grad():
        return torch.softmax(model.eval()(Z), 1).numpy()


@pytest.mark.parametrize("batch_size", [8, 256])
@pytest.mark.parametrize("y", [FEW, Y], ids=["few labels", "all labels"])
def test_without_coupling_it_is_plain_supervised_training(y: np.ndarray, batch_size: int) -> None:
    expected = by_hand(y, (20, 10), batch=batch_size)
    assert np.allclose(shares(y, coupling="none", batch_size=batch_size), expected, atol=1e-5)


@pytest.mark.parametrize("coupling", ["differentiable", "shared", "detached", "none"])
@pytest.mark.parametrize("y", [FEW, Y], ids=["few", "all"])
def test_with_no_game_steps_only_the_supervised_phase_runs(y: np.ndarray, coupling: str) -> None:
    model = short(steps=0, coupling=coupling).fit(X, y)
    assert np.allclose(model.predict_proba(X), by_hand(y, (20, 0)), atol=1e-5)
    assert model.trace_ == []


def test_without_coupling_unlabelled_rows_have_no_effect() -> None:
    settings = {"coupling": "none", "standardize": False}
    alone = short(**settings).fit(X[FEW != -1], Y[FEW != -1])
    assert np.array_equal(short(**settings).fit(X, FEW).predict_proba(X), alone.predict_proba(X))
    assert not np.allclose(shares(standardize=False), alone.predict_proba(X), atol=1e-3)


def test_a_self_training_term_of_weight_zero_leaves_supervised_training() -> None:
    for coupling in ("differentiable", "shared", "detached"):
        weightless = shares(coupling=coupling, unlabeled_weight=0.0, **STILL)
        assert np.allclose(weightless, shares(coupling="none", **STILL), atol=1e-5)
    assert not np.allclose(shares(**STILL), shares(coupling="none", **STILL), atol=1e-3)


def test_alpha_one_makes_drift_conventional_self_training() -> None:
    for coupling in ("differentiable", "shared"):
        assert np.array_equal(shares(alpha=1.0, coupling=coupling), shares(alpha=1.0, coupling="detached"))
        assert not np.array_equal(shares(alpha=0.5, coupling=coupling), shares(alpha=0.5, coupling="detached"))


@pytest.mark.parametrize("y", [FEW, Y], ids=["few labels", "all labels"])
@pytest.mark.parametrize("weak", [False, True])
def test_the_interaction_is_non_zero_if_and_only_if_the_teacher_is_differentiable(y: np.ndarray, weak: bool) -> None:
    coupled = short(coupling="differentiable", weak=weak).fit(X, y).trace_
    detached = short(coupling="detached", weak=weak).fit(X, y).trace_
    assert all(entry["interaction_norm"] > 0 for entry in coupled)
    assert all(entry["interaction_norm"] == 0 and entry["angle"] is None for entry in detached)
    assert all(entry["leader_norm"] > 0 for entry in coupled + detached)


def test_with_all_labels_given_it_performs_self_distillation() -> None:
    model = short(steps=100).fit(X, Y)
    assert model.label_budget_ == len(Y)
    assert model.trace_[0]["probe_size"] == len(Y)  # the teacher labels the labelled rows
    assert not np.allclose(model.predict_proba(X), shares(Y, coupling="none", steps=100), atol=1e-3)


def test_weak_labels_are_used_only_to_initialise_the_student() -> None:
    rotated = np.where(FEW == -1, -1, (FEW + 1) % 3)
    untouched = {"initial_steps": 0, "steps": 20}
    # Without a supervised phase the labels have no effect: other labels give the same bits.
    assert np.array_equal(shares(FEW, weak=True, **untouched), shares(rotated, weak=True, **untouched))
    assert not np.allclose(shares(FEW, **untouched), shares(rotated, **untouched), atol=1e-3)
    # With one they do.
    assert not np.allclose(shares(FEW, weak=True), shares(rotated, weak=True), atol=1e-3)


def test_with_weak_labels_every_row_gets_a_pseudo_label() -> None:
    model = short(weak=True).fit(X, FEW)
    assert model.trace_[0]["probe_size"] == len(X)
    assert model.label_budget_ == 30
    assert short().fit(X, FEW).trace_[0]["probe_size"] == len(X) - 30


def test_weak_labels_without_a_teacher_are_ordinary_labels() -> None:
    assert np.array_equal(shares(weak=True, coupling="none"), shares(coupling="none"))


def test_the_prior_labels_uses_the_counts_of_the_labels() -> None:
    skewed = np.where((Y == 0) | (np.arange(len(Y)) < 10), FEW, -1)
    counts = np.bincount(skewed[skewed != -1]).tolist()
    assert len({*counts}) > 1
    from_labels = shares(skewed, prior="labels")
    assert np.array_equal(from_labels, shares(skewed, prior=counts))
    assert np.allclose(from_labels, shares(skewed, prior=np.array(counts) / sum(counts)), atol=1e-5)
    assert not np.allclose(from_labels, shares(skewed), atol=1e-3)
    assert np.allclose(shares(skewed), shares(skewed, prior=[1, 1, 1]), atol=1e-5)


@pytest.mark.parametrize("steps", [1, 19, 20, 39, 60, 125])
def test_the_trace_has_at_most_twenty_entries(steps: int) -> None:
    trace = short(initial_steps=1, steps=steps).fit(X, FEW).trace_
    traced = [entry["step"] for entry in trace]
    assert 1 <= len(traced) <= 20
    assert traced == sorted(set(traced))
    assert 1 <= traced[0] <= traced[-1] <= steps


def test_the_trace_holds_diagnostics_and_is_valid_json() -> None:
    trace = short().fit(X, FEW).trace_
    assert json.loads(json.dumps(trace, allow_nan=False)) == trace
    for entry in trace:
        assert entry["loss"] > 0
        assert 0 <= entry["mean_omega"] <= 1
        assert 0 <= entry["angle"] <= 180
        assert len(entry["class_mass"]) == 3
        assert sum(entry["class_mass"]) == pytest.approx(1, abs=1e-5)
    assert trace[0]["flips"] is None
    assert all(0 <= entry["flips"] <= entry["probe_size"] for entry in trace[1:])


def test_without_coupling_the_trace_is_empty() -> None:
    assert short(coupling="none").fit(X, FEW).trace_ == []


@pytest.mark.parametrize("y", [FEW, Y, np.where(FEW == -1, None, FEW)], ids=["few", "all", "None"])
def test_the_label_budget_counts_all_labels(y: np.ndarray) -> None:
    assert short(initial_steps=1, steps=1).fit(X, y).label_budget_ == sum(label not in (-1, None) for label in y)


@pytest.mark.parametrize("initial_steps", [0, 20])
@pytest.mark.parametrize("steps", [0, 10])
@pytest.mark.parametrize("coupling", ["differentiable", "shared", "detached", "none"])
def test_n_iter_counts_the_steps_of_both_phases(coupling: str, initial_steps: int, steps: int) -> None:
    model = short(coupling=coupling, initial_steps=initial_steps, steps=steps).fit(X, FEW)
    assert model.n_iter_ == initial_steps + steps


@pytest.mark.parametrize("names", [np.array([0, 1, 2]), np.array(["zebra", "ant", "mole"]), np.array([0.0, 2.0, 1.0])])
def test_transduction_keeps_given_labels_and_predicts_the_others(names: np.ndarray) -> None:
    order = np.random.default_rng(0).permutation(len(X))  # labelled rows anywhere, not only first
    labels = np.where(FEW == -1, None, (names[(Y + (np.arange(len(Y)) % 5 == 0)) % 3]).astype(object))  # some are wrong
    rows, y = X[order], labels[order]
    model = short(steps=50).fit(rows, y)
    known = np.array([label is not None for label in y])
    predicted = model.predict(rows)
    assert model.transduction_[known].tolist() == y[known].tolist()
    assert model.transduction_[~known].tolist() == predicted[~known].tolist()
    assert model.transduction_.dtype == model.classes_.dtype
    assert (model.transduction_ != predicted).any()  # where a wrong label was given


def test_transduction_of_weak_labels_is_the_prediction_everywhere() -> None:
    model = short(weak=True).fit(X, FEW)
    assert np.array_equal(model.transduction_, model.predict(X))
    assert (model.transduction_ != Y)[:30].any()


def test_transduction_of_all_labels_is_the_labels() -> None:
    model = short().fit(X, Y)
    assert np.array_equal(model.transduction_, Y)
    assert not np.array_equal(model.predict(X), Y)


def test_shifting_and_scaling_features_has_no_effect() -> None:
    other = X * [1e-3, 1.0, 50.0, 1e4] + [5.0, -3.0, 0.0, 1e5]
    assert np.allclose(short().fit(other, FEW).predict_proba(other), shares(), atol=1e-3)


def test_a_constant_feature_has_no_effect() -> None:
    constant = X.copy()
    constant[:, 3] = 0.1  # its computed deviation is 3e-17, not 0
    model = short().fit(constant, FEW)
    moved = constant.copy()
    moved[:, 3] += 1e-6
    assert np.allclose(model.predict_proba(moved), model.predict_proba(constant), atol=1e-4)


class Network(nn.Module):
    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.inner, self.norm = nn.Linear(features, 8), nn.BatchNorm1d(8)
        self.drop, self.head = nn.Dropout(0.5), nn.Linear(8, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.drop(torch.relu(self.norm(self.inner(x)))))


def test_a_users_module_is_copied_trained_and_left_in_evaluation_mode() -> None:
    network = Network(4, 3)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    model = short(module=network).fit(X, FEW)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert isinstance(model.student_, Network)
    assert not torch.equal(model.student_.head.weight, before["head.weight"])
    assert not model.student_.training
    assert np.array_equal(model.fit(X, FEW).predict_proba(X), short(module=network).fit(X, FEW).predict_proba(X))


def test_biases_are_not_decayed() -> None:
    network = Network(4, 3)
    plain, decayed = (
        short(module=network, initial_steps=1, steps=0, weight_decay=decay).fit(X, FEW).student_
        for decay in (0.0, 100.0)
    )
    same = {name for name, value in plain.named_parameters() if torch.equal(value, decayed.get_parameter(name))}
    assert same == {"inner.bias", "norm.weight", "norm.bias", "head.bias"}


def test_training_and_evaluation_mode_of_the_given_module_have_no_effect() -> None:
    network = Network(4, 3)  # pretrained modules are often in evaluation mode
    modes = [short(module=network.train(mode)).fit(X, FEW).predict_proba(X) for mode in (True, False)]
    assert np.array_equal(*modes)


def test_a_factory_gets_features_and_classes_and_is_seeded() -> None:
    calls: list[tuple[int, int]] = []

    def build(features: int, classes: int) -> nn.Module:
        calls.append((features, classes))
        return Network(features, classes)

    assert np.array_equal(shares(module=build), shares(module=build))
    assert not np.allclose(shares(module=build), shares(module=build, random_state=1))
    assert set(calls) == {(4, 3)}


def test_drift_beats_its_supervised_start_on_digits() -> None:
    digits, truth = load_digits(return_X_y=True)
    chosen = sample_per_class(truth, 10, seed=0)
    y = np.full(len(truth), -1)
    y[chosen] = truth[chosen]
    rest = y == -1
    start = (
        DriftClassifier(**PAPER, random_state=0, initial_steps=200, steps=0)
        .fit(digits, y)
        .score(digits[rest], truth[rest])
    )
    end = (
        DriftClassifier(**PAPER, random_state=0, initial_steps=200, steps=300)
        .fit(digits, y)
        .score(digits[rest], truth[rest])
    )
    assert end > start + 0.015  # 0.89 to 0.93 when this was written
