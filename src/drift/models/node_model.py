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
from drift.errors import DataError
from drift.models.gcn import GCN
from drift.models.grand import PUBLISHED, Grand, Recipe
from drift.models.propagation import OnGraph, row_normalized
from drift.models.saved import read_description, write_description
from drift.settings import Settings

FORMAT, WEIGHTS = "drift-nodes/1", "weights.safetensors"
TRAINING = ("learning_rate", "weight_decay", "patience")  # of a recipe; a run has its own in its training settings


@dataclass(frozen=True)
class Design:
    """Which model, and what it is made of. recipe: of GRAND, by name: that of the dataset if it has one."""

    name: str = "gcn"
    hidden: int = 16
    dropout: float = 0.5
    recipe: dict[str, Any] = field(default_factory=dict)
    reordered: bool = True

    def build(self, graph: Graph, classes: int, seeds: Sequence[int]) -> GCN | Grand:
        """One module for all seeds, on this graph; features are normalised by row, as in the original works."""
        features = row_normalized(graph.features)
        if self.name == "gcn":
            return GCN(features, graph.edges, classes, seeds=seeds, hidden=self.hidden, dropout=self.dropout)
        return Grand(
            features, graph.edges, classes, seeds=seeds, recipe=Recipe(**self.recipe), reordered=self.reordered
        )


def published_recipe(graph: str, changes: dict[str, Any]) -> dict[str, Any]:
    """GRAND's settings for a dataset, those of Cora where it has none of its own, with changes."""
    known = [each for each in fields(Recipe) if each.name not in TRAINING]
    kinds: dict[str, Any] = {each.name: (each.type, each.default) for each in known}
    settings: type[Settings] = create_model("Recipe", __base__=Settings, **kinds)
    checked = settings.read(changes, "model.recipe").model_dump(exclude_unset=True)
    return asdict(replace(PUBLISHED.get(graph.lower(), Recipe()), **checked))


@dataclass(frozen=True)
class NodeModel:
    """weights: of one trial, by name. width: features of a node. temperature: logits are divided by it."""

    weights: dict[str, Tensor]
    design: Design
    classes: list[str]
    width: int
    kind: str = "nodes"
    temperature: float = 1.0

    @classmethod
    def of(cls, student: OnGraph, place: int, design: Design, classes: list[str]) -> "NodeModel":
        """One trial of a trained student."""
        state = {name: value[place : place + 1].clone() for name, value in student.state_dict().items()}
        return cls(state, design, classes, student.features.rows.shape[1])

    def calibrated(self, temperature: float) -> "NodeModel":
        return replace(self, temperature=temperature)

    @torch.inference_mode()
    def predict_proba(self, graph: Graph) -> np.ndarray:
        """Probability of each class for every node, `(n, C)`; the graph may be another one with the same features."""
        logits = self._on(graph)(torch.arange(len(graph.labels)))[0]
        return torch.softmax(logits / self.temperature, -1).numpy()

    @torch.inference_mode()
    def representations(self, graph: Graph) -> np.ndarray:
        """The hidden layer of every node, after propagation and activation: `(n, hidden)`."""
        return self._on(graph).representations()[0].numpy()

    def _on(self, graph: Graph) -> GCN | Grand:
        if graph.features.shape[1] != self.width:
            raise DataError(
                f"{graph.name} has {graph.features.shape[1]} features a node, the model was trained on {self.width}"
            )
        module = self.design.build(graph, len(self.classes), [0])
        module.load_state_dict(self.weights)
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
