"""Runs on texts: one class per text, from gold labels of a few rows or weak labels of many."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import torch

from drift.data.cache import content_key
from drift.data.examples import Examples, Labeled, Unlabeled
from drift.data.folds import FOLDS, left_out
from drift.data.labels import UNLABELED
from drift.data.texts import store_texts
from drift.methods.materials import Materials, Texts
from drift.methods.method import INDEPENDENT_ROWS, TEXTS
from drift.models.catalogue import DEFAULT
from drift.tasks.base import Kind, Task
from drift.tasks.class_report import class_sections
from drift.tasks.explaining import LabeledRows
from drift.tasks.judging import confident_mistakes, excerpt, judge_classes, weak_label_shares
from drift.tasks.parts import HeldOut, Prepared, Sample, Usage
from drift.tasks.scoring import CLASS_MEASURES, classification_scores
from drift.tasks.text import report
from drift.tasks.text.check import check_texts
from drift.tasks.text.curve import text_curve
from drift.tasks.text.data import LabeledTexts, combined, read_text_data
from drift.tasks.text.explain import explain_texts, labeled_rows
from drift.tasks.text.head_first import NOTE, fit_to_head
from drift.tasks.text.model import TextModel
from drift.tasks.text.predict import evaluate_table, explain_table, predict_table
from drift.tasks.text.record import TextRecord
from drift.tasks.text.serving import text_service
from drift.tasks.text.settings import TextDataSettings, TextModelSettings
from drift.tasks.text.source_facts import change_facts, source_facts
from drift.tasks.text.source_report import source_tables
from drift.tasks.text.sources import vote_by_names
from drift.tasks.text.standalone import text_script
from drift.tasks.text.students import FINETUNED, FROZEN, KINDS, TextStudent
from drift.tasks.text.suggest import suggest_rows
from drift.training.data import TrainingData
from drift.training.flips import Flips

MANY_CLASSES = 300  # from which heads take most of the time
NAMES_SUFFICE = (
    "labels from class names already use all texts; `--set training.return_to_start=false` adds self-training"
)
WORTH = 100  # gold labels that all weak labels together are worth at the start, however many they are


class TextTask(Task):
    """One class per text."""

    name = "text"
    unit = "texts"
    title, hub_task = "Text classifier", "text-classification"
    offers = frozenset({TEXTS, INDEPENDENT_ROWS})
    data_settings, model_settings, record_type = TextDataSettings, TextModelSettings, TextRecord
    kinds = KINDS
    usage = Usage(
        [
            "predict RUN new.csv -o predicted.csv",
            "evaluate RUN labelled.csv",
            "suggest RUN unlabelled.csv -n 50 -o to-label.csv",
            "predict RUN new.csv -o explained.csv --explain",
            "serve RUN",
        ],
        [
            'run.predict(["a text"])        # the names of classes',
            'run.predict_proba(["a text"])  # (n, C), in the order of run.classes',
            'run.explain(["a text"])        # the words that matter, and the nearest labelled texts',
        ],
    )
    measures = CLASS_MEASURES
    load_model = staticmethod(TextModel.load)
    predict_chunks, evaluate = staticmethod(predict_table), staticmethod(evaluate_table)
    suggest, check = staticmethod(suggest_rows), staticmethod(check_texts)
    curve, service = staticmethod(text_curve), staticmethod(text_service)
    standalone = staticmethod(text_script)
    explains, explain = True, staticmethod(explain_texts)
    explain_table = staticmethod(explain_table)
    result_sections, example_sections = staticmethod(class_sections), staticmethod(report.mistake_sections)
    weak_label_sections = staticmethod(report.weak_label_sections)
    source_tables = staticmethod(source_tables)
    service_lines = staticmethod(report.service_lines)

    @classmethod
    def choose_kind(cls, model: Mapping[str, Any], *, finetune: bool) -> Kind:
        kind = KINDS.get(str(model.get("name")))
        if kind is not None and kind not in (FROZEN, FINETUNED):
            return kind
        frozen = model.get("frozen")
        return FROZEN if (not finetune if frozen is None else frozen) else FINETUNED

    @classmethod
    def complete(cls, settings: dict[str, Any], kind: Kind) -> dict[str, Any]:
        # Otherwise the machine would decide again when the run is resumed or repeated.
        return {**settings, "model": {**settings.get("model", {}), "frozen": kind is FROZEN}}

    def read(self, sources: Mapping[str, Any]) -> None:
        self.data = read_text_data(
            self.config.data,
            sources,
            seed=self.config.training.seed,
            extra_columns=self.config.method.get("column", ()),
            named_classes=self.method.named_classes(self.method_settings),
        )
        self.use_classes(self.data.classes)
        if len(self.data.classes) > MANY_CLASSES:
            self.use_fewer_seeds(FOLDS)  # each leaves out another part of the labels

    def fingerprint(self) -> str:
        data = self.data
        parts = [part for part in (data.dev, data.test) if part is not None]
        extra = [column["text"] for column in data.extra_columns.values()]
        texts = chain(data.texts["text"], *(part.texts["text"] for part in parts), *extra)
        codes = [data.gold, None if self.config.data.classes else data.weak, *(part.codes for part in parts)]
        votes = [each.votes for each in (data.sources.sources if data.sources else ()) if each.origin != "names"]
        soft = [v.tolist() for v in votes if len(votes) > 1 or not ((v == 0) | (v == 1)).all()]
        return content_key(texts, data.classes, [None if each is None else each.tolist() for each in codes] + soft)

    def prepare(self) -> Prepared:
        self._ask_names()
        data = self.data
        student: TextStudent = self.kind.build(self.config.model, data.texts, data.classes, self.seeds, self.progress)
        examples = student.examples(data.texts)
        rows, folds = self._labeled_rows()
        everything = np.arange(len(data.gold))
        rest = [np.setdiff1d(everything, labeled) for labeled in rows]
        second = None
        if data.uses_gold:
            second = Labeled(examples, self._stack(rows), self._stack([data.gold[r] for r in rows]))
        labeled = self._weak_and_gold(examples, rows) if data.weak is not None else self._labeled(examples, rows)
        probes = self.kind is FINETUNED and self.config.model.probe and not self.method.trains_on_dev
        if probes:
            fit_to_head(self, student, examples)
        materials = self._materials(student, labeled)
        unlabeled = None
        if len(rest[0]):
            # Only a simulation knows the labels it hides; they measure pseudo-labels and select nothing.
            gold = self._stack([data.gold[r] for r in rest])
            unlabeled = Unlabeled(examples, self._stack(rest), gold, materials.views)
        dev = _held_out(student, data.dev)
        weak = data.weak is not None
        training = TrainingData(
            materials.labeled or labeled,
            unlabeled,
            None if dev is None else dev.part,
            weak=weak or materials.labeled is not None,
            gold_labels=self._gold_labels(rows),
            labels_are=self.config.data.labels_are if self.same_labels else "per-class",
            left_out=None if folds is None else Labeled(examples, *map(torch.from_numpy, (folds, data.gold[folds]))),
            second=second,
            biased=not self._only_names,
            start_suffices=NAMES_SUFFICE if self._names_suffice else "",
            begun=probes,
        )
        notes = [*student.notes, *([NOTE] if probes else []), *materials.notes]
        return Prepared(student.module, training, dev, lambda: _held_out(student, data.test), student.finish, notes)

    @property
    def _only_names(self) -> bool:
        """Whether all labels come from class names."""
        sources = self.data.sources
        return sources is not None and [each.origin for each in sources.sources] == ["names"]

    @property
    def _names_suffice(self) -> bool:
        """Whether names gave weak labels by a mixture, which was fitted to the vectors of all texts, as the head is."""
        sources = self.data.sources
        used = self._only_names and sources is not None and sources.names is not None and sources.names.mixture
        return used and self.kind.name == FROZEN.name

    def _ask_names(self) -> None:
        """Compare the texts with the class names, if that is a source of labels, and combine all sources."""
        data, settings = self.data, self.config.data
        if not settings.classes or data.sources is None or data.sources.names is not None:
            return
        model = self.config.model
        encoder = model.name if self.kind in (FROZEN, FINETUNED) else DEFAULT
        votes = vote_by_names(settings, model, encoder, data.texts["text"], self.progress)
        self.data = combined(replace(data, sources=data.sources.with_names(votes)), settings)

    def _labeled(self, examples: Examples, rows: Sequence[np.ndarray]) -> Labeled:
        return Labeled(examples, self._stack(rows), self._stack([self.data.labels[r] for r in rows]))

    def _weak_and_gold(self, examples: Examples, gold: Sequence[np.ndarray]) -> Labeled:
        """Weak labels of the rows without a gold label, and gold labels, repeated.

        All weak labels together weigh as much as `WORTH` gold ones, or as those that there are if these are more.
        gold: rows of each seed.
        """
        data, weak = self.data, self.data.labeled_rows(None, 0)
        soft = None if data.sources is None or data.sources.soft is None else torch.from_numpy(data.sources.soft)
        if not data.uses_gold or not len(gold[0]):
            rows = [weak] * len(self.seeds)
            return replace(self._labeled(examples, rows), soft=soft)
        parts = [(np.setdiff1d(weak, own), own) for own in gold]
        fewest = min(len(rest) for rest, _ in parts)  # seeds are trained at once, on equally many rows
        times = max(1, round(fewest / max(len(gold[0]), WORTH)))
        rows = [np.concatenate([rest[:fewest], np.tile(own, times)]) for rest, own in parts]
        labels = [np.concatenate([data.labels[r[:fewest]], data.gold[r[fewest:]]]) for r in rows]
        certain = torch.arange(len(rows[0])) >= fewest
        labeled = Labeled(examples, self._stack(rows), self._stack(labels), soft)
        return replace(labeled, certain=certain.expand(labeled.rows.shape)) if soft is not None else labeled

    def _gold_labels(self, rows: Sequence[np.ndarray]) -> int:
        """How many gold labels are trained on. rows: the labelled ones of each seed."""
        data = self.data
        if data.weak is not None and not data.uses_gold:
            return 0
        return int((data.gold >= 0).sum()) if self.same_labels else len(rows[0])

    @property
    def same_labels(self) -> bool:
        measured = self.data.weak is not None and not self.data.uses_gold
        return measured or self.config.data.labels_per_class is None

    def _labeled_rows(self) -> tuple[list[np.ndarray], np.ndarray | None]:
        """The rows with gold labels of each seed, and those that each leaves out, `(seeds, h)`.

        Without a dev set, labels are left out for cross-fitting if the model averages all seeds: then it uses them all.
        """
        data = self.data
        rows = [data.gold_rows(self.config.data.labels_per_class, seed) for seed in self.seeds]
        cross_fits = self.kind.averaged and self.same_labels and len(rows[0]) and data.dev is None
        if not cross_fits or len(rows[0]) == len(data.gold):
            return rows, None
        places = left_out(data.gold[rows[0]], len(rows), seed=self.seeds[0])
        if places is None:
            return rows, None
        folds = rows[0][places]
        return [np.setdiff1d(own, fold) for own, fold in zip(rows, folds, strict=True)], folds

    def _materials(self, student: TextStudent, labeled: Labeled) -> Materials:
        """What the method derives from the texts before training."""
        data = self.data
        texts = Texts(
            data.texts["text"],
            data.classes,
            labeled,
            data.weak is not None,
            lambda texts: student.examples(store_texts(texts)),
            self.seeds,
            self.progress,
            {name: column["text"] for name, column in data.extra_columns.items()},
        )
        return self.method.prepare_texts(self.method_settings, texts)

    def facts(self) -> dict[str, Any]:
        data = self.data
        facts: dict[str, Any] = {
            "columns": {"text": data.columns.text, "label": data.columns.label},
            "classes": data.classes,
            "weak": data.weak is not None,
            "training_rows": len(data.gold),
        }
        if data.weak is not None:
            facts["weak_labels"] = weak_label_shares(data.weak, data.gold)
            facts |= source_facts(data.sources, data.gold, data.texts) if data.sources is not None else {}
        return facts

    def model_name(self, model: Any) -> str:
        name = super().model_name(model)
        return model.encoder.name if name == "default" and model.encoder is not None else name

    def judge(self, part: str, probabilities: np.ndarray, model: Any) -> dict[str, Any]:
        held_out = self.data.test if part == "test" else self.data.dev
        assert held_out is not None
        classes, texts = self.data.classes, held_out.texts
        arguments = probabilities, held_out.codes, model.temperature
        mistakes = confident_mistakes(
            *arguments, [*classes, *held_out.unknown], lambda row: excerpt(texts[row]["text"])
        )
        return {**judge_classes(*arguments, classes), "mistakes": mistakes}

    def judge_flips(self, flips: Flips) -> dict[str, Any]:
        sources = self.data.sources
        if sources is None or sources.combined is None:
            return {}
        return {"source_changes": change_facts(sources, flips)}

    def baselines(self, part: str) -> dict[str, np.ndarray]:
        """The rules themselves, if they read only the text; texts that none covers get the commonest weak label."""
        held_out = self.data.test if part == "test" else self.data.dev
        rules = None if self.data.sources is None else self.data.sources.rule_set
        if held_out is None or rules is None or rules.columns:
            return {}
        from drift.weak import label

        weak, classes = self.data.labels, self.data.classes
        commonest = int(np.bincount(weak[weak != UNLABELED]).argmax())
        code_of = {name: code for code, name in enumerate(classes)}
        votes = [code_of.get(str(vote)) for vote in label(list(held_out.texts["text"]), rules).labels]
        covered = sum(vote is not None for vote in votes) / len(votes)
        answers = np.eye(len(classes))[[commonest if vote is None else vote for vote in votes]]
        return {f"rules ({100 * covered:.0f} % covered)": answers}

    def describe(self, target: int) -> str:
        return excerpt(self.data.texts[target]["text"])

    def notes(self) -> list[str]:
        return list(self.data.notes)

    def sample(self, most: int) -> Sample | None:
        data = self.data
        part, texts, codes = "train", data.texts, np.full(len(data.gold), UNLABELED)  # it was trained on these labels
        for name, held_out in (("dev", data.dev), ("test", data.test)):
            if held_out is not None:
                part, texts, codes = name, held_out.texts, held_out.codes
        rows = np.sort(np.random.default_rng(0).permutation(len(codes))[:most])
        return Sample([texts[int(row)]["text"] for row in rows], np.asarray(codes)[rows], part)

    def labeled_rows(self, model: TextModel) -> LabeledRows | None:
        return labeled_rows(self.data, self.config.data.labels_per_class, self.seeds[0], model)

    def _stack(self, parts: Sequence[np.ndarray]) -> torch.Tensor:
        tensors = [torch.from_numpy(np.asarray(part)) for part in parts]
        return torch.stack(tensors) if self.kind.stacked else tensors[0]


def _held_out(student: TextStudent, part: LabeledTexts | None) -> HeldOut | None:
    if part is None:
        return None
    examples = student.examples(part.texts)
    labeled = Labeled(examples, torch.arange(len(examples)), torch.from_numpy(part.codes))
    answers = None if student.exact else lambda model: model.predict_proba(part.texts["text"])
    return HeldOut(labeled, classification_scores, answers)
