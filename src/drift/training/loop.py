"""The loop of Algorithm 1: batches in, a trained student out."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import Optimizer

from drift.core import Game
from drift.core.forward import Inputs

Look = Callable[[int, Tensor], None]
"""Called with the step, counted from 1, and its loss, when gradients are complete and nothing has moved yet."""


@dataclass(frozen=True)
class Batch:
    """What one step sees: inputs with class indices, inputs without, or both."""

    labeled: tuple[Inputs, Tensor] | None = None
    unlabeled: Inputs = None


def initialize(game: Game, batches: Iterable[Batch], optimizer: Optimizer, look: Look | None = None) -> None:
    """Find θinit on labelled batches (Eq. 1), and start both players from it: θT = θS = θinit."""
    for step, batch in enumerate(batches, start=1):
        loss = game.initial_loss(batch.labeled)
        torch.autograd.backward(loss)
        _move(optimizer, loss, look, step)
    game.reset()


def self_train(game: Game, batches: Iterable[Batch], optimizer: Optimizer, look: Look | None = None) -> None:
    """Play the game, a move of the leader and one of the follower a batch."""
    for step, batch in enumerate(batches, start=1):
        loss = game.loss(unlabeled=batch.unlabeled, labeled=batch.labeled)
        game.backward(loss)
        _move(optimizer, loss, look, step)
        game.follow()


def _move(optimizer: Optimizer, loss: Tensor, look: Look | None, step: int) -> None:
    if look is not None:
        look(step, loss.detach())
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)  # after the step: nothing of this batch is kept through the next forward
