"""Runs on sampled neighbours: with all neighbours they equal runs on the whole graph, and scores are exact."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import drift
from drift.data.graphs import Graph
from drift.errors import ConfigError, Interrupted
from drift.runs import run as execution
from drift.runs.result import Run
from drift.tasks.nodes import task as node_task
from drift.tasks.nodes.model import NodeModel
from drift.tasks.nodes.settings import NodeModelSettings
from tests.runs.small import COST, metrics_of
from tests.runs.small_graphs import RECIPE, same_weights, small_graph, small_node_fit, write_npz
from tests.training.runs import stopped_after

ALL = 10**9


def crowded(nodes: int = 60) -> Graph:
    """The small graph with more edges, so that nodes have more than two neighbours."""
    generator = np.random.default_rng(7)
    more = generator.integers(nodes, size=(2, 6 * nodes))
    edges = np.concatenate([small_graph(nodes).edges, more[:, more[0] != more[1]]], axis=1)
    return small_graph(nodes, edges=np.unique(np.concatenate([edges, edges[::-1]], axis=1), axis=1))


def sampled_fit(graph: Any, neighbours: int = 2, *, model: Any = None, training: Any = None, **options: Any) -> Run:
    few = {"batch_size": 6, "unlabeled_batch_size": 12, **(training or {})}
    settings = {"model": {"neighbours": neighbours, **(model or {})}}
    return small_node_fit(graph, training=few, settings=settings, **options)


@pytest.mark.parametrize("method", ["supervised", "self-training", "drift"])
def test_with_all_neighbours_of_all_nodes_it_equals_the_run_on_the_whole_graph(method: str) -> None:
    """Without dropout, which is applied to other values, both train the same model."""
    graph, options = crowded(), {"method": method, "seed": 4, "labels_per_class": 3}
    whole = small_node_fit(graph, seeds=1, settings={"model": {"dropout": 0.0}}, **options)
    training = {"batch_size": ALL, "unlabeled_batch_size": ALL}
    sampled = sampled_fit(graph, ALL, model={"dropout": 0.0}, training=training, **options)
    np.testing.assert_allclose(sampled.predict_proba(graph), whole.predict_proba(graph), rtol=1e-4, atol=1e-6)
    assert sampled.metrics["best_steps"] == whole.metrics["best_steps"]
    assert sampled.metrics["label_budget"] == whole.metrics["label_budget"]


def test_fewer_neighbours_train_another_model() -> None:
    graph, options = crowded(), {"model": {"dropout": 0.0}, "training": {"evaluate_every": 100}}
    few, many = (sampled_fit(graph, neighbours, **options) for neighbours in (2, ALL))
    assert not np.allclose(few.predict_proba(graph), many.predict_proba(graph), atol=1e-3)


def test_scores_and_predictions_use_all_neighbours() -> None:
    graph = crowded()
    run = sampled_fit(graph, training={"initial_steps": 20})
    assert isinstance(run.model, NodeModel)
    # The same weights in a model that computes the whole graph at once.
    ordinary = replace(run.model, design=replace(run.model.design, neighbours=None))
    probabilities = ordinary.predict_proba(graph)
    np.testing.assert_allclose(run.predict_proba(graph), probabilities, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(run.model.representations(graph), ordinary.representations(graph), rtol=1e-4, atol=1e-6)
    for part in ("dev", "test"):
        rows = graph.splits[part]
        right = probabilities[rows].argmax(-1) == graph.labels[rows]
        assert run.metrics[part]["scores"] == [
            pytest.approx({**run.metrics[part]["scores"][0], "accuracy": right.mean()})
        ]


def test_an_interrupted_and_resumed_run_equals_the_whole_run_to_the_bit_also_when_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, other = crowded(), small_graph(12, seed=5)
    file = write_npz(tmp_path / "graph.npz", graph)
    whole = sampled_fit(file, out=tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(execution, "Trainer", stopped_after(9))
        with pytest.raises(Interrupted, match="continue with drift fit --resume"):
            sampled_fit(file, out=tmp_path / "run")
    resumed = drift.fit(out=tmp_path / "run", resume=True, quiet=True)
    assert isinstance(resumed, Run)
    assert same_weights(whole, resumed)
    one, another = ({**metrics_of(tmp_path / name), **COST} for name in ("whole", "run"))
    assert one == another
    assert one["kind"] == "sampled"
    assert (tmp_path / "whole/trace.jsonl").read_bytes() == (tmp_path / "run/trace.jsonl").read_bytes()
    opened = drift.load(tmp_path / "run")
    np.testing.assert_array_equal(opened.predict_proba(graph), whole.predict_proba(graph))
    assert drift.predict(opened, write_npz(tmp_path / "other.npz", other)) == whole.predict(other)


def test_it_trains_one_seed(tmp_path: Path) -> None:
    run = drift.fit(
        crowded(), task="nodes", seeds=5, quiet=True, settings={"model": {"neighbours": 3}, "training": {"steps": 1}}
    )
    assert isinstance(run, Run)
    assert run.metrics["seeds"] == [0]
    assert any(note.startswith("one seed per run: neighbours are sampled") for note in run.notes)


def test_a_large_graph_gets_a_note_about_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = crowded()
    edges = graph.edges.shape[1]
    monkeypatch.setattr(node_task, "LARGE", edges)
    assert any(
        note == f"{edges} edges in every step; model.neighbours=10 samples some of them instead"
        for note in small_node_fit(graph).notes
    )
    assert not any("samples some" in note for note in sampled_fit(graph).notes)
    monkeypatch.setattr(node_task, "LARGE", edges + 1)
    assert not any("samples some" in note for note in small_node_fit(graph).notes)


@pytest.mark.parametrize("neighbours", [None, 2])
def test_features_are_scaled_by_what_they_are(neighbours: int | None) -> None:
    """Dense features have their columns scaled, sparse ones that are not negative their rows."""

    def fit(graph: Graph, scaling: str) -> Run:
        return small_node_fit(graph, settings={"model": {"neighbours": neighbours, "scaling": scaling}})

    dense, words = crowded(), small_graph(60, edges=crowded().edges)
    words = replace(words, features=torch.eye(60)[:, :20].to_sparse_csr())
    for graph, same, other in ((dense, "together", "rows"), (words, "rows", "together")):
        run = fit(graph, "auto")
        assert same_weights(run, fit(graph, same))
        assert not same_weights(run, fit(graph, other))
        assert run.model.design.scaling.way == same


@pytest.mark.parametrize(("old", "new"), [(True, "rows"), (False, "none"), (None, "original")])
def test_the_old_name_of_the_scaling_is_accepted(old: bool | None, new: str) -> None:
    with pytest.warns(FutureWarning, match="scale_rows is now scaling"):
        assert NodeModelSettings.read({"scale_rows": old}).scaling == new


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "grand", "settings": {"model": {"neighbours": 3, "recipe": RECIPE}}}, "model.neighbours is for gcn"),
        ({"settings": {"model": {"neighbours": 0}}}, "model.neighbours=0"),
        ({"settings": {"model": {"neighbors": 3}}}, "did you mean 'model.neighbours'?"),
    ],
)
def test_settings_that_cannot_be_sampled_with_are_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        small_node_fit(crowded(), **options)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1
