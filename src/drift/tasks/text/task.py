"""Runs on texts: a class a text, from gold labels on a few rows or weak ones on many."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any

import numpy as np
import torch

from drift.data.cache import content_key
from drift.data.examples import Labeled, Unlabeled
from drift.data.texts import store_texts
from drift.methods import METHODS
from drift.methods.materials import Materials, Texts
from drift.tasks.base import HeldOut, Prepared, Task
from drift.tasks.judging import excerpt, judge, weak_label_shares
from drift.tasks.scoring import classification_scores
from drift.tasks.text.data import LabeledTexts, read_text_data
from drift.tasks.text.students import TextStudent, text_student
from drift.training.data import TrainingData


class TextTask(Task):
    """See the module."""

    unit = "texts"

    @property
    def measures(self) -> dict[str, str]:
        return {"accuracy": "accuracy", "macro_f1": "macro-F1"}

    def read(self, sources: Mapping[str, Any]) -> None:
        self.data = read_text_data(
            self.config.data,
            dict(sources),
            seed=self.config.training.seed,
            others=self.config.method.get("column", ()),
            named=METHODS[self.config.method_name].named_classes(self.config.method_settings()),
        )
        self.config.check_prior(self.data.classes)

    def fingerprint(self) -> str:
        data = self.data
        parts = [part for part in (data.dev, data.test) if part is not None]
        others = [column["text"] for column in data.others.values()]
        texts = chain(data.texts["text"], *(part.texts["text"] for part in parts), *others)
        codes = [data.gold, data.weak, *(part.codes for part in parts)]
        return content_key(texts, data.classes, [None if each is None else each.tolist() for each in codes])

    def prepare(self) -> Prepared:
        data = self.data
        student = text_student(
            self.kind, self.config.model, data.texts, data.classes, seeds=self.seeds, progress=self.progress
        )
        examples = student.examples(data.texts)
        rows = [data.labeled_rows(self.config.data.labels_per_class, seed) for seed in self.seeds]
        codes = data.gold if data.weak is None else data.weak
        if data.weak is None:
            rest = [np.setdiff1d(np.arange(len(data.gold)), chosen) for chosen in rows]
        else:
            rest = [np.arange(len(data.gold))] * len(rows)
        labeled = Labeled(examples, self._stack(rows), self._stack([codes[r] for r in rows]))
        materials = self._materials(student, labeled)
        unlabeled = None
        if len(rest[0]):
            # Only a simulation knows the labels it hides; they measure pseudo-labels and choose nothing.
            gold = self._stack([data.gold[r] for r in rest])
            unlabeled = Unlabeled(examples, self._stack(rest), gold, materials.views)
        dev = _held_out(student, data.dev)
        weak = data.weak is not None
        training = TrainingData(
            materials.labeled or labeled,
            unlabeled,
            None if dev is None else dev.part,
            weak=weak or materials.labeled is not None,
            gold_labels=0 if weak else labeled.size,
        )
        notes = [*student.notes, *materials.notes]
        return Prepared(student.module, training, dev, lambda: _held_out(student, data.test), student.finished, notes)

    def _materials(self, student: TextStudent, labeled: Labeled) -> Materials:
        """What the method makes of the texts before training."""
        data = self.data
        texts = Texts(
            data.texts["text"],
            data.classes,
            labeled,
            data.weak is not None,
            lambda texts: student.examples(store_texts(texts)),
            self.seeds,
            self.progress,
            {name: column["text"] for name, column in data.others.items()},
        )
        return METHODS[self.config.method_name].prepare_texts(self.config.method_settings(), texts)

    def facts(self) -> dict[str, Any]:
        data = self.data
        found: dict[str, Any] = {
            "columns": {"text": data.columns.text, "label": data.columns.label},
            "classes": data.classes,
            "weak": data.weak is not None,
            "training_rows": len(data.gold),
        }
        if data.weak is not None:
            found["weak_labels"] = weak_label_shares(data.weak, data.gold)
        if data.rules is not None:
            found["rules"] = asdict(data.rules)
        return found

    def judge(self, part: str, probabilities: np.ndarray, model: Any) -> dict[str, Any]:
        held_out = self.data.test if part == "test" else self.data.dev
        assert held_out is not None
        return judge(held_out, probabilities, model.temperature, self.data.classes)

    def shown(self, thing: int) -> str:
        return excerpt(self.data.texts[thing]["text"])

    def notes(self) -> list[str]:
        return list(self.data.notes) + self._prior_notes()

    def _stack(self, parts: Sequence[np.ndarray]) -> torch.Tensor:
        tensors = [torch.from_numpy(np.asarray(part)) for part in parts]
        return torch.stack(tensors) if self.stacked else tensors[0]

    def _prior_notes(self) -> list[str]:
        """A warning where labels are skewed and class mass would balance them."""
        data, method = self.data, self.config.method
        codes = data.gold if data.weak is None else data.weak
        balanced = method.get("class_mass") and method.get("prior") is None
        if not balanced or self.config.data.labels_per_class is not None:
            return []
        counts = np.bincount(codes[codes >= 0], minlength=len(data.classes))
        shares = counts / counts.sum()
        if shares.max() < 2 * shares.min():
            return []
        told = ", ".join(f"{name} {100 * share:.0f} %" for name, share in zip(data.classes, shares, strict=True))
        # A class without a label has no share to give.
        prior = f"method.prior=[{', '.join(f'{share:.2g}' for share in shares)}], or " if counts.all() else ""
        return [
            f"warning: classes are skewed ({told}) and pseudo-labels are balanced evenly; if the unlabelled rows are"
            f" skewed alike, set {prior}method.class_mass=false"
        ]


def _held_out(student: TextStudent, part: LabeledTexts | None) -> HeldOut | None:
    if part is None:
        return None
    examples = student.examples(part.texts)
    return HeldOut(Labeled(examples, torch.arange(len(examples)), torch.from_numpy(part.codes)), classification_scores)
