"""Misuse raises an error of this package that names the problem and says what to do."""

import re
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from drift import Game, HardStrategy, SoftStrategy
from drift.errors import ConfigError, DriftError, LabelError, ShapeError, StateError
from drift.models.mlp import mlp

FEATURES, CLASSES, ROWS = 4, 3, 6
X = torch.linspace(-1, 1, ROWS * FEATURES).reshape(ROWS, FEATURES)
Y = torch.arange(ROWS) % CLASSES


def net(classes: int = CLASSES, hidden: int = 5) -> nn.Module:
    return mlp(FEATURES, classes, (hidden,))


class Returns(nn.Module):
    """A student whose output the test can change."""

    def __init__(self, change: Callable[[Tensor], Any], classes: int = CLASSES) -> None:
        super().__init__()
        self.body, self.change = nn.Linear(FEATURES, classes), change

    def forward(self, x: Tensor) -> Any:
        return self.change(self.body(x))


def refused(kind: type[DriftError], words: list[str], call: Callable[[], Any]) -> None:
    """The call raises exactly this error, and the message has every one of these words."""
    with pytest.raises(DriftError) as caught:
        call()
    assert type(caught.value) is kind
    message = str(caught.value)
    missing = [word for word in words if word not in message]
    assert not missing, f"{missing} not in: {message}"


# Settings


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"alpha": -0.1}, ["alpha=-0.1", "[0, 1]", "old teacher"]),
        ({"alpha": 1.5}, ["alpha=1.5", "[0, 1]"]),
        ({"alpha": float("nan")}, ["alpha=nan", "[0, 1]"]),
        ({"tau": 0.0}, ["tau=0.0", "above 0"]),
        ({"tau": -1}, ["tau=-1", "above 0"]),
        ({"tau": float("nan")}, ["tau=nan", "above 0"]),
        ({"tau": float("inf")}, ["tau=inf", "above 0"]),
        ({"unlabeled_weight": -1.0}, ["unlabeled_weight=-1.0", "0 or more"]),
        ({"unlabeled_weight": float("nan")}, ["unlabeled_weight=nan", "0 or more"]),
        ({"unlabeled_weight": float("inf")}, ["unlabeled_weight=inf", "0 or more"]),
        ({"coupling": "off"}, ["coupling='off'", "'differentiable'", "'shared'", "'detached'"]),
        ({"teacher_mode": "test"}, ["teacher_mode='test'", "'eval'", "'train'"]),
        ({"pseudo_label": "both"}, ["pseudo_label='both'", "'unlabeled'", "'all'"]),
        ({"prior": [0.5, 0.5, 0.0]}, ["0.0", "positive share"]),
        ({"prior": [0.5, -0.5, 1.0]}, ["-0.5", "positive share"]),
        ({"prior": [0.5, float("nan"), 0.5]}, ["nan", "positive share"]),
        ({"prior": [1.0, 1.0, 1.0], "class_mass": False}, ["prior", "class_mass is off", "drop the prior"]),
        ({"strategy": HardStrategy(), "tau": 0.3}, ["strategy is given", "tau", "set them there"]),
        ({"strategy": SoftStrategy(), "class_mass": False}, ["strategy is given", "class_mass"]),
    ],
    ids=str,
)
def test_a_setting_out_of_range(settings: dict[str, Any], words: list[str]) -> None:
    refused(ConfigError, words, lambda: Game(net(), **settings))


@pytest.mark.parametrize("name", ["alpha", "tau", "unlabeled_weight"])
@pytest.mark.parametrize("value", ["0.5", None, [0.5]], ids=repr)
def test_a_setting_that_is_no_number(name: str, value: object) -> None:
    refused(ConfigError, [f"{name}={value!r}"], lambda: Game(net(), **{name: value}))


@pytest.mark.parametrize("prior", [0.5, "uniform"])
def test_a_prior_that_is_no_list_of_shares(prior: object) -> None:
    refused(ConfigError, ["prior", repr(prior)], lambda: Game(net(), prior=prior))


@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan")])
def test_alpha_is_checked_when_it_is_changed_too(value: float) -> None:
    game = Game(net(), alpha=0.7)
    refused(ConfigError, [f"alpha={value!r}"], lambda: setattr(game, "alpha", value))
    assert game.alpha == 0.7


@pytest.mark.parametrize("tau", [0.0, -1.0, float("nan")])
def test_a_strategy_checks_its_temperature(tau: float) -> None:
    refused(ConfigError, [f"tau={tau!r}", "above 0"], lambda: SoftStrategy(tau))


# Students and teachers


def frozen() -> nn.Module:
    return net().requires_grad_(False)


class Locked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.lock = nn.Linear(FEATURES, CLASSES), threading.Lock()

    def forward(self, x: Tensor) -> Tensor:
        with self.lock:
            return self.body(x)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (frozen, ["Sequential", "no trainable parameter", "unfreeze"]),
        (nn.Identity, ["Identity", "no trainable parameter"]),
        (Locked, ["Locked", "cannot be copied", "lock", "teacher="]),
        (lambda: nn.LazyLinear(CLASSES), ["lazy", "run one batch"]),
    ],
    ids=["frozen", "no parameters", "not copyable", "lazy"],
)
def test_a_student_that_cannot_play(build: Callable[[], nn.Module], words: list[str]) -> None:
    refused(ConfigError, words, lambda: Game(build()))


def test_a_student_that_cannot_be_copied_works_with_a_given_teacher() -> None:
    game = Game(Locked(), teacher=Locked())
    game.backward(game.loss(X))
    game.follow()
    assert game.steps == 1


def sharing(student: nn.Sequential) -> nn.Module:
    return nn.Sequential(student[0], nn.Tanh(), nn.Linear(5, CLASSES))


@pytest.mark.parametrize(
    "teacher_of", [lambda student: student, sharing, lambda student: nn.Sequential(*student)], ids=["it", "part", "all"]
)
def test_a_teacher_that_is_the_student(teacher_of: Callable[[nn.Module], nn.Module]) -> None:
    student = net()
    refused(ConfigError, ["share", "0.weight", "of its own"], lambda: Game(student, teacher=teacher_of(student)))


def test_a_refused_student_is_left_in_its_mode() -> None:
    student = net().train()
    with pytest.raises(ConfigError):
        Game(student, teacher=student)
    assert student.training


def test_a_teacher_of_another_architecture() -> None:
    deeper = mlp(FEATURES, CLASSES, (5, 5))
    refused(StateError, ["parameters", "4.weight", "same architecture"], lambda: Game(net(), teacher=deeper))


def test_a_teacher_with_other_buffers() -> None:
    student = nn.Sequential(nn.Linear(FEATURES, 5), nn.BatchNorm1d(5), nn.Linear(5, CLASSES))
    teacher = nn.Sequential(nn.Linear(FEATURES, 5), nn.BatchNorm1d(5, track_running_stats=False), nn.Linear(5, CLASSES))
    refused(StateError, ["buffers", "1.running_mean", "same architecture"], lambda: Game(student, teacher=teacher))


def test_a_teacher_of_another_width() -> None:
    """Only the shapes differ; torch would complain about them in the middle of backward."""

    def play() -> None:
        game = Game(net(hidden=5), teacher=net(hidden=7))
        game.backward(game.loss(X))

    with pytest.raises(DriftError, match=r"0\.weight.*\(7, 4\).*\(5, 4\)|0\.weight.*\(5, 4\).*\(7, 4\)"):
        play()


def test_a_teacher_with_other_classes() -> None:
    with pytest.raises(DriftError, match=r"2\.weight is torch\.float\d\d \(4, \d+\), the student's .*\(3, \d+\)"):
        Game(net(), teacher=net(4)).loss(X)


def test_a_teacher_of_another_precision() -> None:
    refused(ConfigError, ["0.weight", "bfloat16", "precision"], lambda: Game(net(), teacher=net().to(torch.bfloat16)))


# Logits


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda logits: (logits, None), ["Returns", "returned tuple", ".logits"]),
        (lambda logits: None, ["Returns", "returned NoneType", "tensor of logits"]),
        (lambda logits: logits.tolist(), ["Returns", "returned list"]),
        (lambda logits: {"scores": logits}, ["Returns", "returned dict"]),
        (lambda logits: logits[:, None], ["(6, 1, 3)", "2 dimensions", "stacked=True", "token"]),
        (lambda logits: logits[:, 0], ["(6,)", "2 dimensions", "one row per example"]),
        (lambda logits: logits.sum(), ["()", "2 dimensions"]),
        (lambda logits: logits[:, :1], ["1 class", "at least 2 classes"]),
        (lambda logits: logits[:, :0], ["0 class", "at least 2 classes"]),
    ],
    ids=["tuple", "none", "list", "dict", "three dimensions", "one dimension", "scalar", "one class", "no class"],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda game: game.loss(X),
        lambda game: game.loss(labeled=(X, Y)),
        lambda game: game.predict_proba(X),
    ],
    ids=["unlabeled", "labeled", "predict"],
)
def test_a_student_that_returns_no_logits(
    change: Callable[[Tensor], Any], words: list[str], call: Callable[[Game], Any]
) -> None:
    refused(ShapeError, words, lambda: call(Game(Returns(change))))


def test_a_stacked_game_over_one_trial_without_its_dimension() -> None:
    refused(ShapeError, ["(6, 3)", "3 dimensions"], lambda: Game(net(), stacked=True).loss(X))


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.25] * 4, []])
def test_a_prior_for_another_number_of_classes(prior: list[float]) -> None:
    words = ["prior", f"{len(prior)} classes", f"the logits have {CLASSES}", "one share per class"]
    refused(ShapeError, words, lambda: Game(net(), prior=prior).loss(X))


class Growing(nn.Module):
    """As many classes as the batch has rows."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(FEATURES, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)[:, : len(x)]


@pytest.mark.parametrize(
    "calls",
    [
        lambda game: (game.loss(X), game.loss(X[:4])),
        lambda game: game.loss(X, (X[:4], Y[:4])),
        lambda game: (game.predict_proba(X), game.predict_proba(X[:4])),
    ],
    ids=["two batches", "labelled and unlabelled", "predictions"],
)
def test_classes_that_change_between_batches(calls: Callable[[Game], Any]) -> None:
    with pytest.raises(ShapeError, match=r"(4 classes.*6|6 classes.*4); keep the class set fixed"):
        calls(Game(Growing()))


# Data


def test_no_data_at_all() -> None:
    refused(ShapeError, ["no data", "unlabeled=", "labeled="], lambda: Game(net()).loss())


@pytest.mark.parametrize(
    "arguments",
    [{"unlabeled": X[:0]}, {"labeled": (X[:0], Y[:0])}, {"unlabeled": X[:0], "labeled": (X, Y)}],
    ids=["unlabeled", "labeled", "one of two"],
)
def test_an_empty_batch(arguments: dict[str, Any]) -> None:
    refused(ShapeError, ["empty batch", "None"], lambda: Game(net()).loss(**arguments))


@pytest.mark.parametrize(
    ("labels", "kind", "words"),
    [
        (Y + 1, LabelError, ["label 3", "0..2", "unlabeled"]),
        (Y - 1, LabelError, ["label -1", "0..2", "unlabeled"]),
        (torch.full_like(Y, -100), LabelError, ["label -100", "0..2"]),
        (Y.float(), LabelError, ["torch.float32", "class indices", "torch.int64"]),
        (torch.full((len(Y), 3), 0.5), LabelError, ["soft labels", "sum to 1"]),
        (torch.tensor([[2.0, -1.0, 0.0]] * len(Y)), LabelError, ["soft labels", "at least 0"]),
        (torch.full((len(Y), 3), torch.nan), LabelError, ["soft labels"]),
        (Y.to(torch.complex64), LabelError, ["torch.complex64", "class indices"]),
        (Y.tolist(), LabelError, ["list", "class indices"]),
        (Y.numpy(), LabelError, ["ndarray", "class indices"]),
        (None, LabelError, ["NoneType", "class indices"]),
        (Y[:-1], ShapeError, ["(5,)", "(6, 3)", "one label per row"]),
        (Y[:, None], ShapeError, ["(6, 1)", "(6, 3)", "one label per row"]),
        (nn.functional.one_hot(Y), ShapeError, ["(6, 3)", "one label per row"]),
        (Y[0], ShapeError, ["()", "(6, 3)", "one label per row"]),
    ],
    ids=[
        "too high",
        "minus one",
        "ignored index",
        "float",
        "soft, too much",
        "soft, negative",
        "soft, not a number",
        "complex",
        "list",
        "array",
        "none",
        "too few",
        "column",
        "one-hot",
        "scalar",
    ],
)
def test_labels_that_do_not_fit(labels: Any, kind: type[DriftError], words: list[str]) -> None:
    refused(kind, words, lambda: Game(net()).loss(X, (X, labels)))


@pytest.mark.parametrize(
    "labeled", [X, X[:2], (X,), (X, Y, Y), {"x": X, "y": Y}], ids=["inputs", "two rows", "one", "three", "dict"]
)
def test_labelled_data_that_are_no_pair(labeled: Any) -> None:
    """Two rows would even unpack, as inputs and labels."""
    with pytest.raises(DriftError, match=r"labeled") as caught:
        Game(net()).loss(labeled=labeled)
    assert re.search(r"pair|tuple|\(inputs, labels\)|\(x, y\)", str(caught.value))


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.int64])
def test_labels_of_any_integer_type_are_fine(dtype: torch.dtype) -> None:
    student = net()
    expected = nn.functional.cross_entropy(student(X), Y)
    torch.testing.assert_close(Game(student).loss(labeled=(X, Y.to(dtype))), expected)


# The order of calls, and saved states


def before_anything(game: Game) -> None:
    game.diagnostics()


def after_supervised_only(game: Game) -> None:
    game.backward(game.loss(labeled=(X, Y)))
    game.diagnostics()


def before_backward(game: Game) -> None:
    game.loss(X)
    game.diagnostics()


def before_merging(game: Game) -> None:
    game.backward(game.loss(X), merge=False)
    game.diagnostics()


def before_the_next_backward(game: Game) -> None:
    game.backward(game.loss(X))
    game.loss(X)
    game.diagnostics()


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        (before_anything, ["before any loss", "backward() first"]),
        (after_supervised_only, ["before any loss with pseudo-labels"]),
        (before_backward, ["as backward() left them", "before clipping"]),
        (before_merging, ["as backward() left them", "before clipping"]),
        (before_the_next_backward, ["as backward() left them", "before clipping"]),
    ],
)
@pytest.mark.parametrize("coupling", ["differentiable", "shared", "detached"])
def test_diagnostics_out_of_order(calls: Callable[[Game], None], words: list[str], coupling: str) -> None:
    refused(StateError, ["diagnostics()", *words], lambda: calls(Game(net(), coupling=coupling)))


def test_following_a_loss_that_was_never_propagated() -> None:
    game = Game(net())
    game.loss(X)
    refused(StateError, ["follow()", "game.backward(loss)", "coupling='detached'"], game.follow)


def test_prediction_by_an_unknown_player() -> None:
    words = ["by='both'", "'student'", "'teacher'"]
    refused(ConfigError, words, lambda: Game(net()).predict_proba(X, by="both"))


def without(state: dict[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in state.items() if k != key}


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (lambda: {}, ["not a game's state", "teacher", "game.state_dict()"]),
        (lambda: net().state_dict(), ["not a game's state", "teacher", "game.state_dict()"]),
        (lambda: without(Game(net()).state_dict(), "steps"), ["not a game's state", "steps"]),
        (lambda: Game(mlp(FEATURES, CLASSES, (5, 5))).state_dict(), ["4.weight", "same architecture"]),
        (lambda: Game(nn.Linear(FEATURES, CLASSES)).state_dict(), ["0.weight", "weight", "same architecture"]),
        (lambda: Game(net(hidden=7)).state_dict(), ["0.weight", "(7, 4)", "(5, 4)", "same architecture"]),
        (lambda: Game(net(classes=4)).state_dict(), ["2.weight", "(4, 5)", "(3, 5)", "same architecture"]),
    ],
    ids=["empty", "a module's", "incomplete", "deeper", "shallower", "wider", "more classes"],
)
def test_a_foreign_state_is_refused_and_changes_nothing(state: Callable[[], dict[str, Any]], words: list[str]) -> None:
    game = Game(net())
    before = game.state_dict()
    refused(StateError, words, lambda: game.load_state_dict(state()))
    after = game.state_dict()
    assert (after["alpha"], after["steps"]) == (before["alpha"], before["steps"])
    for name, tensor in before["teacher"].items():
        assert torch.equal(after["teacher"][name], tensor), f"{name} was overwritten by a state that was refused"


def test_a_state_with_an_impossible_alpha_changes_nothing() -> None:
    game, other = Game(net()), Game(net())
    before = game.state_dict()
    refused(ConfigError, ["alpha=2.0"], lambda: game.load_state_dict({**other.state_dict(), "alpha": 2.0}))
    assert all(torch.equal(game.state_dict()["teacher"][n], t) for n, t in before["teacher"].items())


def test_an_unbalanced_class_that_does_not_exist() -> None:
    refused(ShapeError, ["unbalanced_class=7", f"{CLASSES} classes"], lambda: Game(net(), unbalanced_class=7).loss(X))


# Losses that are not numbers, or not of this game


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("part", ["unlabeled", "labeled"])
def test_inputs_that_are_not_finite_are_named(part: str, value: float) -> None:
    game, bad = Game(nn.Linear(FEATURES, CLASSES)), X.clone()
    bad[2, 1] = value
    batch: dict[str, Any] = {"unlabeled": X, "labeled": (X, Y)}
    batch[part] = bad if part == "unlabeled" else (bad, Y)
    refused(
        StateError, ["the loss is nan", f"{part} has values that are not finite", "check"], lambda: game.loss(**batch)
    )


def test_predictions_that_are_not_finite_are_refused_by_every_loss() -> None:
    game = Game(Returns(lambda logits: logits * float("nan")))
    for call in (
        lambda: game.loss(unlabeled=X),
        lambda: game.initial_loss((X, Y)),
        lambda: game.accumulate([{"unlabeled": X}, {"unlabeled": X}]),
    ):
        refused(StateError, ["the loss is nan", "predictions of a player are not finite"], call)


def test_the_check_of_the_loss_can_be_left_to_the_caller() -> None:
    game = Game(Returns(lambda logits: logits * float("nan")))
    game.checks_loss = False
    assert game.loss(unlabeled=X).isnan()


@pytest.mark.parametrize("coupling", ["differentiable", "shared", "detached"])
def test_backward_refuses_a_loss_of_something_else(coupling: Any) -> None:
    game, other = Game(net(), coupling=coupling), Game(net(), coupling=coupling)
    theirs = [other.loss(unlabeled=X), game.student(X).square().mean(), nn.Parameter(torch.ones(()))]
    game.loss(unlabeled=X)
    for loss in theirs:
        refused(
            StateError, ["a loss that this game did not compute", "game.loss()"], lambda loss=loss: game.backward(loss)
        )


@pytest.mark.parametrize("coupling", ["differentiable", "shared", "detached"])
def test_backward_takes_what_was_computed_from_its_own_loss(coupling: Any) -> None:
    game = Game(net(), coupling=coupling)
    for change in (
        lambda loss: loss / 4,
        lambda loss: 1e-3 * sum(p.square().sum() for p in game.student.parameters()) + loss,
    ):
        game.backward(change(game.loss(unlabeled=X, labeled=(X, Y))))
        game.follow()
    game.backward(game.initial_loss((X, Y)))
    game.follow()
    log_q, response = game.play(X)
    game.backward((log_q - response.log_y).square().mean())
    game.follow()
    assert game.steps == 4
    refused(StateError, ["did not compute"], lambda: game.backward(game.student(X).sum()))


def test_probabilities_in_place_of_logits_are_noticed_once() -> None:
    game = Game(nn.Sequential(nn.Linear(4, 3), nn.Softmax(-1)))
    with pytest.warns(UserWarning, match="Sequential seems to return probabilities"):
        game.loss(unlabeled=torch.randn(8, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        game.loss(unlabeled=torch.randn(8, 4))
        for last in (nn.LogSoftmax(-1), nn.Identity(), nn.ReLU(), nn.Sigmoid()):
            Game(nn.Sequential(nn.Linear(4, 3), last)).loss(unlabeled=torch.randn(8, 4))
