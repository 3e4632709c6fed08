"""Runs on the nodes of a graph: one class per node."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drift.data.cache import content_key
from drift.data.examples import Labeled, Unlabeled
from drift.data.labels import UNLABELED
from drift.errors import FileError
from drift.methods.method import GRAPH
from drift.report.page import Section
from drift.tasks.base import Kind, Task
from drift.tasks.class_report import class_sections
from drift.tasks.judging import judge_classes
from drift.tasks.nodes.data import read_node_data
from drift.tasks.nodes.links import judge_links
from drift.tasks.nodes.model import NodeModel
from drift.tasks.nodes.predict import data_settings, evaluate_nodes, predict_nodes, read_like
from drift.tasks.nodes.record import NodeRecord
from drift.tasks.nodes.report import graph_sections
from drift.tasks.nodes.settings import NodeDataSettings, NodeModelSettings
from drift.tasks.nodes.students import GCN, KINDS, NodeStudent, choose_kind
from drift.tasks.nodes.suggest import suggest_nodes
from drift.tasks.parts import Draw, HeldOut, Prepared, Representations, TableOptions, Trained, Usage
from drift.tasks.scoring import CLASS_MEASURES, classification_scores
from drift.training.data import TrainingData

TOGETHER = 12_000_000  # entries of the matrices of all seeds, edges and features; PubMed has a million
LARGE = 1_000_000  # edges, each direction counted, from which sampling neighbours is recommended


class NodeTask(Task):
    """One class per node of a graph."""

    name = "nodes"
    unit = "nodes"
    title, hub_task = "Classifier of nodes", "graph-ml"
    offers = frozenset({GRAPH})
    data_settings, model_settings, record_type = NodeDataSettings, NodeModelSettings, NodeRecord
    kinds = KINDS
    usage = Usage(
        ["predict RUN GRAPH -o predicted.csv", "evaluate RUN GRAPH", "suggest RUN GRAPH -o to-label.csv"],
        ["drift.predict(run, graph)  # the class of every node of a named graph, a file, or a PyG Data"],
    )
    ask_for_scores = "data.dev_nodes or data.test_nodes"
    splits_itself = True
    reads_chunks = False
    measures = CLASS_MEASURES
    load_model = staticmethod(NodeModel.load)
    predict_chunks, evaluate = staticmethod(predict_nodes), staticmethod(evaluate_nodes)
    suggest = staticmethod(suggest_nodes)

    @classmethod
    def choose_kind(cls, model: Mapping[str, Any], *, finetune: bool) -> Kind:
        return choose_kind(model)

    @classmethod
    def scored_rows(cls, config: Mapping[str, Any], part: str, count: int) -> tuple[Any, ...]:
        data = config["data"]
        return data["train"], data["edges"], data["dev_nodes"], data["test_nodes"], count

    def read(self, sources: Mapping[str, Any]) -> None:
        self.data = read_node_data(self.config.data, sources, self.seeds)
        self.use_classes(self.data.graph.classes)
        self.use_fewer_seeds(TOGETHER // max(1, self.data.graph.entries))
        self.data = replace(self.data, splits=self.data.splits[: len(self.seeds)])

    def fingerprint(self) -> str:
        graph, split = self.data.graph, self.data.splits[0]
        x = graph.features
        features = [x] if x.layout == torch.strided else [x.crow_indices(), x.col_indices(), x.values()]
        parts = [graph.edges, graph.labels, split.train, split.dev, split.test, *(part.numpy() for part in features)]
        return content_key((hashlib.sha256(np.ascontiguousarray(part).data).hexdigest() for part in parts), graph.name)

    def prepare(self) -> Prepared:
        data, labels = self.data, self.data.graph.labels
        student: NodeStudent = self.kind.build(self.config.model, data.graph, self.seeds)
        train = [split.train for split in data.splits]
        # Nodes of dev and test are trained on too, without their labels: they are part of the graph.
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
            labels_are=self.config.data.labels_are if self.same_labels else "per-class",
        )
        return Prepared(student.module, training, dev, lambda: held_out(data.test), student.finish, student.notes)

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
        judged = judge_classes(probabilities, self.data.graph.labels[rows], model.temperature, model.classes)
        return judged | judge_links(self.data.graph, rows, probabilities.argmax(-1))

    def describe(self, target: int) -> str:
        names = self.data.graph.nodes
        return f"node {target if names is None else names[target]}"

    def notes(self) -> list[str]:
        notes, edges = list(self.data.notes), self.data.graph.edges.shape[1]
        if self.kind is GCN and edges >= LARGE:
            notes.append(f"{edges:,} edges in every step; model.neighbours=10 samples some of them instead")
        return notes

    def _stack(self, parts: Sequence[np.ndarray]) -> Tensor:
        return torch.from_numpy(np.stack(parts) if self.kind.stacked else parts[0])

    @classmethod
    def representations(cls, run: Trained) -> Representations:
        source = data_settings(run).train
        if not source:
            raise FileError("the run has no config.yaml, which names its graph; copy the run's folder again")
        graph = read_like(run, source, TableOptions())
        vectors = run.model.representations(graph)
        return Representations(vectors, graph.labels, graph.classes, graph.name, graph.nodes)

    @classmethod
    def result_sections(cls, record: NodeRecord, draw: Draw) -> list[Section]:
        return [*class_sections(record, draw), *graph_sections(record, draw)]
