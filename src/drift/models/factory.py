"""Node models built by a user's function, named as file.py:function or package.module:function."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from drift.data.graphs import INSTALL_PYG, Graph
from drift.errors import ConfigError
from drift.imports import describe, is_outside, load_object

Make = Callable[[int, int], nn.Module]
"""From the number of features per node and of classes to a module: (x, edge_index) in, logits `(nodes, C)` out."""


def is_factory(name: str) -> bool:
    """Return whether a model's name refers to a function that builds it: see `find_factory`."""
    return is_outside(name)


def find_factory(name: str) -> Make:
    """Return the function of this name. Its file or module is executed, so pass only names that the user gave."""
    try:
        factory: Make = load_object(name, "model", noun="function")
    except ConfigError as error:
        cause = error.__cause__
        if isinstance(cause, ImportError) and (cause.name or "").split(".")[0] == "torch_geometric":
            raise ConfigError(f"{name.rpartition(':')[0]} failed ({describe(cause)}); {INSTALL_PYG}") from cause
        raise
    return factory


class MadeModel(nn.Module):
    """A user's module, called with node indices. The graph is stored inside, but is not part of the state.

    make: the function that builds the module.
    graph: features and edges.
    classes: number of logits.
    name: name of the function, for messages.
    seed: seed for the module's initial weights.
    """

    full_graph = True  # all nodes are computed at every call

    def __init__(self, make: Make, graph: Graph, classes: int, *, name: str, seed: int) -> None:
        super().__init__()
        self.graph = _Shared(graph.features.to_dense(), torch.from_numpy(graph.edges))
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            try:
                made = make(graph.features.shape[1], classes)
                if not isinstance(made, nn.Module):
                    raise TypeError(f"it returned {type(made).__name__}, not a torch module")
                self.inner = made.eval()
                with torch.no_grad():
                    logits = made(*self.graph.tensors)  # lazy parameters get their shape here
            except (Exception, SystemExit) as error:
                width = graph.features.shape[1]
                raise ConfigError(
                    f"{name} failed ({describe(error)}); it is called as function({width}, {classes}),"
                    " and what it returns as module(x, edge_index)"
                ) from error
        expected = (len(graph.labels), classes)
        if not isinstance(logits, Tensor) or logits.shape != expected:
            returned = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise ConfigError(
                f"{name}: the module returns {returned}; it must return logits {expected}, one row per node"
            )
        if not any(parameter.requires_grad for parameter in made.parameters()):
            raise ConfigError(f"{name}: the module has no parameter to train")
        made.train()

    def forward(self, rows: Tensor) -> Tensor:
        """Return the logits of nodes `(N,)`."""
        logits: Tensor = self.inner(*self.graph.tensors)
        return logits.index_select(0, rows)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "MadeModel":
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.graph = _Shared(*map(fn, self.graph.tensors))
        return self


class _Shared:
    """Constant tensors that student and teacher share."""

    def __init__(self, *tensors: Tensor) -> None:
        self.tensors = tensors

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Shared":
        return self
