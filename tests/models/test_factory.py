"""A user's model is found by name, checked before training, and its code runs only if the user names it."""

import copy
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from drift.errors import ConfigError
from drift.models.factory import MadeModel, find_factory, is_factory
from drift.models.feature_scaling import FeatureScaling
from drift.tasks.nodes.model import Design, NodeModel
from tests.runs.small_graphs import CLASSES, FEATURES, small_graph

GRAPH = small_graph()
ALL = torch.arange(30)


class Mean(nn.Module):
    """A linear layer on the mean of a node's neighbours."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(width, classes), nn.BatchNorm1d(classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        total = torch.zeros_like(x).index_add_(0, edge_index[1], x[edge_index[0]])
        return self.norm(self.linear(total / torch.bincount(edge_index[1], minlength=len(x)).clamp(min=1)[:, None]))


def made(make: Callable[..., Any] = Mean, *, seed: int = 0) -> MadeModel:
    return MadeModel(make, GRAPH, len(CLASSES), name="mine.py:make", seed=seed)


def test_a_name_with_a_colon_is_a_function() -> None:
    assert is_factory("mine.py:make")
    assert not is_factory("gcn")


def test_a_function_in_a_file_and_in_a_module(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def make(width, classes):\n    return (width, classes)\n")
    assert find_factory(f"{tmp_path}/mine.py:make")(6, 3) == (6, 3)  # type: ignore[comparison-overlap]
    assert find_factory("torch.nn:Linear") is nn.Linear


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.py:make", "none.py is not there; give the Python file"),
        ("mine.py:mkae", "mine.py has no function 'mkae'; did you mean 'make'?"),
        ("mine.py:NUMBER", "mine.py has no function 'NUMBER'"),
        ("mine.py:", "write file.py:function or package.module:function"),
        (":make", "write file.py:function or package.module:function"),
        ("broken.py:make", "broken.py failed (ZeroDivisionError: division by zero)"),
        ("unread.py:make", "unread.py failed (SyntaxError: "),
        ("lacking.py:make", "No module named 'torch_geometric_not'); import it with python to see where"),
        ("no.such.module:make", "no.such.module failed (ModuleNotFoundError: No module named 'no')"),
        ("..relative:make", "..relative failed (TypeError: "),
        ("torch.nn:no_such", "torch.nn has no function 'no_such'"),
    ],
)
def test_a_function_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("NUMBER = 3\ndef make(width, classes): ...\n")
    Path("broken.py").write_text("1 / 0\n")
    Path("unread.py").write_text("def make(:\n")
    Path("lacking.py").write_text("import torch_geometric_not\n")
    with pytest.raises(ConfigError) as error:
        find_factory(name)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_without_pyg_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_geometric.nn", None)
    (tmp_path / "mine.py").write_text("from torch_geometric.nn import GAT\n")
    with pytest.raises(ConfigError, match=r"mine\.py failed .*; pip install 'drift-ssl\[graph\]'"):
        find_factory(f"{tmp_path}/mine.py:make")


class Two(nn.Linear):
    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> Any:
        return super().forward(x), edge_index


def no_parameters(width: int, classes: int) -> nn.Module:
    return Mean(width, classes).requires_grad_(False)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda width: None, "mine.py:make failed (TypeError: "),
        (lambda width, classes: "gat", "it returned str, not a torch module); it is called as function(6, 3)"),
        (nn.Linear, "mine.py:make failed (TypeError: "),  # takes no edges
        (lambda width, classes: Mean(width + 1, classes), "mine.py:make failed (RuntimeError: "),
        (lambda width, classes: Mean(width, classes + 1), "the module returns (30, 4); it must return logits (30, 3)"),
        (Two, "the module returns tuple; it must return logits (30, 3), one row per node"),
        (no_parameters, "the module has no parameter to train"),
    ],
)
def test_a_model_that_cannot_be_used(make: Callable[..., Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        made(make)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_its_weights_are_a_matter_of_the_seed_and_nothing_else_is_drawn_from() -> None:
    before = torch.get_rng_state()
    one, again, other = made(seed=3), made(seed=3), made(seed=4)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one.inner.linear.weight, again.inner.linear.weight)
    assert not torch.equal(one.inner.linear.weight, other.inner.linear.weight)


def test_it_answers_for_the_nodes_asked_for() -> None:
    module = made().eval()
    rows = torch.tensor([7, 0, 7])
    x, edges = GRAPH.features, torch.from_numpy(GRAPH.edges)
    assert torch.equal(module(rows), module.inner(x, edges)[rows])
    assert made().training


def test_parameters_without_a_shape_get_one() -> None:
    class Lazy(Mean):
        def __init__(self, width: int, classes: int) -> None:
            super().__init__(width, classes)
            self.linear = nn.LazyLinear(classes)

    assert made(Lazy).inner.linear.weight.shape == (3, FEATURES)


def test_the_graph_is_shared_by_copies_and_no_part_of_the_state() -> None:
    module = made()
    assert copy.deepcopy(module).graph is module.graph
    assert all(name.startswith("inner.") for name in module.state_dict())
    assert not any(buffer.shape[0] == 30 for buffer in module.buffers() if buffer.dim())
    doubled = made().double()
    assert doubled.graph.tensors[0].dtype == torch.float64
    assert doubled.graph.tensors[1].dtype == torch.int64
    assert doubled(ALL).dtype == torch.float64


# The saved model.

FILE = """
from pathlib import Path
from tests.models.test_factory import Mean

Path(__file__).with_name("ran").touch()

def make(width, classes):
    return Mean(width, classes)
"""


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Path, str, np.ndarray]:
    """A folder, the name of the function that built its model, and the model's predictions."""
    (tmp_path / "mine.py").write_text(FILE)
    name = f"{tmp_path}/mine.py:make"
    student = made()
    student(ALL)  # in training mode, so that the norm updates its statistics
    design = Design(name, scaling=FeatureScaling("none"))
    model = NodeModel.of_made(student, Mean, design, CLASSES).calibrated(2.0)
    model.save(tmp_path / "model")
    return tmp_path / "model", name, model.predict_proba(GRAPH)


def test_an_opened_model_runs_no_code_until_it_is_named(saved: tuple[Path, str, np.ndarray]) -> None:
    folder, name, expected = saved
    opened = NodeModel.load(folder)
    message = "its code is run only if you name it; if you trust it, name it again: "
    with pytest.raises(ConfigError, match=message) as error:
        opened.predict_proba(GRAPH)
    assert name in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert not (folder.parent / "ran").exists()
    np.testing.assert_array_equal(opened.made_by(name).predict_proba(GRAPH), expected)
    assert (folder.parent / "ran").exists()


def test_weights_have_the_names_they_have_in_the_users_module(saved: tuple[Path, str, np.ndarray]) -> None:
    module = Mean(FEATURES, len(CLASSES)).eval()
    module.load_state_dict(NodeModel.load(saved[0]).weights)
    with torch.no_grad():
        probabilities = torch.softmax(module(GRAPH.features, torch.from_numpy(GRAPH.edges)) / 2, -1)
    np.testing.assert_allclose(probabilities, saved[2], rtol=1e-5)


def test_another_function_does_not_fit(saved: tuple[Path, str, np.ndarray]) -> None:
    class More(Mean):
        def __init__(self, width: int, classes: int) -> None:
            super().__init__(width, classes)
            self.more = nn.Linear(2, 2)

    with pytest.raises(ConfigError, match="makes another module than the one that was trained"):
        replace(NodeModel.load(saved[0]), make=More).predict_proba(GRAPH)


def test_its_representations_are_not_known(saved: tuple[Path, str, np.ndarray]) -> None:
    with pytest.raises(ConfigError, match="only gcn and grand have one"):
        NodeModel.load(saved[0]).representations(GRAPH)
