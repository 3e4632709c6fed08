"""GraphVAT and GraphMix on a small graph: their terms against direct computations with dense features."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from drift.data.examples import Batch
from drift.errors import ConfigError
from drift.methods.gcn_layers import from_first_layer, neighbours_mean
from drift.methods.graphmix import GraphMix, GraphMixSettings
from drift.methods.graphvat import GraphVAT, GraphVATSettings, _cross_entropy
from drift.methods.mean_teacher import ramp
from drift.methods.method import Context
from drift.models.gcn import GCN
from drift.models.grand import Grand

NODES, FEATURES, CLASSES = 12, 7, 3
RANDOM = np.random.default_rng(0)
X = torch.from_numpy(RANDOM.random((NODES, FEATURES)) * (RANDOM.random((NODES, FEATURES)) < 0.5)).float()
EDGES = np.array([(i, (i + 1) % (NODES - 1)) for i in range(NODES - 1)]).T  # a ring, and a node without an edge
LABELED = (torch.tensor([[0, 1, 2], [3, 4, 5]]), torch.tensor([[0, 1, 2], [2, 1, 0]]))
REST = torch.tensor([[3, 4, 5, 6, 7], [0, 1, 2, 6, 7]])


def network(seeds: tuple[int, ...] = (0, 1), dropout: float = 0.0) -> GCN:
    return GCN(X, EDGES, CLASSES, seeds=seeds, hidden=4, dropout=dropout)


def graphvat(student: GCN, **settings: Any) -> GraphVAT:
    return GraphVAT(student, GraphVATSettings(**settings), Context(stacked=True, single_process=True))


def graphmix(student: GCN, **settings: Any) -> GraphMix:
    return GraphMix(student, GraphMixSettings(**settings), Context(stacked=True, single_process=True))


def logits_of(student: GCN, trial: int, x: Tensor) -> Tensor:
    """The network written out, for dense features."""
    a = student.adjacency.rows.to_dense()
    hidden = torch.relu(a @ x @ student.first_weight[trial] + student.first_bias[trial])
    return a @ hidden @ student.second_weight[trial] + student.second_bias[trial]


def test_the_worst_change_is_the_gradient_of_all_features() -> None:
    student = network()
    method = graphvat(student)
    target = torch.softmax(torch.randn(2, NODES, CLASSES, generator=torch.Generator().manual_seed(0)), -1)
    sums = student.features @ student.first_weight
    metric = student.first_weight.mT @ student.first_weight
    perturbation = method._worst(sums, target, torch.zeros_like(sums), metric, 0.3)
    for trial in range(2):
        x = X.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(_cross_entropy(target[trial], logits_of(student, trial, x)), x)
        worst = 0.3 * gradient / gradient.norm(dim=1, keepdim=True)
        torch.testing.assert_close(perturbation[trial], worst @ student.first_weight[trial], atol=1e-5, rtol=1e-4)


def test_a_constant_change_of_the_features_has_the_gradient_of_the_weights_that_autograd_finds() -> None:
    student = network((0,))
    method = graphvat(student, virtual_weight=0, graph_weight=1, graph_radius=0.3)
    method.adversarial().backward()
    by_method = student.first_weight.grad.clone()
    student.zero_grad()
    target = method.neighbours @ torch.softmax(logits_of(student, 0, X), -1).detach().unsqueeze(0)
    x = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(_cross_entropy(target[0], logits_of(student, 0, x)), x)
    worst = torch.nan_to_num(0.3 * gradient / gradient.norm(dim=1, keepdim=True))
    _cross_entropy(target[0], logits_of(student, 0, X + worst)).backward()
    torch.testing.assert_close(by_method, student.first_weight.grad, atol=1e-6, rtol=1e-3)


def test_the_mean_over_neighbours_leaves_the_node_itself_out() -> None:
    mean = neighbours_mean(network()).rows.to_dense()
    assert mean.diagonal().eq(0).all()
    torch.testing.assert_close(mean.sum(1), torch.tensor([1.0] * (NODES - 1) + [0.0]))
    assert mean[0].nonzero().flatten().tolist() == [1, NODES - 2]


def test_a_larger_change_is_a_larger_divergence() -> None:
    def term(radius: float) -> float:
        student = network()
        return float(graphvat(student, graph_weight=0, virtual_radius=radius).adversarial().detach())

    terms = [term(radius) for radius in (1e-3, 0.1, 1.0)]
    assert terms == sorted(terms)
    assert terms[0] < terms[2]


@pytest.mark.parametrize("part", ["virtual_weight", "graph_weight"])
def test_each_term_of_graphvat_reaches_the_weights(part: str) -> None:
    student = network()
    off = {"virtual_weight": 0.0, "graph_weight": 0.0}
    method = graphvat(student, **(off | {part: 1.0}))
    method.loss(Batch(unlabeled=REST)).backward()
    assert student.first_weight.grad.abs().sum() > 0
    assert student.second_weight.grad.abs().sum() > 0


def test_without_weights_both_are_supervised_learning() -> None:
    batch = Batch(LABELED, REST)
    student = network()
    vat = graphvat(student, virtual_weight=0, graph_weight=0)
    torch.testing.assert_close(vat.loss(batch), vat.initial_loss(batch))
    mix = graphmix(network(), perceptron_weight=0)
    torch.testing.assert_close(mix.loss(batch), mix.initial_loss(batch))


def test_mixtures_against_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    student = network((0,))
    method = graphmix(student, mix_input=True)
    order, share = torch.tensor([[2, 0, 1]]), 0.3
    rows, labels = LABELED[0][:1], torch.nn.functional.one_hot(LABELED[1][:1], CLASSES).float()
    for at_hidden in (False, True):
        drawn = (torch.tensor([at_hidden]), torch.tensor([share]), order)
        monkeypatch.setattr("drift.methods.graphmix._draws", lambda *_, drawn=drawn: drawn)
        loss = method.mixed_loss(student.features @ student.first_weight, rows, labels)
        x, w, b = X[rows[0]], student.first_weight[0], student.first_bias[0]
        if at_hidden:
            hidden = torch.relu(x @ w + b)
            hidden = share * hidden + (1 - share) * hidden[order[0]]
        else:
            hidden = torch.relu((share * x + (1 - share) * x[order[0]]) @ w + b)
        q = torch.softmax(hidden @ student.second_weight[0] + student.second_bias[0], -1)
        target = share * labels[0] + (1 - share) * labels[0][order[0]]
        torch.testing.assert_close(loss, torch.nn.functional.binary_cross_entropy(q, target))


def test_a_trial_mixes_the_same_alone_as_among_others() -> None:
    """The loss of two stacked trials is the sum of their single losses."""
    batch = Batch(LABELED, REST)
    both = graphmix(network((3, 4), dropout=0.5)).loss(batch)
    alone = [
        graphmix(network((seed,), dropout=0.5)).loss(
            Batch(tuple(part[trial : trial + 1] for part in LABELED), REST[trial : trial + 1])
        )
        for trial, seed in enumerate((3, 4))
    ]
    torch.testing.assert_close(both, torch.stack(alone).sum())


def test_guesses_are_sharpened_means() -> None:
    student = network()
    method = graphmix(student, passes=3, temperature=0.5)
    p = torch.softmax(student(REST), -1)  # without dropout all passes agree
    torch.testing.assert_close(method.guesses(REST), p.square() / p.square().sum(-1, keepdim=True))


def test_the_weight_of_unlabelled_mixtures_rises() -> None:
    assert ramp(0, 100) == math.exp(-5)
    assert ramp(100, 100) == ramp(500, 100) == ramp(0, 0) == 1
    drawn = (torch.tensor([True, True]), torch.tensor([0.5, 0.5]), torch.arange(3).expand(2, 3))
    losses = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("drift.methods.graphmix._draws", lambda *_: drawn)
        patch.setattr("drift.methods.graphmix._drawn", lambda network, rows, size: rows[:, :size])
        for steps in (0, 4, 6, 8, 20):
            method = graphmix(network(), ramp_start=4, ramp_steps=4)
            method.steps = steps
            losses.append(float(method.loss(Batch(LABELED, REST)).detach()))
    assert losses[0] == losses[1] < losses[2] < losses[3] == losses[4]
    method = graphmix(network())
    method.follow()
    again = graphmix(network())
    again.load_state_dict(method.state_dict())
    assert again.steps == 1


def test_as_many_unlabelled_nodes_are_mixed_as_there_are_labelled_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    method, asked = graphmix(network()), []
    guesses = method.guesses
    monkeypatch.setattr(method, "guesses", lambda rows: asked.append(rows) or guesses(rows))
    for _ in range(5):
        method.loss(Batch(LABELED, REST))
    for rows in asked:
        assert rows.shape == (2, 3)
        assert all(set(drawn) <= set(given) for drawn, given in zip(rows.tolist(), REST.tolist(), strict=True))
    assert len({tuple(rows.flatten().tolist()) for rows in asked}) > 1


def test_graphvat_has_no_dropout() -> None:
    """Two losses are equal but for the random directions, whose term is off, and dropout is on again afterwards."""
    student = network(dropout=0.5).train()
    method = graphvat(student, virtual_weight=0)
    assert method.loss(Batch(LABELED, REST)).item() == method.loss(Batch(LABELED, REST)).item()
    assert student.training
    assert method.initial_loss(Batch(LABELED)).item() != method.initial_loss(Batch(LABELED)).item()


@pytest.mark.parametrize("kind", [GraphVAT, GraphMix])
def test_other_models_are_refused(kind: Any) -> None:
    with pytest.raises(ConfigError, match="--model gcn"):
        kind(Grand(X, EDGES, CLASSES, seeds=[0]), kind.settings_type(), Context(stacked=True))


def test_from_the_first_layer_on_it_is_the_network() -> None:
    student = network()
    logits = from_first_layer(student, student.features @ student.first_weight)
    torch.testing.assert_close(logits, student(torch.arange(NODES)))
