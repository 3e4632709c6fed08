"""Graphs of a few nodes: runs on them that take a moment."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

import drift
from drift.data.graphs import Graph
from drift.runs.result import Run
from tests.runs.small import write_csv

CLASSES = ["art", "law", "zoo"]
FEATURES = 6
STEPS = {"initial_steps": 6, "steps": 6, "evaluate_every": 2, "trace_every": 3, "trackers": []}
RECIPE = {"order": 2, "views": 2, "hidden": 32}  # of fewer hidden units most begin dead


def small_graph(nodes: int = 30, *, seed: int = 0, **changes: Any) -> Graph:
    """Nodes of three classes in turn: features around a centre a class, a chain through each, and edges at random.

    Of every nine nodes the first three are to train on, the next three are dev and the last are test.
    """
    generator = np.random.default_rng(seed)
    rows = np.arange(nodes)
    labels = rows % len(CLASSES)
    centres = np.repeat(np.eye(len(CLASSES)), FEATURES // len(CLASSES), axis=1)
    features = (centres[labels] + generator.uniform(0, 1, (nodes, FEATURES))).astype(np.float32)
    chain, chance = np.stack([rows[:-3], rows[3:]]), np.stack([rows, generator.permutation(rows)])[:, ::5]
    edges = np.concatenate([chain, chance[:, chance[0] != chance[1]]], axis=1)
    edges = np.unique(np.concatenate([edges, edges[::-1]], axis=1), axis=1)
    place = rows // len(CLASSES) % 3
    splits = {part: np.flatnonzero(place == number) for number, part in enumerate(("train", "dev", "test"))}
    parts: dict[str, Any] = dict(features=torch.from_numpy(features), edges=edges, labels=labels, splits=splits)
    return Graph(**{"name": "small", "classes": CLASSES, **parts, **changes})


def write_tables(folder: Path, graph: Graph, kind: str = "csv") -> tuple[Path, Path]:
    """The graph as `nodes` and `edges`: node v is called nv, and a node without a class has a blank label."""
    names = [f"n{row}" for row in range(len(graph.labels))]
    nodes: dict[str, list[Any]] = {
        "name": names,
        "label": [graph.classes[code] if code >= 0 else None for code in graph.labels],
    }
    nodes |= {f"x{column}": values for column, values in enumerate(graph.features.to_dense().double().T.tolist())}
    edges = {end: [names[row] for row in rows] for end, rows in zip(("from", "to"), graph.edges, strict=True)}
    paths = folder / f"nodes.{kind}", folder / f"edges.{kind}"
    for path, table in zip(paths, (nodes, edges), strict=True):
        if kind == "csv":
            write_csv(path, table)
        else:
            import pandas

            pandas.DataFrame(table).to_parquet(path)
    return paths


def small_node_fit(
    graph: Any, *, model: str = "gcn", training: dict[str, Any] | None = None, settings: Any = None, **options: Any
) -> Run:
    """`drift.fit` with few steps and two seeds, unless `options` say otherwise."""
    below: dict[str, Any] = {"model": {"recipe": RECIPE} if model == "grand" else {"hidden": 5}}
    below["training"] = {**STEPS, **(training or {})}
    options = {"task": "nodes", "model": model, "seeds": 2, "quiet": True, **options}
    run = drift.fit(graph, config=below, settings=settings, **options)
    assert isinstance(run, Run)
    return run


def write_npz(path: Path, graph: Graph) -> Path:
    """The graph in one file, with its split as masks."""
    masks = {"train": "train_mask", "dev": "val_mask", "test": "test_mask"}
    rows = np.arange(len(graph.labels))
    arrays = {masks[part]: np.isin(rows, chosen) for part, chosen in graph.splits.items()}
    names = np.array([graph.classes[code] if code >= 0 else "" for code in graph.labels])
    np.savez(path, x=graph.features.to_dense().numpy(), edge_index=graph.edges, y=names, **arrays)
    return path


def same_weights(one: Run, other: Run) -> bool:
    left, right = one.model.weights, other.model.weights
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
