"""GRAND equals its formula in either order, its consistency is the published one, stacked trials equal single ones."""

import copy
import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from drift.core import Game
from drift.errors import ConfigError
from drift.models.grand import PUBLISHED, Grand, Recipe, StackedBatchNorm, consistency
from drift.models.propagation import row_normalized

NODES, FEATURES, CLASSES = 12, 9, 3
SEEDS = (3, 1, 4)
EDGES = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 2], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 5, 8]])  # 11 is isolated
ALL = torch.arange(NODES)
SMALL = Recipe(order=3, views=2, hidden=5, drop_node=0.4, input_dropout=0.3, hidden_dropout=0.2)


def small(recipe: Recipe = SMALL, seeds: tuple[int, ...] = SEEDS, reordered: bool = True) -> Grand:
    x = (torch.rand(NODES, FEATURES, generator=torch.Generator().manual_seed(0)) < 0.4).float()
    model = Grand(row_normalized(x), EDGES, CLASSES, seeds=seeds, recipe=recipe, reordered=reordered)
    for trial, seed in enumerate(seeds):  # biases other than 0 too
        generator = torch.Generator().manual_seed(seed)
        for weight in (model.first_weight, model.first_bias, model.second_weight, model.second_bias):
            nn.init.normal_(weight.data[trial], generator=generator)
    return model


def travelled(model: Grand, x: Tensor) -> Tensor:
    a, order = model.adjacency.rows.to_dense(), model.recipe.order
    return sum(torch.linalg.matrix_power(a, k) @ x for k in range(order + 1)) / (order + 1)


def perceptron(model: Grand, trial: int, x: Tensor, hidden_factor: Tensor | float = 1.0) -> Tensor:
    hidden = torch.relu(x @ model.first_weight[trial] + model.first_bias[trial])
    return (hidden * hidden_factor) @ model.second_weight[trial] + model.second_bias[trial]


def test_consistency_is_the_published_loss() -> None:
    p = torch.tensor([[[0.8, 0.2], [0.5, 0.5]], [[0.4, 0.6], [0.5, 0.5]]])  # two views of two nodes
    mean = torch.tensor([0.6, 0.4])
    sharp = mean**2 / (mean**2).sum()  # (9, 4) / 13; the second node's views agree and are their own target
    expected = (((p[0, 0] - sharp) ** 2).sum() + ((p[1, 0] - sharp) ** 2).sum()) / 4
    torch.testing.assert_close(consistency(p.log(), 0.5), expected)


def test_consistency_has_one_value_per_trial_and_a_target_without_gradient() -> None:
    logits = torch.randn(4, 3, 6, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    log_p = torch.log_softmax(logits, -1)
    actual = consistency(log_p, 0.3)
    p = log_p.exp()
    power = p.mean(0) ** (1 / 0.3)
    target = (power / power.sum(-1, keepdim=True)).detach()
    expected = torch.stack([((p[:, trial] - target[trial]) ** 2).sum(-1).mean() for trial in range(3)])
    torch.testing.assert_close(actual, expected)
    gradients = [torch.autograd.grad(loss.sum(), logits, retain_graph=True)[0] for loss in (actual, expected)]
    torch.testing.assert_close(gradients[0], gradients[1])


def test_consistency_weighs_nodes_by_the_certainty_of_their_mean() -> None:
    logits = torch.randn(4, 3, 6, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    log_p = torch.log_softmax(logits, -1)
    p = log_p.exp()
    mean = p.mean(0).detach()
    target = mean**2 / (mean**2).sum(-1, keepdim=True)
    omega = 1 + (mean * mean.log()).sum(-1) / math.log(5)
    expected = ((p - target) ** 2).sum(-1).mul(omega).mean((0, 2))
    actual = consistency(log_p, 0.5, certain=True)
    torch.testing.assert_close(actual, expected)
    gradients = [torch.autograd.grad(loss.sum(), logits, retain_graph=True)[0] for loss in (actual, expected)]
    torch.testing.assert_close(gradients[0], gradients[1])
    opposed = torch.tensor([[[0.9, 0.1]], [[0.1, 0.9]]]).log()  # the mean of these views says nothing
    assert float(consistency(opposed, 0.5)) > 0.1
    assert float(consistency(opposed, 0.5, certain=True)) == pytest.approx(0, abs=1e-6)


def test_consistency_of_views_that_agree_on_a_class_is_zero() -> None:
    log_p = torch.tensor([0.0, -torch.inf]).expand(3, 4, 2)
    assert float(consistency(log_p, 0.5)) == 0
    assert float(consistency(log_p, 0.5, certain=True)) == 0


@pytest.mark.parametrize("reordered", [True, False])
def test_evaluation_is_the_formula_in_either_order(reordered: bool) -> None:
    model = small(reordered=reordered).eval()
    x = travelled(model, model.features.rows.to_dense()) * 0.6
    expected = torch.stack([perceptron(model, trial, x) for trial in range(3)])
    torch.testing.assert_close(model(ALL), expected)
    own = torch.tensor([[0, 1], [2, 3], [11, 0]])
    torch.testing.assert_close(model(own), torch.stack([expected[trial, own[trial]] for trial in range(3)]))


def test_the_original_order_is_the_formula_with_the_masks_that_were_drawn() -> None:
    model = small(reordered=False).train()
    streams = copy.deepcopy(model.streams)
    logits = model(ALL)
    nodes, inputs = streams.kept(0.4, NODES, 1), streams.kept(0.3, NODES, FEATURES)
    hidden = streams.kept(0.2, NODES, 5)
    for trial in range(3):
        x = travelled(model, nodes[trial] * model.features.rows.to_dense()) * inputs[trial] / 0.7
        torch.testing.assert_close(logits[trial], perceptron(model, trial, x, hidden[trial] / 0.8))


def test_the_reordered_form_drops_from_what_travels() -> None:
    model = small().train()
    streams = copy.deepcopy(model.streams)
    logits = model(ALL)
    x = model.features.rows.to_dense()
    inputs, nodes = streams.kept(0.3, int((x != 0).sum())), streams.kept(0.4, NODES, 1)
    hidden = streams.kept(0.2, NODES, 5)
    for trial in range(3):
        dropped = x.clone()
        dropped[x != 0] *= inputs[trial] / 0.7
        expected = perceptron(model, trial, travelled(model, nodes[trial] * dropped), hidden[trial] / 0.8)
        torch.testing.assert_close(logits[trial], expected)


def test_without_input_dropout_the_orders_are_equal() -> None:
    recipe = replace(SMALL, input_dropout=0.0)
    gradients = []
    for reordered in (True, False):
        model = small(recipe, reordered=reordered).train()
        torch.log_softmax(model.augmentations(ALL), -1)[..., 0].sum().backward()
        gradients.append([p.grad for p in model.parameters()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_there_are_as_many_augmentations_as_requested_and_they_differ() -> None:
    views = small().train().augmentations(ALL[:7])
    assert views.shape == (2, 3, 7, CLASSES)
    assert not torch.equal(views[0], views[1])


@pytest.mark.parametrize("batch_norm", [True, False])
@pytest.mark.parametrize("reordered", [True, False])
def test_stacked_trials_are_the_trials_one_by_one(batch_norm: bool, reordered: bool) -> None:
    recipe = replace(SMALL, batch_norm=batch_norm)

    def trained(seeds: tuple[int, ...]) -> Grand:
        model = small(recipe, seeds, reordered)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=recipe.weight_decay)
        for _ in range(5):
            log_p = torch.log_softmax(model.augmentations(ALL), -1)
            supervised = -log_p[..., :4, :][..., 0].mean((0, 2))
            (supervised + consistency(log_p, recipe.temperature)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        return model.eval()

    together = trained(SEEDS)(ALL)
    for trial, seed in enumerate(SEEDS):
        torch.testing.assert_close(trained((seed,))(ALL)[0], together[trial], rtol=1e-4, atol=1e-5)


def test_stacked_batch_norm_is_torchs_for_every_trial() -> None:
    x = torch.randn(2, 3, 8, 4, generator=torch.Generator().manual_seed(0))  # two steps of three trials
    stacked, alone = StackedBatchNorm(3, 4), [nn.BatchNorm1d(4) for _ in range(3)]
    for step in x:
        expected = torch.stack([norm(one) for norm, one in zip(alone, step, strict=True)])
        torch.testing.assert_close(stacked(step), expected)
    stacked.eval()
    expected = torch.stack([norm.eval()(one) for norm, one in zip(alone, x[0], strict=True)])
    torch.testing.assert_close(stacked(x[0]), expected)


def test_batch_norm_inside_the_first_layer_is_batch_norm_before_it() -> None:
    model = small(replace(SMALL, batch_norm=True)).eval()
    assert model.input_norm is not None
    assert model.hidden_norm is not None
    nn.init.uniform_(model.input_norm.weight)
    nn.init.uniform_(model.input_norm.bias)
    x = model.input_norm(travelled(model, model.features.rows.to_dense() * 0.6))
    hidden = model.hidden_norm(torch.relu(x @ model.first_weight + model.first_bias))
    torch.testing.assert_close(model(ALL), hidden @ model.second_weight + model.second_bias, rtol=1e-4, atol=1e-5)


def test_reordered_batch_norm_has_the_spread_of_dropped_features() -> None:
    model = small(replace(SMALL, batch_norm=True, drop_node=0.0))
    assert model.input_norm is not None
    x = travelled(model, model.features.rows.to_dense())
    torch.testing.assert_close(model.input_norm.running_mean, x.mean(0).expand(3, 1, -1))
    torch.testing.assert_close(model.input_norm.running_var, x.var(0).expand(3, 1, -1))


def test_it_plays_the_game() -> None:
    model = small()
    game = Game(model, stacked=True)
    y = (ALL % CLASSES)[:4].expand(3, -1)
    game.backward(game.loss(unlabeled=ALL[4:], labeled=(ALL[:4], y)))
    assert isinstance(game.teacher, Grand)
    assert game.teacher.adjacency is model.adjacency
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


def test_first_weights_leave_hidden_units_alive() -> None:
    model = Grand(torch.rand(NODES, 200), EDGES, CLASSES, seeds=[0], recipe=Recipe(hidden=64))
    weight = model.first_weight.detach()
    assert float(weight.abs().max()) == pytest.approx((6 / 264) ** 0.5, rel=1e-3)  # Glorot initialisation
    assert 0.3 < float((model.representations() > 0).any(1).float().mean()) < 0.8


def test_the_published_settings() -> None:
    assert [PUBLISHED[name].order for name in ("cora", "citeseer", "pubmed")] == [8, 2, 5]
    assert [name for name, recipe in PUBLISHED.items() if recipe.batch_norm] == ["pubmed"]


def test_a_rate_that_cannot_be() -> None:
    with pytest.raises(ConfigError, match="drop_node=1"):
        small(replace(SMALL, drop_node=1.0))
