"""The student of a node run for each kind of model, and the trained model that comes of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from drift.data.examples import Examples
from drift.data.graphs import Graph
from drift.data.neighbours import SampledNodes
from drift.errors import ConfigError
from drift.models.factory import MadeModel, find_factory, is_factory
from drift.models.propagation import OnGraph
from drift.models.sampled_gcn import SampledGCN
from drift.runs.config import NodeModelSettings
from drift.settings import nearest
from drift.tasks.nodes.examples import Nodes
from drift.tasks.nodes.model import Design, NodeModel, published_recipe

BUILT_IN = ("gcn", "grand")
SCORED_AT_ONCE = 4096  # nodes with all their neighbours
ONE_SEED = "one seed a run: {}; run again with another --seed to see the spread"


@dataclass(frozen=True)
class NodeStudent:
    """A student, the nodes as examples to train on and to score, and how a trained one becomes a model.

    finished: from the trained student, and the place of a seed in it if several are stacked.
    """

    module: nn.Module
    examples: Examples
    scored: Examples
    finished: Callable[[nn.Module, int], NodeModel]
    notes: list[str] = field(default_factory=list)


def node_kind(said: Mapping[str, Any]) -> str:
    """The kind of model that is asked for: gcn or grand, many seeds in one; sampled, a gcn; or factory."""
    name = str(said.get("name", "gcn"))
    if not is_factory(name) and name not in BUILT_IN:
        raise ConfigError(f"{name!r} is not a kind of model for nodes{nearest(name, BUILT_IN)}")
    if said.get("neighbours") is None:
        return "factory" if is_factory(name) else name
    if name != "gcn":
        raise ConfigError(f"model.neighbours is for gcn, and the model is {name}; leave one of them out")
    return "sampled"


def node_student(kind: str, settings: NodeModelSettings, graph: Graph, seeds: Sequence[int]) -> NodeStudent:
    """kind: see `node_kind`. seeds: one a student."""
    recipe = published_recipe(graph.name, settings.recipe) if kind == "grand" else {}
    own = {name: getattr(settings, name) for name in ("name", "hidden", "dropout", "reordered", "neighbours")}
    scale_rows = settings.scale_rows
    if scale_rows is None:  # a sum of features below 0 and above may be near 0
        scale_rows = not (_values(graph.features) < 0).any()
    design = Design(recipe=recipe, scale_rows=bool(scale_rows), **own)
    return {"sampled": _sampled, "factory": _made}.get(kind, _stacked)(design, graph, seeds)


def _stacked(design: Design, graph: Graph, seeds: Sequence[int]) -> NodeStudent:
    def finished(student: nn.Module, place: int) -> NodeModel:
        assert isinstance(student, OnGraph)
        return NodeModel.of(student, place, design, graph.classes)

    nodes = Nodes(len(graph.labels))
    return NodeStudent(design.build(graph, len(graph.classes), seeds), nodes, nodes, finished)


def _sampled(design: Design, graph: Graph, seeds: Sequence[int]) -> NodeStudent:
    def finished(student: nn.Module, place: int) -> NodeModel:
        assert isinstance(student, SampledGCN)
        return NodeModel.of(student, place, design, graph.classes)

    (seed,) = seeds
    module, features, neighbours = design.build_sampled(graph, len(graph.classes), seed)
    examples = SampledNodes(features, neighbours, (design.neighbours, design.neighbours), seed)
    scored = replace(examples, fanouts=(None, None), at_once=SCORED_AT_ONCE)
    return NodeStudent(module, examples, scored, finished, [ONE_SEED.format("neighbours are drawn")])


def _made(design: Design, graph: Graph, seeds: Sequence[int]) -> NodeStudent:
    make = find_factory(design.name)

    def finished(student: nn.Module, place: int) -> NodeModel:
        assert isinstance(student, MadeModel)
        return NodeModel.of_made(student, make, design, graph.classes)

    (seed,) = seeds
    module = MadeModel(make, graph, len(graph.classes), name=design.name, seed=seed)
    nodes = Nodes(len(graph.labels))
    return NodeStudent(module, nodes, nodes, finished, [ONE_SEED.format("the model is not one of ours")])


def _values(features: Tensor) -> Tensor:
    return features if features.layout == torch.strided else features.values()
