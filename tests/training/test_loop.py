"""The loop of Algorithm 1: two phases, one move of each player a batch, and a look at the right moment."""

import copy

import pytest
import torch
from torch import Tensor, nn

from drift.core import Game
from drift.models.mlp import mlp
from drift.training.loop import Batch, initialize, self_train

GENERATOR = torch.Generator().manual_seed(0)
X_L, Y_L = torch.randn(8, 4, generator=GENERATOR, dtype=torch.float64), torch.arange(8) % 3
X_U = [torch.randn(16, 4, generator=GENERATOR, dtype=torch.float64) for _ in range(6)]


def new_game(**settings) -> tuple[Game, torch.optim.Optimizer]:
    torch.manual_seed(1)
    student = mlp(4, 3, hidden=(8,)).double()
    return Game(student, **settings), torch.optim.Adam(student.parameters(), lr=0.01)


def weights(module: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def test_initialize_is_supervised_training_and_both_players_start_from_it() -> None:
    game, optimizer = new_game()
    twin = copy.deepcopy(game.student)
    initialize(game, [Batch((X_L, Y_L))] * 5, optimizer)

    by_hand = torch.optim.Adam(twin.parameters(), lr=0.01)
    for _ in range(5):
        by_hand.zero_grad()
        nn.functional.cross_entropy(twin(X_L), Y_L).backward()
        by_hand.step()
    assert torch.allclose(weights(game.student), weights(twin), rtol=1e-12, atol=1e-12)
    assert torch.equal(weights(game.student), weights(game.teacher))
    assert game.steps == 0


def test_initialize_without_batches_leaves_the_student_and_resets_the_teacher() -> None:
    game, optimizer = new_game()
    with torch.no_grad():
        for parameter in game.teacher.parameters():
            parameter.zero_()
    before = weights(game.student)
    initialize(game, [], optimizer)
    assert torch.equal(weights(game.student), before)
    assert torch.equal(weights(game.teacher), before)


@pytest.mark.parametrize("coupling", ["differentiable", "detached"])
def test_self_train_is_algorithm_1_written_out(coupling: str) -> None:
    game, optimizer = new_game(coupling=coupling)
    self_train(game, [Batch((X_L, Y_L), x) for x in X_U], optimizer)

    other, by_hand = new_game(coupling=coupling)
    for x in X_U:
        by_hand.zero_grad()
        other.backward(other.loss(unlabeled=x, labeled=(X_L, Y_L)))
        by_hand.step()
        other.follow()
    assert torch.equal(weights(game.student), weights(other.student))
    assert torch.equal(weights(game.teacher), weights(other.teacher))


def test_the_follower_moves_once_a_batch() -> None:
    game, optimizer = new_game(alpha=0.75)
    expected, seen = weights(game.teacher), []
    # The generator runs between steps: it sees the student as the step before left it.
    students = (seen.append(weights(game.student)) or Batch(unlabeled=x) for x in X_U)
    self_train(game, students, optimizer)
    for student in (*seen[1:], weights(game.student)):
        expected = 0.75 * expected + 0.25 * student
    assert game.steps == len(X_U)
    assert torch.allclose(weights(game.teacher), expected, rtol=1e-12)


def test_a_look_sees_gradients_before_anything_moved() -> None:
    game, optimizer = new_game()
    batches = [Batch((X_L, Y_L), x) for x in X_U]
    at_start: list[tuple[Tensor, Tensor]] = []
    looks: list[int] = []

    def watched():
        for batch in batches:
            at_start.append((weights(game.student), weights(game.teacher)))
            yield batch

    def look(step: int, loss: Tensor) -> None:
        looks.append(step)
        student, teacher = at_start[step - 1]
        assert torch.equal(weights(game.student), student)
        assert torch.equal(weights(game.teacher), teacher)
        fresh, _ = new_game()
        fresh.student.load_state_dict(game.student.state_dict())
        fresh.teacher.load_state_dict(game.teacher.state_dict())
        again = fresh.loss(unlabeled=batches[step - 1].unlabeled, labeled=batches[step - 1].labeled)
        fresh.backward(again)
        assert torch.equal(loss, again.detach())
        assert not loss.requires_grad
        for mine, theirs in zip(game.student.parameters(), fresh.student.parameters(), strict=True):
            assert torch.equal(mine.grad, theirs.grad)  # of this batch alone, interaction included
        assert game.diagnostics().interaction_norm > 0

    self_train(game, watched(), optimizer, look)
    assert looks == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("phase", [initialize, self_train])
def test_looking_changes_nothing_and_no_gradient_is_left(phase) -> None:
    results = []
    for looks in (False, True):
        game, optimizer = new_game()
        look = (lambda step, loss, game=game: game.predict_proba(X_U[0])) if looks else None
        phase(game, [Batch((X_L, Y_L), x) for x in X_U], optimizer, look)
        results.append((weights(game.student), weights(game.teacher)))
        assert all(p.grad is None for player in (game.student, game.teacher) for p in player.parameters())
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])
