"""GCN equals its formula, stacked trials equal single trials, and student and teacher share the graph."""

import copy
import os

import pytest
import torch
from torch import Tensor

from drift.core import Game
from drift.errors import ConfigError
from drift.models.gcn import GCN
from drift.models.propagation import Streams, row_normalized
from drift.training.optimizers import make_optimizer
from drift.training.settings import TrainingSettings

NODES, FEATURES, CLASSES = 12, 9, 3
SEEDS = (3, 1, 4)
EDGES = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 2], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 5, 8]])  # 11 is isolated
ALL = torch.arange(NODES)


def words() -> Tensor:
    return (torch.rand(NODES, FEATURES, generator=torch.Generator().manual_seed(0)) < 0.3).float()


def small(seeds: tuple[int, ...] = SEEDS, **options: float) -> GCN:
    return GCN(row_normalized(words()), EDGES, CLASSES, seeds=seeds, hidden=5, **options)  # type: ignore[arg-type]


def by_hand(model: GCN, trial: int, x: Tensor, hidden_factor: Tensor | float = 1.0) -> Tensor:
    a = model.adjacency.rows.to_dense()
    hidden = torch.relu(a @ x @ model.first_weight[trial] + model.first_bias[trial]) * hidden_factor
    return a @ hidden @ model.second_weight[trial] + model.second_bias[trial]


def adam(model: GCN) -> torch.optim.Optimizer:
    settings = TrainingSettings(optimizer="adam", learning_rate=0.01, weight_decay=5e-4)
    return make_optimizer(model, settings, initial=False)


def steps(model: GCN, count: int, optimizer: torch.optim.Optimizer | None = None) -> torch.optim.Optimizer:
    optimizer = optimizer or adam(model)
    y = (ALL % CLASSES)[:6]
    model.train()
    for _ in range(count):
        log_p = torch.log_softmax(model(ALL[:6]), -1)
        (-log_p[:, ALL[:6], y].mean(1).sum()).backward()
        optimizer.step()
        optimizer.zero_grad()
    return optimizer


def test_evaluation_is_the_formula() -> None:
    model = small().eval()
    x = model.features.rows.to_dense()
    rows = torch.tensor([5, 0, 11])
    torch.testing.assert_close(model(rows), torch.stack([by_hand(model, trial, x)[rows] for trial in range(3)]))


def test_training_is_the_formula_with_the_masks_that_were_drawn() -> None:
    model = small(dropout=0.3).train()
    streams = copy.deepcopy(model.streams)
    logits = model(ALL)
    x = model.features.rows.to_dense()
    on_features, on_hidden = streams.kept(0.3, int((x != 0).sum())), streams.kept(0.3, NODES, 5)
    for trial in range(3):
        dropped = x.clone()
        dropped[x != 0] *= on_features[trial] / 0.7
        torch.testing.assert_close(logits[trial], by_hand(model, trial, dropped, on_hidden[trial] / 0.7))


def test_dense_and_sparse_features_are_the_same() -> None:
    sparse, dense = small(), GCN(row_normalized(words()).to_dense(), EDGES, CLASSES, seeds=SEEDS, hidden=5)
    torch.testing.assert_close(dense(ALL), sparse(ALL), rtol=0, atol=0)


def test_stacked_trials_are_the_trials_one_by_one() -> None:
    together = small()
    steps(together, 20)
    for trial, seed in enumerate(SEEDS):
        alone = small((seed,))
        steps(alone, 20)
        for name, parameter in alone.named_parameters():
            torch.testing.assert_close(parameter[0], together.get_parameter(name)[trial], rtol=1e-4, atol=1e-6)


def test_each_trial_can_have_rows_of_its_own() -> None:
    model, rows = small().eval(), torch.tensor([[0, 1], [2, 3], [11, 0]])
    everything = model(ALL)
    torch.testing.assert_close(model(rows), torch.stack([everything[trial, rows[trial]] for trial in range(3)]))


def test_trials_differ_by_seed_and_the_global_generator_is_not_touched() -> None:
    before = torch.get_rng_state()
    model = small().train()
    assert not torch.equal(model(ALL)[0], model(ALL)[1])
    assert torch.equal(torch.get_rng_state(), before)


def test_a_saved_model_goes_on_exactly_and_holds_no_graph() -> None:
    whole = small()
    steps(whole, 6)
    half = small()
    optimizer = steps(half, 3)
    state = copy.deepcopy(half.state_dict())
    assert set(state) == {"first_weight", "first_bias", "second_weight", "second_bias", "streams.drawn"}
    resumed = small()
    resumed.load_state_dict(state)
    again = adam(resumed)
    again.load_state_dict(optimizer.state_dict())
    steps(resumed, 3, again)
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_only_the_first_weights_decay_and_every_parameter_is_there_once() -> None:
    model = small()
    groups = adam(model).param_groups
    assert [p for group in groups for p in group["params"] if group["weight_decay"]] == [model.first_weight]
    assert {id(p) for group in groups for p in group["params"]} == {id(p) for p in model.parameters()}


def test_the_graph_follows_the_model_to_another_type() -> None:
    model = small().double()
    assert model(ALL).dtype == torch.float64
    model.eval()
    assert torch.autograd.gradcheck(
        lambda w: torch.func.functional_call(model, {"first_weight": w}, (ALL,)), model.first_weight
    )


def test_one_call_gives_what_two_do() -> None:
    """Without dropout, because a second call would draw another mask."""
    losses = []
    for full_graph in (False, True):
        game = Game(small(dropout=0.0), stacked=True, full_graph=full_graph)
        y = (ALL % CLASSES)[:4].expand(len(SEEDS), -1)
        rows = ALL.expand(len(SEEDS), -1)
        loss = game.loss(unlabeled=rows[:, 4:], labeled=(rows[:, :4], y))
        game.backward(loss)
        losses.append((loss.detach(), game.student.first_weight.grad))
    torch.testing.assert_close(losses[0], losses[1])


def play(seeds: tuple[int, ...], count: int = 8) -> Game:
    model = small(seeds)
    game = Game(model, stacked=True, alpha=0.8)
    optimizer = adam(model)
    y = (ALL % CLASSES)[:4].expand(len(seeds), -1)
    model.train()
    for _ in range(count):
        game.backward(game.loss(unlabeled=ALL[4:], labeled=(ALL[:4], y)))
        optimizer.step()
        optimizer.zero_grad()
        game.follow()
    return game


def test_student_and_teacher_share_the_graph_and_nothing_else() -> None:
    game = play(SEEDS)
    student, teacher = game.student, game.teacher
    assert isinstance(student, GCN)
    assert isinstance(teacher, GCN)
    assert teacher.adjacency is student.adjacency
    assert teacher.features is student.features
    assert not teacher.training
    for one, other in zip(student.parameters(), teacher.parameters(), strict=True):
        assert one.data_ptr() != other.data_ptr()
        assert not torch.equal(one, other)


def test_stacked_games_are_the_games_one_by_one() -> None:
    together = play(SEEDS)
    for trial, seed in enumerate(SEEDS):
        alone = play((seed,))
        torch.testing.assert_close(
            alone.predict_proba(ALL, by="teacher")[0], together.predict_proba(ALL, by="teacher")[trial],
            rtol=1e-4, atol=1e-6,
        )  # fmt: skip


def test_accumulation_draws_the_same_masks_in_both_passes() -> None:
    y = (ALL % CLASSES)[:4].expand(3, -1)
    batch = {"unlabeled": ALL[4:], "labeled": (ALL[:4], y)}
    gradients = []
    for exact in (True, False):
        model = small()
        game = Game(model, stacked=True)
        if exact:
            game.accumulate([batch])
        else:
            game.backward(game.loss(**batch))
        gradients.append(model.first_weight.grad)
    torch.testing.assert_close(gradients[0], gradients[1])


def test_a_dropout_that_cannot_be() -> None:
    with pytest.raises(ConfigError, match="dropout=1"):
        small(dropout=1.0)


def test_torch_geometric_computes_the_same() -> None:
    nn = pytest.importorskip("torch_geometric.nn", reason="torch_geometric is not installed")
    model = small((0,)).eval()
    first, second = nn.GCNConv(FEATURES, 5), nn.GCNConv(5, CLASSES)
    with torch.no_grad():
        for layer, weight, bias in (
            (first, model.first_weight, model.first_bias),
            (second, model.second_weight, model.second_bias),
        ):
            layer.lin.weight.copy_(weight[0].T)
            layer.bias.copy_(bias[0, 0])
    both = torch.cat([EDGES, EDGES.flip(0)], 1)
    x = row_normalized(words()).to_dense()
    torch.testing.assert_close(second(torch.relu(first(x, both)), both), model(ALL)[0])


@pytest.mark.skipif("DRIFT_DATA" not in os.environ, reason="DRIFT_DATA is not set")
def test_cora_is_classified_as_well_as_published() -> None:
    from drift.data.graphs import read_graph

    graph = read_graph("Cora")
    rows = {part: torch.from_numpy(graph.splits[part]) for part in ("train", "test")}
    y = torch.from_numpy(graph.labels)
    model = GCN(row_normalized(graph.features), graph.edges, len(graph.classes), seeds=range(5))
    optimizer = adam(model)
    targets = y[rows["train"]].expand(5, -1)
    for _ in range(200):
        (torch.nn.functional.cross_entropy(model(rows["train"]).mT, targets) * 5).backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        predicted = model.eval()(rows["test"]).argmax(-1)
    assert 0.805 < float((predicted == y[rows["test"]]).float().mean()) < 0.825  # 81.5 in the original work


def test_streams_are_the_models_own_after_a_copy() -> None:
    model = small().train()
    twin = copy.deepcopy(model)
    assert isinstance(twin.streams, Streams)
    model(ALL)
    assert int(twin.streams.drawn[0]) < int(model.streams.drawn[0])


def test_pygcn_divides_rows_drops_no_feature_and_decays_both_layers() -> None:
    model = small(variant="pygcn", dropout=0.3).train()  # type: ignore[arg-type]
    a = torch.zeros(NODES, NODES)
    a[EDGES[0], EDGES[1]] = a[EDGES[1], EDGES[0]] = 1
    a += torch.eye(NODES)
    a /= a.sum(1, keepdim=True)
    torch.testing.assert_close(model.adjacency.rows.to_dense(), a)
    torch.testing.assert_close(model.adjacency.columns.to_dense(), a.T)
    streams, x = copy.deepcopy(model.streams), model.features.rows.to_dense()
    logits = model(ALL)
    on_hidden = streams.kept(0.3, NODES, 5)
    for trial in range(3):
        torch.testing.assert_close(logits[trial], by_hand(model, trial, x, on_hidden[trial] / 0.7))
    decayed, undecayed = adam(model).param_groups
    assert {id(p) for p in decayed["params"]} == {id(model.first_weight), id(model.second_weight)}
    assert len(undecayed["params"]) == 2  # the biases
    assert small().undecayed == ("second_weight",)


def test_gradients_pass_an_adjacency_that_is_not_symmetric() -> None:
    model = small(variant="pygcn", dropout=0.0)  # type: ignore[arg-type]
    model(ALL)[0].square().sum().backward()
    weight = model.first_weight.detach()[0].clone().requires_grad_()
    a, x = model.adjacency.rows.to_dense(), model.features.rows.to_dense()
    logits = a @ torch.relu(a @ x @ weight) @ model.second_weight.detach()[0]
    logits.square().sum().backward()
    torch.testing.assert_close(model.first_weight.grad[0], weight.grad)
