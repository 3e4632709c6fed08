"""The sampled GCN equals GCN with all neighbours and in pieces, and learns in a game with some of them."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from drift.core import Game
from drift.data.examples import Labeled, Unlabeled
from drift.data.labels import sample_per_class
from drift.data.neighbours import Neighbours, SampledNodes
from drift.errors import ConfigError
from drift.methods.self_training import Drift, SelfTrainingSettings
from drift.models.gcn import GCN
from drift.models.sampled_gcn import SampledGCN, layerwise
from drift.training.callbacks import Callback, TrainingState
from drift.training.devices import SingleProcess
from drift.training.evaluation import predict
from drift.training.feeds import Feed
from drift.training.loop import Phase
from drift.training.optimizers import make_optimizer
from drift.training.settings import TrainingSettings

NODES, WIDTH, CLASSES, SEED = 60, 7, 3, 5
RNG = np.random.default_rng(0)
EDGES = RNG.integers(NODES - 1, size=(2, 150))  # the last node is isolated
FEATURES = torch.from_numpy(RNG.standard_normal((NODES, WIDTH), dtype=np.float32))
NEIGHBOURS = Neighbours(EDGES, NODES)
ALL_OF_THEM = SampledNodes(FEATURES, NEIGHBOURS, (None, None))
SOME = SampledNodes(FEATURES, NEIGHBOURS, (2, 2))
ROWS = torch.tensor([3, 59, 0, 17])


def sampled(**options: float) -> SampledGCN:
    return SampledGCN(WIDTH, CLASSES, seed=SEED, hidden=5, **options)  # type: ignore[arg-type]


def full(**options: float) -> GCN:
    return GCN(FEATURES, EDGES, CLASSES, seeds=[SEED], hidden=5, **options)  # type: ignore[arg-type]


def with_biases(model: torch.nn.Module) -> None:
    """Set random biases: zeros would hide a missing one."""
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(1))


def test_its_state_is_that_of_a_gcn_with_the_same_seed() -> None:
    one, other = sampled().state_dict(), full().state_dict()
    assert list(one) == list(other)
    for name in one:
        assert torch.equal(one[name], other[name])
    assert SampledGCN.undecayed == GCN.undecayed


@pytest.mark.parametrize("enough", [None, NODES])
def test_with_all_neighbours_logits_and_gradients_are_those_of_the_full_graph(enough: int | None) -> None:
    one, other = sampled(dropout=0.0), full(dropout=0.0)
    with_biases(one)
    other.load_state_dict(one.state_dict())
    logits, expected = one(*replace(SOME, fanouts=(enough, enough)).inputs(ROWS)), other(ROWS)[0]
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-6)
    logits.square().sum().backward()
    expected.square().sum().backward()
    for left, right in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(left.grad, right.grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("piece", [1, 7, NODES, 1000])
def test_layer_by_layer_in_pieces_is_the_full_graph(piece: int) -> None:
    one, other = sampled().train(), full().eval()
    with_biases(one)
    other.load_state_dict(one.state_dict())
    logits = layerwise(one, FEATURES, NEIGHBOURS, piece=piece)
    torch.testing.assert_close(logits, other(torch.arange(NODES))[0], rtol=0, atol=1e-5)
    assert one.training
    assert not logits.requires_grad


def test_training_is_the_formula_with_the_masks_that_were_drawn() -> None:
    model = sampled(dropout=0.3).train()
    with_biases(model)
    streams = copy.deepcopy(model.streams)
    x, block = ALL_OF_THEM.inputs(ROWS)
    logits = model(x, block)
    on_x, on_hidden = (streams.kept(0.3, len(x), width)[0] / 0.7 for width in (WIDTH, 5))
    hidden = torch.relu(x * on_x @ model.first_weight[0] + model.first_bias[0]) * on_hidden
    rows = torch.zeros(len(ROWS), len(x))
    rows[torch.arange(len(ROWS)).repeat_interleave(block.starts.diff()), block.sources] = block.weights
    torch.testing.assert_close(logits, rows @ hidden @ model.second_weight[0] + model.second_bias[0])


def test_student_and_teacher_see_the_same_neighbours() -> None:
    """Without dropout student and teacher are equal at first; on different samples their logits would differ."""
    game = Game(sampled(dropout=0.0))
    inputs = SOME.inputs(torch.arange(NODES))
    game.loss(unlabeled=inputs)
    assert game.last is not None
    assert game.last.log_p is not None
    torch.testing.assert_close(game.last.log_p.exp(), game.predict_proba(inputs))
    assert not torch.allclose(game.predict_proba(inputs), game.predict_proba(ALL_OF_THEM.inputs(torch.arange(NODES))))


def test_a_piece_of_nothing() -> None:
    with pytest.raises(ConfigError, match="piece=0"):
        layerwise(sampled(), FEATURES, NEIGHBOURS, piece=0)


class Losses(Callback):
    """Keeps the loss of every step."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def on_backward_end(self, state: TrainingState) -> None:
        self.values.append(state.loss)


def planted(nodes: int, classes: int, rng: np.random.Generator) -> tuple[np.ndarray, Tensor, np.ndarray]:
    """Return a graph of four classes with half of its edges inside a class, and noisy class centres as features."""
    y = np.sort(rng.integers(classes, size=nodes))
    edges = rng.integers(nodes, size=(2, 20 * nodes))
    kept = (y[edges[0]] == y[edges[1]]) | (rng.random(edges.shape[1]) < 0.3)
    x = rng.standard_normal((nodes, 30)) + 0.4 * rng.standard_normal((classes, 30))[y]
    return y, torch.from_numpy(x.astype(np.float32)), edges[:, kept]


def test_drift_learns_a_planted_partition_better_than_from_the_features_alone() -> None:
    y, x, edges = planted(1500, 4, np.random.default_rng(1))
    labeled = sample_per_class(y, 5, seed=0)
    rest = np.setdiff1d(np.arange(len(y)), labeled)
    neighbours = Neighbours(edges, len(y))
    examples = SampledNodes(x, neighbours)
    few = Labeled(examples, torch.from_numpy(labeled), torch.from_numpy(y[labeled]))
    many = Unlabeled(examples, torch.from_numpy(rest))
    student = SampledGCN(x.shape[1], 4, seed=0)
    method = Drift(student, SelfTrainingSettings())
    settings = TrainingSettings(optimizer="adam", learning_rate=0.01, weight_decay=5e-4)

    def run(steps: int, initial: bool) -> list[float]:
        feed = Feed(few, None if initial else many, batch_size=20, unlabeled_batch_size=256, seeds=[0])
        losses = Losses()
        optimizer = make_optimizer(student, settings, initial=initial)
        Phase(method, feed, optimizer, initial=initial).run(range(steps), [losses])
        return losses.values

    def accuracy() -> float:
        return float((layerwise(student, x, neighbours).argmax(1).numpy() == y)[rest].mean())

    run(20, initial=True)
    method.start()
    start = accuracy()
    losses = run(80, initial=False)
    assert np.mean(losses[-10:]) < 0.9 * np.mean(losses[:10])
    features_alone = LogisticRegression(max_iter=1000).fit(x[labeled], y[labeled]).score(x[rest], y[rest])
    assert accuracy() > max(start, features_alone) + 0.1

    # With all neighbours, the trainer's predictions are the same.
    exact = replace(examples, fanouts=(None, None))
    probabilities = predict(method, exact, torch.from_numpy(rest), SingleProcess())
    expected = torch.softmax(layerwise(student, x, neighbours)[rest], 1)
    torch.testing.assert_close(probabilities, expected, rtol=0, atol=1e-5)
