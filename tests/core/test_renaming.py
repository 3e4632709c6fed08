"""Old names of arguments are accepted with a warning that gives the new name."""

import inspect
from dataclasses import replace

import pytest
import torch
from torch import nn

from drift import Game
from drift.core import SoftStrategy, log_soft_labels
from drift.errors import ConfigError


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [("spared", "unbalanced_class", 1), ("one_call", "full_graph", True), ("alone", "single_process", True)],
)
def test_a_game_accepts_the_old_names(old: str, new: str, value: object) -> None:
    with pytest.warns(FutureWarning, match=rf"^Game\({old}=\.\.\.\) is now {new}; use that name$") as caught:
        game = Game(nn.Linear(2, 3), **{old: value})
    assert [warning.filename for warning in caught] == [__file__]  # the caller's line
    renamed = Game(nn.Linear(2, 3), **{new: value})
    assert game.strategy == renamed.strategy
    assert (game.full_graph, game.single_process) == (renamed.full_graph, renamed.single_process)


def test_a_strategy_and_the_labels_accept_the_old_name() -> None:
    log_p = torch.log_softmax(torch.arange(12.0).view(4, 3).sin(), dim=-1)
    with pytest.warns(FutureWarning, match=r"SoftStrategy\(spared=\.\.\.\) is now unbalanced_class"):
        strategy = SoftStrategy(spared=2)
    assert strategy == SoftStrategy(unbalanced_class=2) == replace(strategy, tau=0.5)
    with pytest.warns(FutureWarning, match=r"log_soft_labels\(spared=\.\.\.\) is now unbalanced_class"):
        log_y = log_soft_labels(log_p, 0.5, spared=2)
    assert torch.equal(log_y, log_soft_labels(log_p, 0.5, unbalanced_class=2))


def test_both_names_are_an_error() -> None:
    with pytest.raises(ConfigError, match="Game got both spared and unbalanced_class, its new name; pass unbalanced"):
        Game(nn.Linear(2, 3), spared=1, unbalanced_class=1)


def test_an_unknown_name_is_refused_and_old_names_are_not_in_the_signature() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'sparred'"):
        Game(nn.Linear(2, 3), sparred=1)
    assert {"spared", "one_call", "alone"}.isdisjoint(inspect.signature(Game).parameters)
