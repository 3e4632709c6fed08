"""`drift.fit`: from a table with few labels, or none and rules, to a classifier and an account of how good it is."""

import copy
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from drift.data.tables import source_name
from drift.errors import ConfigError
from drift.runs.config import RunConfig, merge, read_config, resolve
from drift.runs.result import Run, account
from drift.runs.text_data import LabeledTexts, TextData, read_text_data
from drift.runs.text_models import Prepared, prepare
from drift.tasks.examples import Examples, Labeled, Unlabeled
from drift.tasks.scoring import classification_scores
from drift.training.data import TrainingData
from drift.training.evaluation import predict
from drift.training.machine import Alone, Machine
from drift.training.plan import Plan, make_plan
from drift.training.progress import progress
from drift.training.run_folder import RunFolder
from drift.training.threads import threads
from drift.training.trainer import Trainer


def fit(
    train: Any = None,
    *,
    out: str | Path | None = None,
    unlabeled: Any = None,
    dev: Any = None,
    test: Any = None,
    text: str | None = None,
    label: str | None = None,
    weak: str | None = None,
    rules: str | Path | None = None,
    encoding: str | None = None,
    labels_per_class: int | None = None,
    model: str | None = None,
    finetune: bool | None = None,
    method: str | None = None,
    seed: int | None = None,
    seeds: int | None = None,
    preset: str | None = None,
    profile: str = "laptop",
    config: str | Path | Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    resume: bool = False,
    dry_run: bool = False,
    onnx: bool = True,
    quiet: bool = False,
) -> Run | Plan:
    """Train a text classifier from a table and say how good it is.

    train, unlabeled, dev, test: paths (CSV, TSV, JSON lines, gzipped or not, Parquet), DataFrames or Datasets. A blank
    label is an unlabelled row. text, label: columns; obvious ones are found. weak: a column with noisy labels; rules: a
    file with rules that give some. labels_per_class: forget all labels but so many of each class. model: an encoder by
    name or folder, "default" or "textcnn". finetune: train the whole encoder; by default only on a machine with a GPU.
    seeds: how many heads to train at once where the encoder is fixed. preset, profile, config, settings: where other
    settings come from, the later over the earlier. out: the run's folder; nothing is written without one. resume: go on
    with the run in that folder. dry_run: only time a few steps, and give back the plan.
    """
    if train is None and config is None:
        return _resumed(out, resume=resume, onnx=onnx, quiet=quiet)
    given = {"train": train, "unlabeled": unlabeled, "dev": dev, "test": test}
    named: dict[str, Any] = {kind: source_name(source) for kind, source in given.items() if source is not None}
    named |= {"text": text, "label": label, "weak": weak, "rules": None if rules is None else str(rules)}
    options = {
        "data": {**_given(named), **_given({"encoding": encoding, "labels_per_class": labels_per_class})},
        "model": _given({"name": model, "frozen": None if finetune is None else not finetune}),
        "method": _given({"name": method}),
        "training": _given({"seed": seed}),
        **_given({"seeds": seeds}),
    }
    below = read_config(config) if isinstance(config, (str, Path)) else dict(config or {})
    layers = [below, options, dict(settings or {})]
    kind = _kind(layers, preset, profile)
    said = merge(merge(below, options), layers[-1])["data"]
    is_weak = said.get("weak") is not None or said.get("rules") is not None
    resolved = resolve(kind=kind, weak=is_weak, preset_name=preset, profile=profile, layers=layers)
    if not resolved.data.train:
        raise ConfigError("no table was given; name one, here or as data.train in the configuration")
    sources = {kind: getattr(resolved.data, kind) if source is None else source for kind, source in given.items()}
    fitting = Fitting(resolved, kind, sources, None if out is None else RunFolder(out), quiet=quiet)
    return fitting.plan() if dry_run else fitting.run(resume=resume, onnx=onnx)


def _resumed(out: str | Path | None, *, resume: bool, onnx: bool, quiet: bool) -> Run:
    """Go on with a run by its folder alone: the configuration there names everything."""
    if out is None or not resume:
        raise ConfigError("no table was given; name one, or use --resume with the folder of a run")
    folder = RunFolder(out)
    config = RunConfig.read(folder.config(), str(folder.path))
    sources = {kind: getattr(config.data, kind) for kind in ("train", "unlabeled", "dev", "test")}
    kind = _kind([{"model": config.model.model_dump()}], None, "laptop")
    return Fitting(config, kind, sources, folder, quiet=quiet).run(resume=True, onnx=onnx)


class Fitting:
    """One text run in its parts: read, prepare, train, judge, save."""

    def __init__(
        self, config: RunConfig, kind: str, sources: dict[str, Any], folder: RunFolder | None, *, quiet: bool
    ) -> None:
        self.config, self.kind, self.sources, self.folder, self.quiet = config, kind, sources, folder, quiet
        self.seed = config.training.seed
        self.seeds = tuple(range(self.seed, self.seed + (config.seeds if kind == "frozen" else 1)))
        self.bar = partial(progress, shown=not quiet)

    def plan(self) -> Plan:
        """Time a few steps; nothing is written."""
        data = read_text_data(self.config.data, self.sources, seed=self.seed)
        prepared, training = self._prepare(data)
        with self._threads():
            return make_plan(self._trainer(prepared, training, Alone(), None))

    def run(self, *, resume: bool = False, onnx: bool = True) -> Run:
        settings, described = self.config.training, self.config.model_dump(mode="json")
        if self.folder is not None and os.environ.get("RANK", "0") == "0":
            self.folder.check(described, resume=resume)  # now, not after minutes of embedding
        data = read_text_data(self.config.data, self.sources, seed=self.seed)
        prepared, training = self._prepare(data)
        machine: Alone = Alone()
        if self.folder is not None:
            machine = Machine(precision=settings.precision, trackers=settings.trackers, folder=self.folder.path)
            if machine.process == 0:
                self.folder.begin(described, resume=resume)
            machine.gather(None)
        whole = copy.deepcopy(prepared.student) if machine.sharded else None  # the other one is cut up in place
        with self._threads():
            trainer = self._trainer(prepared, training, machine, self.folder)
            outcome = trainer.run(resume=resume)
        test = None if data.test is None else self._held_out(prepared, data.test)
        of = {
            name: (_probabilities(trainer, part), part.labels.numpy())
            for name, part in (("dev", training.dev), ("test", test))
            if part is not None
        }
        chosen = int(trainer.selection.scores.argmax()) if data.dev is not None else 0
        student = machine.unwrap(trainer.method.student) if whole is None else whole
        if whole is not None:
            whole.load_state_dict(machine.whole_state(trainer.method.student))
        model = prepared.finished(student.cpu(), chosen)
        run = account(self.config, self.kind, data, training.budget, outcome, of, self.seeds, chosen, model)
        run.notes.extend(prepared.notes)
        if self.folder is not None and machine.process == 0:
            run.save(self.folder, onnx=onnx)
        return run

    def _threads(self) -> Any:
        wanted = self.config.training.threads
        return nullcontext() if wanted is None else threads(wanted)

    def _prepare(self, data: TextData) -> tuple[Prepared, TrainingData]:
        prepared = prepare(self.kind, self.config.model, data.texts, data.classes, seeds=self.seeds, progress=self.bar)
        examples = prepared.examples(data.texts)
        rows = [data.labeled_rows(self.config.data.labels_per_class, seed) for seed in self.seeds]
        codes = data.gold if data.weak is None else data.weak
        if data.weak is None:
            rest = [np.setdiff1d(np.arange(len(data.gold)), chosen) for chosen in rows]
        else:
            rest = [np.arange(len(data.gold))] * len(rows)
        unlabeled = None
        if len(rest[0]):
            # Only a simulation knows the labels it hides; they measure pseudo-labels and choose nothing.
            unlabeled = Unlabeled(examples, self._stack(rest), self._stack([data.gold[r] for r in rest]))
        labeled = Labeled(examples, self._stack(rows), self._stack([codes[r] for r in rows]))
        dev = None if data.dev is None else self._held_out(prepared, data.dev)
        return prepared, TrainingData(labeled, unlabeled, dev, weak=data.weak is not None)

    def _stack(self, parts: Sequence[np.ndarray]) -> torch.Tensor:
        tensors = [torch.from_numpy(np.asarray(part)) for part in parts]
        return torch.stack(tensors) if self.kind == "frozen" else tensors[0]

    def _held_out(self, prepared: Prepared, part: LabeledTexts) -> Labeled:
        examples: Examples = prepared.examples(part.texts)
        return Labeled(examples, torch.arange(len(examples)), torch.from_numpy(part.codes))

    def _trainer(self, prepared: Prepared, training: TrainingData, machine: Alone, folder: RunFolder | None) -> Trainer:
        return Trainer(
            prepared.student,
            training,
            self.config.training,
            self.config.method_name,
            self.config.method_settings(),
            classification_scores,
            seeds=self.seeds if self.kind == "frozen" else None,
            machine=machine,
            folder=folder,
            quiet=self.quiet,
        )


def _probabilities(trainer: Trainer, part: Labeled) -> np.ndarray:
    """`(seeds, n, C)`."""
    found = predict(trainer.method, part.examples, part.rows, trainer.machine, trials=trainer.trials).numpy()
    return found if trainer.trials is not None else found[None]


def _kind(layers: Sequence[Mapping[str, Any]], preset: str | None, profile: str) -> str:
    """Frozen where nothing else is said and there is no GPU; the paper's profile fine-tunes."""
    said: dict[str, Any] = {}
    for layer in layers:
        said = merge(said, layer.get("model", {}))
    if said.get("name") == "textcnn":
        return "textcnn"
    frozen = said.get("frozen")
    if frozen is None:
        frozen = not torch.accelerator.is_available() and not (preset and profile == "paper")
    return "frozen" if frozen else "finetuned"


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
