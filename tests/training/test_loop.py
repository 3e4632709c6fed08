"""The loop of Algorithm 1: two phases, one move of each player a step, and a watch that sees the right moment."""

import copy
from collections.abc import Iterator
from itertools import cycle

import pytest
import torch
from torch import Tensor, nn

from drift.core import Game
from drift.data.examples import Batch
from drift.methods.self_training import GameMethod
from drift.models.mlp import mlp
from drift.training.callbacks import Callback, TrainingState
from drift.training.loop import Phase
from tests.methods.pieces import cut

GENERATOR = torch.Generator().manual_seed(0)
X_L, Y_L = torch.randn(8, 4, generator=GENERATOR, dtype=torch.float64), torch.arange(8) % 3
X_U = [torch.randn(16, 4, generator=GENERATOR, dtype=torch.float64) for _ in range(6)]
BATCHES = [Batch((X_L, Y_L), x) for x in X_U]
STEPS = range(1, 7)


def new_game(**settings) -> tuple[Game, torch.optim.Optimizer]:
    torch.manual_seed(1)
    student = mlp(4, 3, hidden=(8,)).double()
    return Game(student, **settings), torch.optim.Adam(student.parameters(), lr=0.01)


def steps_of(batches: list[Batch]) -> Iterator[list[Batch]]:
    """Each batch as the one piece of its step."""
    return cycle([batch] for batch in batches)


def weights(module: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def test_the_first_phase_is_supervised_training_and_both_players_start_from_it() -> None:
    game, optimizer = new_game()
    twin, before = copy.deepcopy(game.student), weights(game.teacher)
    method = GameMethod.around(game)
    assert Phase(method, steps_of([Batch((X_L, Y_L))]), optimizer, initial=True).run(range(1, 6)).step == 5
    assert torch.equal(weights(game.teacher), before)  # nobody follows yet
    method.start()

    by_hand = torch.optim.Adam(twin.parameters(), lr=0.01)
    for _ in range(5):
        by_hand.zero_grad()
        nn.functional.cross_entropy(twin(X_L), Y_L).backward()
        by_hand.step()
    assert torch.allclose(weights(game.student), weights(twin), rtol=1e-12, atol=1e-12)
    assert torch.equal(weights(game.student), weights(game.teacher))
    assert game.steps == 0


def test_no_steps_move_nothing() -> None:
    game, optimizer = new_game()
    before = weights(game.student)
    assert Phase(GameMethod.around(game), iter([]), optimizer).run([]).total_steps == 0
    assert torch.equal(weights(game.student), before)
    assert torch.equal(weights(game.teacher), before)


@pytest.mark.parametrize("coupling", ["differentiable", "detached"])
def test_the_second_phase_is_algorithm_1_written_out(coupling: str) -> None:
    game, optimizer = new_game(coupling=coupling)
    Phase(GameMethod.around(game), steps_of(BATCHES), optimizer).run(STEPS)

    other, by_hand = new_game(coupling=coupling)
    for x in X_U:
        by_hand.zero_grad()
        other.backward(other.loss(unlabeled=x, labeled=(X_L, Y_L)))
        by_hand.step()
        other.follow()
    assert torch.equal(weights(game.student), weights(other.student))
    assert torch.equal(weights(game.teacher), weights(other.teacher))


def test_the_follower_moves_once_a_step() -> None:
    game, optimizer = new_game(alpha=0.75)
    expected, seen = weights(game.teacher), []
    # The generator runs between steps: it sees the student as the step before left it.
    students = (seen.append(weights(game.student)) or [Batch(unlabeled=x)] for x in X_U)
    Phase(GameMethod.around(game), students, optimizer).run(STEPS)
    for student in (*seen[1:], weights(game.student)):
        expected = 0.75 * expected + 0.25 * student
    assert game.steps == len(X_U)
    assert torch.allclose(weights(game.teacher), expected, rtol=1e-12)


def test_a_clipped_step_has_the_length_asked_for_both_terms_together() -> None:
    torch.manual_seed(1)
    student = mlp(4, 3, hidden=(8,)).double()
    game = Game(student, alpha=0.5)
    before = weights(student)
    sgd = torch.optim.SGD(student.parameters(), lr=1.0)
    Phase(GameMethod.around(game), steps_of(BATCHES), sgd, clip=1e-3).run([1])
    assert float((weights(student) - before).norm()) == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("initial", [True, False])
def test_exact_pieces_are_the_whole_batch(initial: bool) -> None:
    results = []
    for firsts in ((), (1, 3, 7)):
        game, optimizer = new_game()
        batches = iter([cut(batch, *firsts) for batch in BATCHES])
        Phase(GameMethod.around(game), batches, optimizer, initial=initial, exact=bool(firsts)).run(STEPS)
        results.append(weights(game.student))
    assert torch.allclose(*results, rtol=1e-10, atol=1e-12)


def test_other_pieces_have_class_masses_of_their_own() -> None:
    game, optimizer = new_game()
    Phase(GameMethod.around(game), iter([cut(batch, 3) for batch in BATCHES]), optimizer).run(STEPS)

    other, by_hand = new_game()
    for batch in BATCHES:
        for piece in cut(batch, 3):
            share_l, share_u = len(piece.labeled[1]) / len(Y_L), len(piece.unlabeled) / len(batch.unlabeled)
            loss = share_l * other.loss(labeled=piece.labeled) + share_u * other.loss(unlabeled=piece.unlabeled)
            other.backward(loss)
        by_hand.step()
        by_hand.zero_grad()
        other.follow()
    assert torch.allclose(weights(game.student), weights(other.student), rtol=1e-12, atol=1e-12)

    whole, optimizer = new_game()
    Phase(GameMethod.around(whole), steps_of(BATCHES), optimizer).run(STEPS)
    assert float((weights(whole.student) - weights(game.student)).abs().max()) > 1e-6


class LooksClosely(Callback):
    """Checks at every step that nothing has moved, and that loss and gradients are this batch's alone."""

    def __init__(self, game: Game) -> None:
        self.game, self.steps, self.moved = game, [], []
        self.before = weights(game.student), weights(game.teacher)

    def on_backward_end(self, state: TrainingState) -> None:
        batches = state.batches
        self.steps.append(state.step)
        assert batches == [BATCHES[state.step - 1]]
        assert torch.equal(weights(self.game.student), self.before[0])
        assert torch.equal(weights(self.game.teacher), self.before[1])
        fresh, _ = new_game()
        fresh.student.load_state_dict(self.game.student.state_dict())
        fresh.teacher.load_state_dict(self.game.teacher.state_dict())
        again = fresh.loss(unlabeled=batches[0].unlabeled, labeled=batches[0].labeled)
        fresh.backward(again)
        assert state.loss == again.item()
        for mine, theirs in zip(self.game.student.parameters(), fresh.student.parameters(), strict=True):
            assert torch.equal(mine.grad, theirs.grad)  # interaction included
        assert self.game.diagnostics().interaction_norm > 0

    def on_step_end(self, state: TrainingState) -> None:
        self.moved.append(state.step)
        assert not torch.equal(weights(self.game.student), self.before[0])
        assert not torch.equal(weights(self.game.teacher), self.before[1])
        assert all(p.grad is None for player in (self.game.student, self.game.teacher) for p in player.parameters())
        self.before = weights(self.game.student), weights(self.game.teacher)


def test_a_callback_sees_gradients_before_anything_moved_and_both_players_after() -> None:
    game, optimizer = new_game()
    callback = LooksClosely(game)
    state = Phase(GameMethod.around(game), steps_of(BATCHES), optimizer).run(STEPS, [callback])
    assert callback.steps == callback.moved == [1, 2, 3, 4, 5, 6]
    assert state.total_steps == 6


@pytest.mark.parametrize("initial", [True, False])
def test_a_callback_that_reads_changes_nothing(initial: bool) -> None:
    class Curious(Callback):
        def __init__(self, game: Game) -> None:
            self.game = game

        def on_backward_end(self, state: TrainingState) -> None:
            self.game.predict_proba(X_U[0])

    results = []
    for curious in (False, True):
        game, optimizer = new_game()
        callbacks = [Curious(game)] if curious else []
        Phase(GameMethod.around(game), steps_of(BATCHES), optimizer, initial=initial).run(STEPS, callbacks)
        results.append((weights(game.student), weights(game.teacher)))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])


def test_a_callback_can_end_the_phase() -> None:
    class Impatient(Callback):
        def on_step_end(self, state: TrainingState) -> None:
            state.stop = state.step == 3

    game, optimizer = new_game()
    assert Phase(GameMethod.around(game), steps_of(BATCHES), optimizer).run(STEPS, [Impatient()]).step == 3
    assert game.steps == 3
