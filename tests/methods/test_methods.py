"""The contract of every method in the table; and how self-training and DRIFT differ."""

import copy
import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from drift.core import Game
from drift.core.forward import Inputs
from drift.core.teacher import copy_of
from drift.data.examples import Batch
from drift.errors import ConfigError
from drift.methods import METHODS
from drift.methods.method import GRAPH, INDEPENDENT_ROWS, TEXTS, Context, Method
from drift.methods.self_training import SelfTrainingSettings
from drift.models.gcn import GCN
from drift.models.mlp import mlp
from drift.settings import Settings
from drift.training.callbacks import Callback, TrainingState
from drift.training.loop import Phase
from drift.training.packing import pack, unpack
from tests.methods.pieces import cut

GENERATOR = torch.Generator().manual_seed(0)
CENTRES = 2 * torch.randn(3, 4, generator=GENERATOR)
STEPS, LABELED, UNLABELED, NODES = 6, 12, 18, 60


def drawn(rows: int) -> tuple[Tensor, Tensor]:
    y = torch.randint(0, 3, (rows,), generator=GENERATOR)
    return CENTRES[y] + torch.randn(rows, 4, generator=GENERATOR), y


ALL, CLASSES = drawn(2 * STEPS * UNLABELED)
VIEW = ALL + 0.1 * torch.randn(ALL.shape, generator=GENERATOR)
EDGES = torch.stack([torch.arange(NODES), torch.randint(0, NODES, (NODES,), generator=GENERATOR)])


def vectors(step: int) -> Batch:
    rows = torch.arange(step * UNLABELED, (step + 1) * UNLABELED)
    return Batch(drawn(LABELED), ALL[rows], unlabeled_rows=rows, views=(VIEW[rows],))


def nodes(step: int) -> Batch:
    rows = torch.randperm(NODES, generator=GENERATOR).unsqueeze(0)
    labeled, unlabeled = rows[:, :LABELED], rows[:, LABELED : LABELED + UNLABELED]
    return Batch((labeled, CLASSES[labeled]), unlabeled, unlabeled_rows=unlabeled)


OF_VECTORS, OF_NODES = ([make(step) for step in range(2 * STEPS)] for make in (vectors, nodes))
UNTRAINED = {"fixmatch": {"threshold": 0.0}}  # no label of an untrained student is above the published threshold
# Their loss depends on the whole batch in a way that micro-batches cannot compute one at a time.
WHOLE_BATCH = ("mixtext", "freematch")
BY_NAME = pytest.mark.parametrize("name", METHODS)


class Everything:
    """All unlabelled vectors, as a run passes them to a method."""

    rows, counts = torch.arange(len(ALL)), None

    @torch.no_grad()
    def ask(self, answer: Callable[[Tensor], Tensor], places: Tensor | None = None) -> Tensor:
        return answer(ALL if places is None else ALL[places])


def on_graph(name: str) -> bool:
    return GRAPH in METHODS[name].needs


def batches_of(name: str) -> list[Batch]:
    return OF_NODES if on_graph(name) else OF_VECTORS


def new_student(name: str, dropout: float = 0.0) -> nn.Module:
    if on_graph(name):
        return GCN(ALL[:NODES], EDGES, 3, seeds=[1])
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return mlp(4, 3, hidden=(8,), dropout=dropout)


def new_method(name: str, dropout: float = 0.0, **settings: Any) -> Method:
    kind, student = METHODS[name], new_student(name, dropout)
    settings = {**UNTRAINED.get(name, {}), **settings}
    teacher = copy_of(student) if kind.has_teacher else None
    return kind(student, kind.settings_type(**settings), Context(teacher, stacked=on_graph(name), single_process=True))


# Every method, and every method with a coupling a second time with the shared Jacobian.
WITH_SHARED = [
    *((name, {}) for name in METHODS),
    *(
        (name, {"coupling": "shared"})
        for name, kind in METHODS.items()
        if "coupling" in kind.settings_type.model_fields
    ),
]
BY_COUPLING = pytest.mark.parametrize(
    ("name", "settings"), WITH_SHARED, ids=["-".join([name, *settings.values()]) for name, settings in WITH_SHARED]
)


def begin(method: Method, probe: Inputs = None) -> None:
    """Do what a run does after the first phase."""
    method.start(probe)
    if method.refresh_every is not None:
        torch.manual_seed(0)
        method.refresh(Everything())


def optimizer_of(method: Method) -> torch.optim.Optimizer:
    return torch.optim.Adam(method.student.parameters(), lr=0.02)


def played(method: Method, optimizer: torch.optim.Optimizer, batches: list[Batch], *, initial: bool = False) -> None:
    steps: Iterator[list[Batch]] = iter([[batch] for batch in batches])
    Phase(method, steps, optimizer, initial=initial).run(range(1, len(batches) + 1))


def weights(module: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def after_a_game(name: str, **settings: Any) -> Tensor:
    method = new_method(name, **settings)
    begin(method)
    played(method, optimizer_of(method), OF_VECTORS)
    return weights(method.student)


# The contract.


@BY_NAME
def test_a_method_describes_itself(name: str) -> None:
    kind = METHODS[name]
    assert kind.name == name
    assert name == name.lower()
    assert kind.summary
    assert "\n" not in kind.summary
    assert issubclass(kind.settings_type, Settings)
    assert all(field.description for field in kind.settings_type.model_fields.values())
    assert (new_method(name).teacher is not None) == kind.has_teacher


@BY_NAME
def test_all_methods_have_one_constructor(name: str) -> None:
    student, settings, context = inspect.signature(METHODS[name]).parameters.values()
    assert (student.name, settings.name, context.name) == ("student", "settings", "context")
    assert context.default == Context()
    assert METHODS[name].needs <= {TEXTS, GRAPH, INDEPENDENT_ROWS}


@BY_NAME
def test_old_names_of_settings_are_accepted(name: str) -> None:
    settings_type = METHODS[name].settings_type
    assert set(settings_type.renamed.values()) <= set(settings_type.model_fields)
    if "unbalanced_class" in settings_type.model_fields:
        with pytest.warns(FutureWarning, match="spared is now unbalanced_class"):
            assert settings_type.read({"spared": 0}) == settings_type(unbalanced_class=0)


@BY_COUPLING
def test_both_phases_train(name: str, settings: dict[str, Any]) -> None:
    method, batches = new_method(name, **settings), batches_of(name)
    before = method.initial_loss(batches[0]).item()
    played(method, optimizer_of(method), batches, initial=True)
    assert method.initial_loss(batches[0]).item() < before
    begin(method)
    start = weights(method.student)
    played(method, optimizer_of(method), batches)
    assert math.isfinite(method.loss(batches[0]).item())
    assert method.initial_loss(batches[0]).item() < before
    assert not torch.equal(weights(method.student), start)


PARTS = [
    (name, part)
    for name, method in METHODS.items()
    for part in ("initial", "labeled", *(("both", "unlabeled") if method.has_second_phase else ()))
]


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_every_term_alone_reaches_every_parameter(name: str, part: str) -> None:
    method = new_method(name, dropout=0.2 if METHODS[name].head_dropout else 0.0)
    batch = batches_of(name)[0]
    if part == "initial":
        method.initial_loss(batch).backward()
    else:
        begin(method)
        kept = {
            "both": batch,
            "labeled": Batch(labeled=batch.labeled),
            "unlabeled": replace(batch, labeled=None, labeled_rows=None),
        }
        method.backward(method.loss(kept[part]))
    for parameter in method.student.parameters():
        assert parameter.grad.abs().sum() > 0


@pytest.mark.parametrize("name", [name for name, kind in METHODS.items() if kind.initial_loss is Method.initial_loss])
def test_the_first_phase_is_cross_entropy(name: str) -> None:
    method, batch = new_method(name), batches_of(name)[0]
    method.student.eval()
    x, y = batch.labeled
    expected = nn.functional.cross_entropy(method.student(x).flatten(0, -2), y.flatten())
    assert torch.allclose(method.initial_loss(batch), expected)


@BY_COUPLING
def test_a_saved_method_goes_on_exactly(name: str, settings: dict[str, Any]) -> None:
    first, second = batches_of(name)[:STEPS], batches_of(name)[STEPS:]
    whole = new_method(name, **settings)
    optimizer = optimizer_of(whole)
    begin(whole)
    played(whole, optimizer, first)
    generator = torch.random.get_rng_state()
    saved = unpack(*pack((dict(whole.student.state_dict()), optimizer.state_dict(), whole.state_dict())))
    saved = copy.deepcopy(saved)  # pack refers to the live tensors
    played(whole, optimizer, second)

    again = new_method(name, **settings)
    resumed = optimizer_of(again)
    again.start()
    student, of_optimizer, of_method = saved
    torch.random.set_rng_state(generator)
    again.student.load_state_dict(student)
    resumed.load_state_dict(of_optimizer)
    again.load_state_dict(of_method)
    played(again, resumed, second)
    assert torch.equal(weights(again.student), weights(whole.student))
    if whole.teacher is not None:
        assert torch.equal(weights(again.teacher), weights(whole.teacher))


@pytest.mark.parametrize("initial", [True, False], ids=["start", "game"])
@pytest.mark.parametrize(
    ("name", "settings"), [each for each in WITH_SHARED if not on_graph(each[0]) and each[0] not in WHOLE_BATCH]
)
def test_accumulated_pieces_of_any_size_are_the_whole_batch(name: str, settings: dict[str, Any], initial: bool) -> None:
    gradients = []
    for firsts in ((), (3, 11)):
        method = new_method(name, **settings)
        if not initial:
            begin(method)
        optimizer = torch.optim.SGD(method.student.parameters(), lr=0.0)
        callback, batches = KeepGradient(), iter([cut(OF_VECTORS[0], *firsts)])
        Phase(method, batches, optimizer, initial=initial, exact=True).run([1], [callback])
        gradients.append(callback.gradient)
    assert torch.allclose(*gradients, atol=1e-6)


class KeepGradient(Callback):
    """Keeps the student's gradient of the last step."""

    def on_backward_end(self, state: TrainingState) -> None:
        self.gradient = torch.cat([p.grad.flatten() for p in state.method.student.parameters()])


@BY_COUPLING
def test_diagnostics_can_be_written_down_and_change_nothing(name: str, settings: dict[str, Any]) -> None:
    method, batches = new_method(name, **settings), batches_of(name)
    begin(method, batches[1].unlabeled)
    method.backward(method.loss(batches[0]))
    before = copy.deepcopy([p.grad for p in method.student.parameters()])
    diagnostics = method.diagnostics()
    packed, tensors = pack(diagnostics)
    assert packed is not None
    assert not tensors
    assert all(torch.equal(p.grad, kept) for p, kept in zip(method.student.parameters(), before, strict=True))
    labels = method.probe_labels()
    assert labels is None or labels.shape == (UNLABELED,)


@BY_NAME
def test_predictions_are_the_students(name: str) -> None:
    method = new_method(name)
    method.student.eval()
    x = batches_of(name)[0].unlabeled
    assert torch.allclose(method.predict_proba(x), torch.softmax(method.student(x), dim=-1))
    assert not method.predict_proba(x).requires_grad


# Self-training and DRIFT.


def test_the_settings_are_the_games_with_its_defaults() -> None:
    game = inspect.signature(Game).parameters
    for name, field in SelfTrainingSettings.model_fields.items():
        if name not in ("own_loss", "prior", "prior_noise"):  # of the model; estimated by default, and not by the game
            assert field.default == game[name].default, name


@pytest.mark.parametrize("prior", [[0.2, 0.8], (1, 1, 2), {"money": 0.2, "sport": 0.8}, "auto", "labels"])
def test_a_prior_is_a_list_or_a_mapping(prior: Any) -> None:
    expected = tuple(prior) if isinstance(prior, list) else prior
    assert SelfTrainingSettings.read({"prior": prior}).prior == expected


@pytest.mark.parametrize("prior", ["even", 0.5, [0.2, "much"], [math.nan, 1], {"money": None}])
def test_any_other_prior_is_refused(prior: Any) -> None:
    with pytest.raises(ConfigError, match=r"^settings: .*or one number per class: a list in class") as error:
        SelfTrainingSettings.read({"prior": prior})
    assert ";" not in str(error.value)


@pytest.mark.parametrize("name", ["drift", "self-training"])
def test_a_prior_by_class_name_must_be_resolved_before_training(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^prior names classes \(money, sport\).* one share per class, in class"):
        new_method(name, prior={"money": 0.2, "sport": 0.8})


@pytest.mark.parametrize(
    "settings",
    [{"alpha": 1.0}, {"differentiate_labels": False, "differentiate_weights": False}],
    ids=["a teacher that never moves", "a response that is not anticipated"],
)
def test_without_interaction_drift_is_self_training(settings: dict[str, Any]) -> None:
    assert torch.equal(after_a_game("drift", **settings), after_a_game("self-training", **settings))


def test_with_interaction_it_is_not() -> None:
    assert float((after_a_game("drift") - after_a_game("self-training")).abs().max()) > 1e-4


def test_drift_plays_the_game_of_its_coupling() -> None:
    for coupling in ("differentiable", "shared", "detached"):
        assert new_method("drift", coupling=coupling).game.coupling == coupling
    assert new_method("drift").game.coupling == "differentiable"  # its student has hidden layers
    assert torch.equal(after_a_game("drift", coupling="detached"), after_a_game("self-training"))
    shared, exact = after_a_game("drift", coupling="shared"), after_a_game("drift")
    assert not torch.equal(shared, exact)
    assert float((shared - exact).norm()) < 0.5 * float((after_a_game("self-training") - exact).norm())


def test_a_weight_of_zero_is_supervised_learning() -> None:
    expected = after_a_game("supervised")
    assert torch.allclose(after_a_game("drift", unlabeled_weight=0.0), expected, atol=1e-6)


def test_the_game_starts_from_the_trained_student() -> None:
    method = new_method("drift")
    played(method, optimizer_of(method), OF_VECTORS, initial=True)
    assert not torch.equal(weights(method.student), weights(method.teacher))
    method.start()
    assert torch.equal(weights(method.student), weights(method.teacher))
