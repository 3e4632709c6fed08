"""Runs on the nodes of a graph: a class a node, all seeds in one model, all nodes in every step."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from drift.data.cache import content_key
from drift.data.labels import UNLABELED
from drift.models.node_model import Design, NodeModel, published_recipe
from drift.models.propagation import OnGraph
from drift.runs.judging import judged_classes
from drift.runs.node_data import read_node_data
from drift.runs.task import HeldOut, Prepared, Task
from drift.tasks.examples import Labeled, Unlabeled
from drift.tasks.nodes import Nodes
from drift.tasks.scoring import classification_scores
from drift.training.data import TrainingData


class NodeTask(Task):
    """See the module."""

    unit = "nodes"

    @property
    def measures(self) -> dict[str, str]:
        return {"accuracy": "accuracy", "macro_f1": "macro-F1"}

    @property
    def design(self) -> Design:
        model = self.config.model
        recipe = published_recipe(self.data.graph.name, model.recipe) if model.name == "grand" else {}
        return Design(model.name, model.hidden, model.dropout, recipe, model.reordered)

    def read(self, sources: Mapping[str, Any]) -> None:
        self.data = read_node_data(self.config.data, sources, self.seeds)
        self.config.check_prior(self.data.graph.classes)

    def fingerprint(self) -> str:
        graph, split = self.data.graph, self.data.splits[0]
        found = [graph.edges, graph.labels, split.train, split.dev, split.test]
        x = graph.features
        parts = [x] if x.layout == torch.strided else [x.crow_indices(), x.col_indices(), x.values()]
        return content_key((part.tobytes().hex() for part in (*found, *(part.numpy() for part in parts))), graph.name)

    def prepare(self) -> Prepared:
        data, labels = self.data, self.data.graph.labels
        examples, design = Nodes(len(labels)), self.design
        train = [split.train for split in data.splits]
        # Nodes of dev and test are learned from too, without their labels: the graph is all there is.
        rest = [np.setdiff1d(np.arange(len(labels)), rows) for rows in train]

        def stack(parts: list[np.ndarray]) -> Tensor:
            return torch.from_numpy(np.stack(parts))

        def held_out(rows: np.ndarray) -> HeldOut | None:
            if not len(rows):
                return None
            part = Labeled(examples, torch.from_numpy(rows), torch.from_numpy(labels[rows]))
            return HeldOut(part, classification_scores)

        def finished(student: nn.Module, place: int) -> NodeModel:
            assert isinstance(student, OnGraph)
            return NodeModel.of(student, place, design, data.graph.classes)

        dev = held_out(data.dev)
        training = TrainingData(
            Labeled(examples, stack(train), stack([labels[rows] for rows in train])),
            Unlabeled(examples, stack(rest), stack([labels[rows] for rows in rest])) if len(rest[0]) else None,
            None if dev is None else dev.part,
        )
        student = design.build(data.graph, len(data.graph.classes), self.seeds)
        return Prepared(student, training, dev, lambda: held_out(data.test), finished, notes=[])

    def facts(self) -> dict[str, Any]:
        graph = self.data.graph
        return {
            "classes": graph.classes,
            "weak": False,
            "training_rows": len(graph.labels),
            "graph": {
                "name": graph.name,
                "nodes": len(graph.labels),
                "edges": graph.edges.shape[1],
                "features": graph.features.shape[1],
                "labeled": int((graph.labels != UNLABELED).sum()),
            },
        }

    def judge(self, part: str, probabilities: np.ndarray, model: Any) -> dict[str, Any]:
        rows = self.data.test if part == "test" else self.data.dev
        return judged_classes(probabilities, self.data.graph.labels[rows], model.temperature, model.classes)

    def notes(self) -> list[str]:
        return list(self.data.notes)
