"""The kinds of node models, and the student of a run for each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn

from drift.data.examples import Examples
from drift.data.graphs import Graph
from drift.data.neighbours import SampledNodes
from drift.errors import ConfigError
from drift.models.factory import MadeModel, find_factory, is_factory
from drift.models.feature_scaling import FeatureScaling
from drift.models.propagation import OnGraph
from drift.models.sampled_gcn import SampledGCN
from drift.settings import nearest
from drift.tasks.base import Kind
from drift.tasks.nodes.examples import Nodes
from drift.tasks.nodes.model import Design, NodeModel, published_recipe
from drift.tasks.nodes.settings import NodeModelSettings

SCORED_AT_ONCE = 4096  # nodes, with all their neighbours
ONE_SEED = "one seed per run: {}; run again with another --seed to see the spread"


@dataclass(frozen=True)
class NodeStudent:
    """The student of a run on nodes.

    examples, scored: the nodes as examples, to train on and to score.
    finish: makes the model to keep from the trained student and the position of the kept seed in it.
    """

    module: nn.Module
    examples: Examples
    scored: Examples
    finish: Callable[[nn.Module, int], NodeModel]
    notes: list[str] = field(default_factory=list)


def choose_kind(model: Mapping[str, Any]) -> Kind:
    """The kind of model that these settings ask for."""
    name = str(model.get("name", GCN.name))
    if not is_factory(name) and name not in (GCN.name, GRAND.name):
        raise ConfigError(f"{name!r} is not a kind of model for nodes{nearest(name, (GCN.name, GRAND.name))}")
    if model.get("neighbours") is None:
        return FACTORY if is_factory(name) else KINDS[name]
    if name != GCN.name:
        raise ConfigError(f"model.neighbours is for gcn, and the model is {name}; leave one of them out")
    return SAMPLED


def _design(settings: NodeModelSettings, graph: Graph, recipe: dict[str, Any] | None = None) -> Design:
    shared = {
        name: getattr(settings, name) for name in ("name", "hidden", "dropout", "variant", "reordered", "neighbours")
    }
    return Design(recipe=recipe or {}, scaling=FeatureScaling.fit(graph.features, settings.scaling), **shared)


def _gcn(settings: NodeModelSettings, graph: Graph, seeds: Sequence[int]) -> NodeStudent:
    return _stacked(_design(settings, graph), graph, seeds)


def _grand(settings: NodeModelSettings, graph: Graph, seeds: Sequence[int]) -> NodeStudent:
    return _stacked(_design(settings, graph, published_recipe(graph.name, settings.recipe)), graph, seeds)


def _stacked(design: Design, graph: Graph, seeds: Sequence[int]) -> NodeStudent:
    def finish(student: nn.Module, position: int) -> NodeModel:
        assert isinstance(student, OnGraph)
        return NodeModel.of(student, position, design, graph.classes)

    nodes = Nodes(len(graph.labels))
    return NodeStudent(design.build(graph, len(graph.classes), seeds), nodes, nodes, finish)


def _sampled(settings: NodeModelSettings, graph: Graph, seeds: Sequence[int]) -> NodeStudent:
    design, (seed,) = _design(settings, graph), seeds

    def finish(student: nn.Module, position: int) -> NodeModel:
        assert isinstance(student, SampledGCN)
        return NodeModel.of(student, position, design, graph.classes)

    module, features, neighbours = design.build_sampled(graph, len(graph.classes), seed)
    examples = SampledNodes(features, neighbours, (design.neighbours, design.neighbours), seed)
    scored = replace(examples, fanouts=(None, None), at_once=SCORED_AT_ONCE)
    return NodeStudent(module, examples, scored, finish, [ONE_SEED.format("neighbours are sampled")])


def _from_factory(settings: NodeModelSettings, graph: Graph, seeds: Sequence[int]) -> NodeStudent:
    design, (seed,) = _design(settings, graph), seeds
    make = find_factory(design.name)

    def finish(student: nn.Module, position: int) -> NodeModel:
        assert isinstance(student, MadeModel)
        return NodeModel.of_made(student, make, design, graph.classes)

    module = design.build_made(make, graph, len(graph.classes), seed)
    nodes = Nodes(len(graph.labels))
    return NodeStudent(module, nodes, nodes, finish, [ONE_SEED.format("the model is not one of ours")])


GCN = Kind("gcn", "a graph convolutional network", _gcn, stacked=True)
GRAND = Kind("grand", "GRAND, a graph random neural network", _grand, stacked=True, preset="grand")
SAMPLED = Kind("sampled", "a graph convolutional network, trained on sampled neighbours", _sampled)
FACTORY = Kind("factory", "a model of your own", _from_factory, from_user_code=True)
KINDS = {kind.name: kind for kind in (GCN, GRAND, SAMPLED, FACTORY)}
