"""APPNP of PyTorch Geometric: its equation, and a run that takes it by name."""

from pathlib import Path

import pytest
import torch

import drift
from drift.paper.backbones import RESTART, appnp
from tests.runs.small_graphs import STEPS, small_graph

pytest.importorskip("torch_geometric", reason="needs torch_geometric: pip install 'drift-ssl[graph]'")


def test_predictions_are_propagated_with_restarts() -> None:
    graph = small_graph()
    edges, x = torch.from_numpy(graph.edges), graph.features.to_dense()
    model = appnp(x.shape[1], 3).eval()
    adjacency = torch.eye(len(x))
    adjacency[edges[1], edges[0]] = 1
    scale = adjacency.sum(1).rsqrt()
    adjacency = scale[:, None] * adjacency * scale
    with torch.no_grad():
        first = model.second(torch.relu(model.first(x)))
        expected = first
        for _ in range(10):
            expected = (1 - RESTART) * adjacency @ expected + RESTART * first
        torch.testing.assert_close(model(x, edges), expected, rtol=1e-4, atol=1e-5)


def test_a_run_takes_it_by_name(tmp_path: Path) -> None:
    settings = {"training": {**STEPS, "until": "steps"}}
    name = "drift.paper.backbones:appnp"
    run = drift.fit(small_graph(90), task="nodes", model=name, settings=settings, out=tmp_path / "run", quiet=True)
    assert run.record.test is not None
    again = drift.load(tmp_path / "run", model=name)
    assert again.predict(small_graph(90)) == run.predict(small_graph(90))
