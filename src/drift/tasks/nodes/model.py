"""A trained model of a graph's nodes: a graph in, probabilities of named classes out."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import create_model
from safetensors.torch import load_file, save_file
from torch import Tensor

from drift.data.graphs import Graph
from drift.data.neighbours import Neighbours
from drift.errors import ConfigError, DataError
from drift.models.factory import MadeModel, Make, find_factory, is_factory
from drift.models.gcn import GCN
from drift.models.grand import PUBLISHED, Grand, Recipe
from drift.models.propagation import OnGraph, dense_row_normalized, row_normalized
from drift.models.sampled_gcn import SampledGCN, layerwise, layerwise_hidden
from drift.models.saved import read_description, write_description
from drift.settings import Settings

FORMAT, WEIGHTS = "drift-nodes/1", "weights.safetensors"
TRAINING = ("learning_rate", "weight_decay", "patience")  # of a recipe; a run has its own in its training settings


@dataclass(frozen=True)
class Design:
    """Which model, and what it is made of.

    name: gcn, grand, or a function that makes a model, see `find_factory`. recipe: of GRAND, by name: that of the
    dataset if it has one. neighbours: of gcn, how many are drawn to train it; it then predicts in pieces.
    scale_rows: of gcn and grand, features are normalised by row, as in the original works.
    """

    name: str = "gcn"
    hidden: int = 16
    dropout: float = 0.5
    recipe: dict[str, Any] = field(default_factory=dict)
    reordered: bool = True
    neighbours: int | None = None
    scale_rows: bool = True

    def build(self, graph: Graph, classes: int, seeds: Sequence[int]) -> GCN | Grand:
        """One module for all seeds, on this graph."""
        features = row_normalized(graph.features) if self.scale_rows else graph.features
        if self.name == "gcn":
            return GCN(features, graph.edges, classes, seeds=seeds, hidden=self.hidden, dropout=self.dropout)
        return Grand(
            features, graph.edges, classes, seeds=seeds, recipe=Recipe(**self.recipe), reordered=self.reordered
        )

    def build_sampled(self, graph: Graph, classes: int, seed: int) -> tuple[SampledGCN, Tensor, Neighbours]:
        """A module that is called with neighbours of some nodes, and the features and neighbours of all."""
        features = dense_row_normalized(graph.features) if self.scale_rows else graph.features.to_dense()
        module = SampledGCN(features.shape[1], classes, seed=seed, hidden=self.hidden, dropout=self.dropout)
        return module, features, Neighbours(graph.edges, len(features))


def published_recipe(graph: str, changes: dict[str, Any]) -> dict[str, Any]:
    """GRAND's settings for a dataset, those of Cora where it has none of its own, with changes."""
    known = [each for each in fields(Recipe) if each.name not in TRAINING]
    kinds: dict[str, Any] = {each.name: (each.type, each.default) for each in known}
    settings: type[Settings] = create_model("Recipe", __base__=Settings, **kinds)
    checked = settings.read(changes, "model.recipe").model_dump(exclude_unset=True)
    return asdict(replace(PUBLISHED.get(graph.lower(), Recipe()), **checked))


@dataclass(frozen=True)
class NodeModel:
    """weights: of one trial, by name. width: features of a node. temperature: logits are divided by it.

    make: what makes the module where the design names a function; it is not saved, see `made_by`.
    """

    weights: dict[str, Tensor]
    design: Design
    classes: list[str]
    width: int
    kind: str = "nodes"
    temperature: float = 1.0
    make: Make | None = None

    @classmethod
    def of(cls, student: OnGraph | SampledGCN, place: int, design: Design, classes: list[str]) -> "NodeModel":
        """One trial of a trained student."""
        state = {name: value[place : place + 1].clone() for name, value in student.state_dict().items()}
        return cls(state, design, classes, state["first_weight"].shape[1])

    @classmethod
    def of_made(cls, student: MadeModel, make: Make, design: Design, classes: list[str]) -> "NodeModel":
        """A trained student that `make` made; the weights have the names they have in its module."""
        state = {name: value.clone() for name, value in student.inner.state_dict().items()}
        return cls(state, design, classes, student.graph.tensors[0].shape[1], make=make)

    def made_by(self, name: str) -> "NodeModel":
        """The same with the function of this name to make the module: an opened model runs no code before that."""
        return replace(self, make=find_factory(name))

    def calibrated(self, temperature: float) -> "NodeModel":
        return replace(self, temperature=temperature)

    @torch.inference_mode()
    def predict_proba(self, graph: Graph) -> np.ndarray:
        """Probability of each class for every node, `(n, C)`; the graph may be another one with the same features."""
        self._check(graph)
        if self.design.neighbours is not None:
            logits = layerwise(*self._sampled(graph))
        elif is_factory(self.design.name):
            logits = self._made(graph)(torch.arange(len(graph.labels)))
        else:
            logits = self._stacked(graph)(torch.arange(len(graph.labels)))[0]
        return torch.softmax(logits / self.temperature, -1).numpy()

    @torch.inference_mode()
    def representations(self, graph: Graph) -> np.ndarray:
        """The hidden layer of every node, after propagation and activation: `(n, hidden)`."""
        self._check(graph)
        if is_factory(self.design.name):
            raise ConfigError(
                f"the hidden layer of what {self.design.name} makes is not known; only gcn and grand have one"
            )
        if self.design.neighbours is not None:
            return layerwise_hidden(*self._sampled(graph)).numpy()
        return self._stacked(graph).representations()[0].numpy()

    def _check(self, graph: Graph) -> None:
        if graph.features.shape[1] != self.width:
            raise DataError(
                f"{graph.name} has {graph.features.shape[1]} features a node, the model was trained on {self.width}"
            )

    def _stacked(self, graph: Graph) -> GCN | Grand:
        module = self.design.build(graph, len(self.classes), [0])
        module.load_state_dict(self.weights)
        return module.eval()

    def _sampled(self, graph: Graph) -> tuple[SampledGCN, Tensor, Neighbours]:
        module, features, neighbours = self.design.build_sampled(graph, len(self.classes), 0)
        module.load_state_dict(self.weights)
        return module.eval(), features, neighbours

    def _made(self, graph: Graph) -> MadeModel:
        name = self.design.name
        if self.make is None:
            raise ConfigError(
                f"{name} made the model, and its code is not run unasked; if you trust it, name it again:"
                f" --model {name}, or drift.load(run, model={name!r})"
            )
        module = MadeModel(self.make, graph, len(self.classes), name=name, seed=0)
        try:
            module.inner.load_state_dict(self.weights)
        except RuntimeError as error:
            raise ConfigError(f"{name} makes another module than the one that was trained; give that one") from error
        return module.eval()

    def save(self, folder: Path) -> None:
        """Write all of it: safetensors and JSON."""
        folder.mkdir(parents=True, exist_ok=True)
        save_file({name: value.contiguous() for name, value in self.weights.items()}, folder / WEIGHTS)
        about = {"format": FORMAT, **{name: getattr(self, name) for name in ("classes", "width", "temperature")}}
        write_description(folder, {**about, "design": asdict(self.design)})

    @classmethod
    def load(cls, folder: Path) -> "NodeModel":
        """Open what `save` wrote."""

        def opened(about: dict[str, Any]) -> NodeModel:
            weights = load_file(folder / WEIGHTS)
            design = Design(**about["design"])
            return cls(weights, design, about["classes"], about["width"], temperature=about["temperature"])

        return read_description(folder, FORMAT, opened)
