"""Models of nodes that a function of the user's makes, named as file.py:function or package.module:function."""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from drift.data.graphs import INSTALL_PYG, Graph
from drift.data.table_formats import first_line
from drift.errors import ConfigError
from drift.settings import nearest

Make = Callable[[int, int], nn.Module]
"""From features a node and the number of classes to a module: (x, edge_index) in, logits `(nodes, C)` out."""


def is_factory(name: str) -> bool:
    """Whether a model is called by the function that makes it."""
    return ":" in name


def find_factory(name: str) -> Make:
    """The function of this name. Its file or module is run: only for a name that the user gave."""
    where, _, function = name.rpartition(":")
    if not where or not function:
        raise ConfigError(f"model {name!r}: write file.py:function or package.module:function")
    try:
        module = _run(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except ConfigError:
        raise
    except Exception as error:
        pyg = isinstance(error, ImportError) and (error.name or "").split(".")[0] == "torch_geometric"
        advice = INSTALL_PYG if pyg else "import it with python to see where"
        raise ConfigError(f"{where} failed ({_told(error)}); {advice}") from error
    found: Make | None = getattr(module, function, None)
    if not callable(found):
        own = [each for each, value in vars(module).items() if inspect.isfunction(value)]
        raise ConfigError(f"{where} has no function {function!r}{nearest(function, own) if own else ''}")
    return found


def _run(path: Path) -> ModuleType:
    """A Python file as a module; it stays one, as classes look for the module they are from."""
    if not path.is_file():
        raise ConfigError(f"{path} is not there; give the Python file with the function that makes the model")
    spec = importlib.util.spec_from_file_location(f"drift_model_{path.stem}", path)
    assert spec is not None  # it is, for a name that ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class MadeModel(nn.Module):
    """A module that was made, called with the numbers of nodes; the graph is inside, and no part of the state.

    make: called with features a node and classes. name: of it, for messages. seed: for what it draws at random.
    """

    full_graph = True  # every node is computed whichever are asked for

    def __init__(self, make: Make, graph: Graph, classes: int, *, name: str, seed: int) -> None:
        super().__init__()
        self.graph = _Shared(graph.features.to_dense(), torch.from_numpy(graph.edges))
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            try:
                made = make(graph.features.shape[1], classes)
                if not isinstance(made, nn.Module):
                    raise TypeError(f"it gave {type(made).__name__}, not a torch module")
                self.inner = made.eval()
                with torch.no_grad():
                    logits = made(*self.graph.tensors)  # parameters without a shape get theirs here
            except Exception as error:
                raise ConfigError(
                    f"{name} failed ({_told(error)}); it is called as function({graph.features.shape[1]}, {classes}),"
                    " and what it returns as module(x, edge_index)"
                ) from error
        expected = (len(graph.labels), classes)
        if not isinstance(logits, Tensor) or logits.shape != expected:
            found = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise ConfigError(f"{name}: the module gives {found}; it must give logits {expected}, a row a node")
        if not any(parameter.requires_grad for parameter in made.parameters()):
            raise ConfigError(f"{name}: the module has no parameter to train")
        made.train()

    def forward(self, rows: Tensor) -> Tensor:
        """Logits of nodes `(N,)`."""
        logits: Tensor = self.inner(*self.graph.tensors)
        return logits.index_select(0, rows)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "MadeModel":
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.graph = _Shared(*map(fn, self.graph.tensors))
        return self


class _Shared:
    """Tensors that never change: student and teacher look at the same ones."""

    def __init__(self, *tensors: Tensor) -> None:
        self.tensors = tensors

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Shared":
        return self


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {first_line(error)}"
