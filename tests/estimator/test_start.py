"""The start of `DriftClassifier`: neighbour graphs, experts and their weights, convergence, and the choice after it."""

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.special import softmax
from scipy.stats import multivariate_normal
from sklearn.datasets import make_blobs, make_circles, make_classification
from sklearn.linear_model import LogisticRegression

from drift import DriftClassifier
from drift.data.labels import sample_per_class
from drift.estimator import initial
from drift.estimator.experts import Labels, cross_fitted
from drift.estimator.gaussian import class_probabilities, projected
from drift.estimator.neighbours import nearest, normalised, self_influence, similarities, spread, spread_labels
from drift.estimator.plateau import WINDOW, LossPlateau, PredictionPlateau
from drift.estimator.scaling import feature_scaling
from drift.estimator.selection import class_lifts, make_start, near_labels, stacked, with_shares
from drift.estimator.training import _moved

X, Y = make_blobs(150, n_features=4, centers=3, cluster_std=2.0, random_state=0)
FEW = np.full(len(Y), -1)
CHOSEN = sample_per_class(Y, 5, seed=0)
FEW[CHOSEN] = Y[CHOSEN]
EQUAL = np.full(3, 1 / 3)


def small(**settings: Any) -> DriftClassifier:
    return DriftClassifier(**{"hidden": (16,), "random_state": 0, **settings})


@pytest.mark.parametrize("k", [3, 10])
def test_weights_are_symmetric_with_largest_eigenvalue_one(k: int) -> None:
    S = similarities(nearest(X), k).toarray()
    assert np.allclose(S, S.T)
    assert (np.count_nonzero(S, axis=1) >= k).all()
    assert np.linalg.eigvalsh(S).max() == pytest.approx(1)


@pytest.mark.parametrize("reach", [0.95, 0.999])
def test_the_spread_of_labels_is_the_solution_of_a_linear_system(reach: float) -> None:
    S = similarities(nearest(X), 8)
    Y_ = np.eye(3)[Y] * (FEW >= 0)[:, None]
    exact = (1 - reach) * np.linalg.solve(np.eye(len(X)) - reach * S.toarray(), Y_)
    assert np.abs(spread(S, Y_, reach) - exact).max() < 1e-4 * exact.max()
    no_labels = np.concatenate([Y_, np.zeros((len(X), 1))], axis=1)  # a class without labels stays at 0
    assert np.allclose(spread(S, no_labels, reach), np.concatenate([exact, np.zeros((len(X), 1))], axis=1), atol=1e-5)


def test_leaving_a_label_out_equals_spreading_without_it() -> None:
    S, labels = similarities(nearest(X), 8), FEW[CHOSEN]
    result = spread_labels(S, CHOSEN, labels, EQUAL, np.arange(len(CHOSEN)))
    for i in range(len(CHOSEN)):
        rest = np.delete(np.arange(len(CHOSEN)), i)
        without = spread_labels(S, CHOSEN[rest], labels[rest], EQUAL, np.array([0])).values
        assert np.allclose(result.left_out[i], without[CHOSEN[i]], atol=1e-3)  # the solver's tolerance
    assert (self_influence(S, CHOSEN) > 0).all()


def test_rows_that_no_label_reaches_get_the_class_shares() -> None:
    far = np.concatenate([X[:60], X[:60] + 1e4])
    S = similarities(nearest(far), 4)
    shares = np.array([0.2, 0.3, 0.5])
    values = spread_labels(S, np.arange(30), Y[:30], shares, np.arange(30)).values
    assert np.allclose(values[60:], shares)


def test_one_round_of_the_gaussians_is_linear_discriminant_analysis() -> None:
    means = np.stack([X[c == Y].mean(0) for c in range(3)])
    shares = np.bincount(Y) / len(Y)
    within = sum((X[c == Y] - means[c]).T @ (X[c == Y] - means[c]) for c in range(3)) / len(X)
    within = 0.9 * within + 0.1 * np.trace(within) / 4 * np.eye(4)
    log_p = np.stack(
        [multivariate_normal(means[c], within).logpdf(X) + np.log(shares[c]) for c in range(3)], axis=1
    )  # with every label given, the means do not depend on predictions
    found = class_probabilities(X, np.arange(len(X)), Y, shares)
    assert np.allclose(found, softmax(log_p, axis=1), atol=1e-8)


def test_gaussians_find_the_clusters_from_one_label_each_in_any_units_of_the_features() -> None:
    one_each = np.array([np.flatnonzero(c == Y)[0] for c in range(3)])
    p = class_probabilities(X, one_each, Y[one_each], EQUAL)
    assert (p.argmax(1) == Y).mean() > 0.95
    assert np.allclose(p.sum(1), 1)
    wide = np.concatenate([X, np.zeros((len(X), 60))], axis=1)
    for rows in (wide, sparse.csr_matrix(wide)):
        assert projected(rows, 0).shape == (150, 50)
        assert (class_probabilities(projected(rows, 0), one_each, Y[one_each], EQUAL).argmax(1) == Y).mean() > 0.95


def test_every_checked_label_is_predicted_without_its_fold() -> None:
    labels = Labels.of(FEW, EQUAL, np.random.default_rng(0))
    seen = []

    def model(rows: np.ndarray, codes: np.ndarray, shares: np.ndarray) -> np.ndarray:
        seen.append(set(rows.tolist()))
        p = np.full((len(X), len(shares)), 0.5 / len(shares))
        p[rows] = 0.0
        p[rows, codes] = 1.0  # knows what it was trained on, and nothing else
        return p

    expert = cross_fitted("recall", model, labels, np.random.default_rng(0))
    assert np.allclose(expert.left_out, normalised(np.full((15, 3), 1 / 3), EQUAL))
    assert np.array_equal(expert.values[CHOSEN].argmax(1), FEW[CHOSEN])
    assert len(seen) == 11
    assert all(len(rows) in (13, 14, 15) for rows in seen)


def test_a_class_with_one_label_is_left_out_of_the_model_that_does_not_see_it() -> None:
    codes = np.where(np.arange(len(Y)) == CHOSEN[0], 3, FEW)
    labels = Labels.of(codes, np.full(4, 0.25), np.random.default_rng(0))
    widths = set[int]()

    def model(rows: np.ndarray, codes: np.ndarray, shares: np.ndarray) -> np.ndarray:
        assert set(codes) == set(range(len(shares)))
        widths.add(len(shares))
        return np.full((len(X), len(shares)), 1 / len(shares))

    expert = cross_fitted("even", model, labels, np.random.default_rng(0))
    assert widths == {3, 4}
    assert np.allclose(expert.left_out.sum(1), 1)


def test_duplicate_rows_are_no_problem() -> None:
    model = small().fit(np.repeat(X[:30], 5, axis=0), np.where(np.arange(150) % 5 == 0, np.repeat(Y[:30], 5), -1))
    assert np.isfinite(model.predict_proba(X)).all()


def test_the_better_expert_gets_the_weight_and_few_labels_leave_it_equal() -> None:
    good, bad = np.full(200, 0.9), np.full(200, 0.1)
    many, few = stacked([good, bad]), stacked([good[:2], bad[:2]])
    assert many[0] > 0.98
    assert 0.5 < few[0] < many[0]
    assert many.sum() == pytest.approx(1)
    assert np.allclose(stacked([good, good, good]), 1 / 3)


@pytest.mark.parametrize(("data", "linear_wins"), [("line", True), ("circles", False)])
def test_the_experts_are_weighted_by_what_suits_the_data(data: str, linear_wins: bool) -> None:
    if data == "line":  # one of 30 features decides: neighbours say little
        rows = np.random.default_rng(0).normal(size=(400, 30))
        truth = (rows[:, 0] > 0).astype(int)
    else:
        rows, truth = make_circles(400, noise=0.05, factor=0.4, random_state=0)
    few = np.full(400, -1)
    few[sample_per_class(truth, 40, seed=0)] = truth[sample_per_class(truth, 40, seed=0)]
    start = make_start(rows, np.arange(400), few, np.full(2, 0.5), np.random.default_rng(0))
    assert sum(start.weights.values()) == pytest.approx(1)
    assert (start.weights["linear"] > 0.5) == linear_wins
    alone = LogisticRegression().fit(rows[few >= 0], few[few >= 0]).score(rows[few < 0], truth[few < 0])
    accuracy = (start.targets.argmax(1) == truth)[few < 0].mean()
    assert accuracy > (alone - 0.05 if linear_wins else 0.9)


def test_targets_are_distributions_and_keep_the_given_labels() -> None:
    start = make_start(X, np.arange(len(X)), FEW, EQUAL, np.random.default_rng(0))
    assert np.allclose(start.targets.sum(1), 1)
    assert np.array_equal(start.targets[CHOSEN], np.eye(3)[Y[CHOSEN]])


def test_predictions_for_other_class_shares_are_those_of_bayes() -> None:
    x = np.linspace(-4, 4, 50)
    densities = np.stack([multivariate_normal.pdf(x, mean) for mean in (-1.0, 0.5, 2.0)], axis=1)
    skewed = np.array([0.7, 0.25, 0.05])
    by_equal, by_skewed = (p / p.sum(1, keepdims=True) for p in (densities * EQUAL, densities * skewed))
    assert np.allclose(with_shares(by_equal, EQUAL, skewed), by_skewed)
    assert np.allclose(with_shares(by_skewed, skewed, EQUAL), by_equal)


def rare_class() -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping classes, 10 % of the rows in one of them."""
    return make_blobs([540, 60], n_features=4, centers=np.eye(4)[:2] * 1.5, random_state=0)  # type: ignore[no-any-return]


def few_of(truth: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    few = np.full(len(truth), -1)
    few[chosen] = truth[chosen]
    return few


def start_of(rows: np.ndarray, few: np.ndarray, prior: np.ndarray | None) -> np.ndarray:
    shares = np.bincount(few[few >= 0]) / (few >= 0).sum()
    return make_start(rows, np.arange(len(rows)), few, shares, np.random.default_rng(0), prior).targets


def test_labels_chosen_per_class_do_not_make_rare_classes_common() -> None:
    rows, truth = rare_class()
    few = few_of(truth, sample_per_class(truth, 10, seed=0))
    uncorrected, estimated, known = (
        start_of(rows, few, prior)[few < 0].argmax(1) for prior in (np.full(2, 0.5), None, np.array([0.9, 0.1]))
    )
    assert uncorrected.mean() > estimated.mean() > 0.05
    accuracy = [(p == truth[few < 0]).mean() for p in (uncorrected, estimated, known)]
    assert accuracy[0] + 0.02 < accuracy[1] < accuracy[2] + 0.02


def test_labels_drawn_at_random_keep_their_shares() -> None:
    rows, truth = rare_class()
    few = few_of(truth, np.random.default_rng(0).permutation(600)[:60])
    assert np.allclose(start_of(rows, few, None), start_of(rows, few, np.bincount(few[few >= 0]) / 60))


def test_features_are_scaled_each_on_their_own_if_labels_are_then_recognised_better() -> None:
    numbers = np.random.default_rng(0)
    truth = np.arange(300) % 2
    told = truth[:, None] * 2.0 + 0.5 * numbers.normal(size=(300, 4))  # what tells the classes apart
    few = few_of(truth, sample_per_class(truth, 5, seed=0))
    for loud, alone in ((told[:, :1] * 6, False), (numbers.normal(size=(300, 1)) * 6, True)):
        rows = np.concatenate([loud, told[:, 1:] if alone else numbers.normal(size=(300, 3))], axis=1)
        model = small().fit(rows, few)
        assert (np.ptp(model.scale_) > 0) == alone
        assert np.allclose(model.scale_, rows.std(0) if alone else np.sqrt(rows.var(0).mean()))
        assert model.score(rows, truth) > 0.9


def test_predictions_are_judged_by_the_unlabelled_neighbours_of_labels() -> None:
    start = make_start(X, np.arange(len(X)), FEW, EQUAL, np.random.default_rng(0))
    right, wrong = np.eye(3)[Y] * 0.7 + 0.1, np.eye(3)[(Y + 1) % 3] * 0.7 + 0.1
    assert near_labels(right, start, FEW) > near_labels(wrong, start, FEW)
    changed = right.copy()
    changed[CHOSEN] = wrong[CHOSEN]  # the labelled rows themselves do not count
    assert near_labels(changed, start, FEW) == near_labels(right, start, FEW)


def run(callback: Any, losses: list[float]) -> int:
    """Number of steps that the callback lets a phase take."""
    state = SimpleNamespace(stop=False, loss=0.0, step=0)
    for state.step, state.loss in enumerate(losses, 1):
        callback.on_step_end(state)
        if state.stop:
            return state.step
    return len(losses)


def test_a_phase_ends_two_windows_after_the_loss_stopped_falling() -> None:
    falling = list(np.exp(-np.arange(4 * WINDOW) / 50))
    assert run(LossPlateau(), falling) == len(falling)
    assert run(LossPlateau(), falling + [falling[-1]] * 10 * WINDOW) <= len(falling) + 3 * WINDOW
    assert run(LossPlateau(), [1.0] * 10 * WINDOW) == 3 * WINDOW


def test_a_phase_ends_when_predictions_stay_the_same() -> None:
    labels = torch.zeros(100, dtype=torch.long)
    assert run(PredictionPlateau(lambda: labels.clone()), [0.0] * 10 * WINDOW) == 2 * WINDOW
    steps = iter(range(100))
    assert run(PredictionPlateau(lambda: labels + next(steps)), [0.0] * 10 * WINDOW) == 10 * WINDOW


def test_the_defaults_are_deterministic_and_describe_what_was_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    one, two = small().fit(X, FEW), small(verbose=1).fit(X, FEW)
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))
    assert one.kept_ in ("game", "start")
    assert "game" in one.kept_reason_
    assert "soft labels of 150 rows: 4 neighbours" in one.start_
    assert one.prior_.sum() == pytest.approx(1)
    assert "predictions of the start on 135 unlabelled rows" in one.prior_source_
    assert 0 < one.n_iter_ <= 800
    assert f"kept the {two.kept_} after {two.n_iter_} steps" in capsys.readouterr().out


def test_equal_shares_are_warned_of_where_predictions_are_skewed() -> None:
    rows, truth = make_classification(
        400, 4, n_informative=4, n_redundant=0, weights=[0.9], class_sep=2.0, flip_y=0, random_state=0
    )
    few = np.full(400, -1)
    few[sample_per_class(truth, 5, seed=0)] = truth[sample_per_class(truth, 5, seed=0)]
    with pytest.warns(UserWarning, match=r"balanced evenly over 2 classes, but \d\d % of .* predicted as 0"):
        small(prior="uniform", steps=5).fit(rows, few)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        small(steps=5).fit(rows, few)  # estimated shares
        small(prior="uniform", steps=5).fit(X, FEW)


def test_a_class_is_recognised_if_left_out_labels_are_more_likely_than_its_share() -> None:
    shares, labels = np.array([0.6, 0.3, 0.1]), np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 2])
    assert np.allclose(class_lifts(np.tile(shares, (10, 1)), labels, labels, shares)[:2], 0)
    better = shares + 0.5 * (np.eye(3)[labels] - shares)
    lifts = class_lifts(better, labels, labels, shares)
    assert np.allclose(lifts[:2], np.log([0.8 / 0.6, 0.65 / 0.3]))
    assert lifts[2] == -np.inf  # a single label: without it, nothing is known of the class
    worse = shares - 0.2 * shares * np.eye(3)[labels]
    assert (class_lifts(worse, labels, labels, shares)[:2] < 0).all()
    some = np.array([0, 1, 6])  # only some labels are checked
    assert np.allclose(class_lifts(better[some], labels[some], labels, shares)[:2], lifts[:2])


def skewed_rows(positives: int) -> tuple[np.ndarray, np.ndarray]:
    """Random rows, with labels that have nothing to do with them: 12 labels, `positives` of class 1."""
    rows = np.random.default_rng(0).normal(size=(300, 4))
    few = np.full(300, -1)
    few[:12] = np.arange(12) < positives
    return rows, few


def test_a_class_of_unknown_share_does_not_grow_and_is_warned_of() -> None:
    rows, few = skewed_rows(1)
    with pytest.warns(UserWarning, match="1 of 12 labels are of class 1, too few to know how common it is"):
        model = small().fit(rows, few)
    start = small(steps=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start.fit(rows, few)
    grown = (model.predict(rows) == 1) & (start.predict(rows) == 0)
    assert grown[few < 0].mean() <= 0.02
    assert "into classes of unknown share" in model.kept_reason_
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        small(steps=5, prior=[0.9, 0.1]).fit(rows, few)  # known shares
        small(steps=5).fit(X, FEW)  # as many labels per class


def test_only_moves_into_classes_of_unknown_share_count() -> None:
    before, after = torch.eye(3)[[0, 0, 1, 2, 1]], torch.eye(3)[[1, 0, 1, 1, 2]]
    assert _moved(before, after, np.array([False, True, False])) == pytest.approx(2 / 5)
    assert _moved(before, after, np.array([False, True, True])) == pytest.approx(3 / 5)
    assert _moved(before, after, None) == 0


def test_a_fixed_number_of_initial_steps_means_the_given_labels_alone() -> None:
    auto = small(initial_steps=30, steps=20).fit(X, FEW)
    labels = small(initial_steps=30, steps=20, start="labels").fit(X, FEW)
    assert np.array_equal(auto.predict_proba(X), labels.predict_proba(X))
    assert auto.start_ == "given labels"
    assert auto.kept_ == "game"


@pytest.mark.parametrize("settings", [{"weak": True}, {"coupling": "none"}, {"start": "labels"}], ids=str)
def test_where_the_labels_alone_are_the_start(settings: dict[str, Any]) -> None:
    assert small(**settings).fit(X, FEW).start_ == "given labels"
    assert small(**settings).fit(X, Y).start_ == "given labels"


def test_a_large_pool_is_sampled_with_every_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(initial, "MOST_ROWS", 60)
    rare = np.where(np.arange(len(Y)) == CHOSEN[-1], 7, FEW)
    model = small(steps=10).fit(X, rare)
    assert "soft labels of 60 rows" in model.start_
    encoded = SimpleNamespace(codes=np.where(rare == 7, 3, rare), labeled=rare != -1)
    rows = initial._graph_rows(encoded, np.random.default_rng(0))
    assert len(np.unique(rows)) == len(rows) == 60
    assert set(encoded.codes[rows]) == {-1, 0, 1, 2, 3}


def test_sparse_rows_have_the_same_start_as_dense_rows() -> None:
    dense, from_csr = (
        make_start(rows, np.arange(len(X)), FEW, EQUAL, np.random.default_rng(0)) for rows in (X, sparse.csr_matrix(X))
    )
    assert np.allclose(dense.targets, from_csr.targets, atol=1e-4)
    rows = sparse.csr_matrix(X * (np.random.default_rng(0).random(X.shape) < 0.6))
    model = small(steps=10).fit(rows, FEW)
    assert "soft labels of 150 rows" in model.start_
    assert model.score(rows, Y) > 0.5  # chance is 1/3


def test_features_of_one_unit_share_a_divisor_and_others_do_not() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 4)) * [1.0, 2.0, 3.0, 0.0]
    mean, scale = feature_scaling(rows, "auto")
    assert np.allclose(scale, np.sqrt((rows[:, :3].std(0) ** 2).mean()))
    assert np.allclose(mean, rows.mean(0))
    units = rows * [1.0, 1.0, 1000.0, 1.0]
    for each, expected in zip(feature_scaling(units, "auto"), feature_scaling(units, True), strict=True):
        assert np.array_equal(each, expected)


def test_rare_classes_stay_rare() -> None:
    rows, truth = make_classification(
        1000, 20, n_informative=8, weights=[0.95], flip_y=0, class_sep=1.5, random_state=0
    )
    few = np.full(1000, -1)
    few[:60] = truth[:60]
    assert 1 <= few[:60].sum() <= 6
    model = DriftClassifier(random_state=0).fit(rows, few)
    assert model.prior_[1] < 0.15
    assert model.predict(rows).mean() < 0.15
    assert "counts of 60 labels" in model.prior_source_


@pytest.mark.parametrize("prior", ["uniform", None])
def test_an_even_prior_on_request(prior: str | None) -> None:
    model = small(prior=prior, initial_steps=5, steps=5).fit(X, FEW)
    assert np.array_equal(model.prior_, EQUAL)
    assert model.prior_source_ == "equal shares"


def test_choices_are_saved_and_loaded(tmp_path: Any) -> None:
    model = small().fit(X, FEW)
    back = DriftClassifier.load(model.save(tmp_path / "model"))
    for name in ("prior_source_", "start_", "kept_", "kept_reason_"):
        assert getattr(back, name) == getattr(model, name)
    assert np.array_equal(back.prior_, model.prior_)
