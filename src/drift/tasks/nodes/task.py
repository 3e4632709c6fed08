"""Runs on the nodes of a graph: a class a node."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drift.data.cache import content_key
from drift.data.examples import Labeled, Unlabeled
from drift.data.labels import UNLABELED
from drift.tasks.base import HeldOut, Prepared, Task
from drift.tasks.judging import judged_classes
from drift.tasks.nodes.data import read_node_data
from drift.tasks.nodes.links import judged_links
from drift.tasks.nodes.students import node_student
from drift.tasks.scoring import classification_scores
from drift.training.data import TrainingData

LARGE = 1_000_000  # edges, each way counted, that are many to compute in every step


class NodeTask(Task):
    """See the module."""

    unit = "nodes"

    @property
    def measures(self) -> dict[str, str]:
        return {"accuracy": "accuracy", "macro_f1": "macro-F1"}

    def read(self, sources: Mapping[str, Any]) -> None:
        self.data = read_node_data(self.config.data, sources, self.seeds)
        self.config.check_prior(self.data.graph.classes)

    def fingerprint(self) -> str:
        graph, split = self.data.graph, self.data.splits[0]
        x = graph.features
        features = [x] if x.layout == torch.strided else [x.crow_indices(), x.col_indices(), x.values()]
        parts = [graph.edges, graph.labels, split.train, split.dev, split.test, *(part.numpy() for part in features)]
        return content_key((hashlib.sha256(np.ascontiguousarray(part).data).hexdigest() for part in parts), graph.name)

    def prepare(self) -> Prepared:
        data, labels = self.data, self.data.graph.labels
        student = node_student(self.kind, self.config.model, data.graph, self.seeds)
        train = [split.train for split in data.splits]
        # Nodes of dev and test are learned from too, without their labels: the graph is all there is.
        rest = [np.setdiff1d(np.arange(len(labels)), rows) for rows in train]

        def held_out(rows: np.ndarray) -> HeldOut | None:
            if not len(rows):
                return None
            part = Labeled(student.scored, torch.from_numpy(rows), torch.from_numpy(labels[rows]))
            return HeldOut(part, classification_scores)

        dev = held_out(data.dev)
        training = TrainingData(
            Labeled(student.examples, self._stack(train), self._stack([labels[rows] for rows in train])),
            Unlabeled(student.examples, self._stack(rest), self._stack([labels[rows] for rows in rest]))
            if len(rest[0])
            else None,
            None if dev is None else dev.part,
        )
        return Prepared(student.module, training, dev, lambda: held_out(data.test), student.finished, student.notes)

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
        found = judged_classes(probabilities, self.data.graph.labels[rows], model.temperature, model.classes)
        return found | judged_links(self.data.graph, rows, probabilities.argmax(-1))

    def shown(self, thing: int) -> str:
        names = self.data.graph.nodes
        return f"node {thing if names is None else names[thing]}"

    def notes(self) -> list[str]:
        return [*self.data.notes, *self._model_notes()]

    def _model_notes(self) -> list[str]:
        graph, notes = self.data.graph, []
        if self.kind == "gcn" and graph.edges.shape[1] >= LARGE:
            notes.append(
                f"{graph.edges.shape[1]:,} edges in every step; model.neighbours=10 draws some of them instead"
            )
        return notes

    def _stack(self, parts: Sequence[np.ndarray]) -> Tensor:
        return torch.from_numpy(np.stack(parts) if self.stacked else parts[0])
