"""`drift.fit`: from a table with few labels, or none and rules, to a classifier and an account of how good it is."""

import copy
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from drift.data.tables import source_name
from drift.errors import ConfigError
from drift.methods import METHODS
from drift.runs.config import CONFIGS, RunConfig, known_task, merge, nested, read_config, resolve
from drift.runs.predict import load
from drift.runs.result import MODEL, REPORT, Predictions, Run, account
from drift.tasks.base import STACKED, HeldOut, Prepared, Task, learning_from_dev
from drift.tasks.nodes.students import node_kind
from drift.tasks.nodes.task import NodeTask
from drift.tasks.scoring import classification_scores
from drift.tasks.text.task import TextTask
from drift.tasks.tokens.task import TokenTask
from drift.training.devices import Accelerated, SingleProcess
from drift.training.evaluation import predict
from drift.training.plan import Plan, make_plan
from drift.training.progress import progress
from drift.training.run_folder import DATA, METRICS, RunFolder
from drift.training.threads import threads
from drift.training.trainer import Trainer

FOUND = "tuning/found.json"  # in a run's folder, where `drift.tune` searched its settings: what it has to tell
TASKS: dict[str, type[Task]] = {"text": TextTask, "tokens": TokenTask, "nodes": NodeTask}


def fit(
    train: Any = None,
    *,
    out: str | Path | None = None,
    unlabeled: Any = None,
    dev: Any = None,
    test: Any = None,
    task: str | None = None,
    edges: str | Path | None = None,
    text: str | None = None,
    tokens: str | None = None,
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
    fitting: Callable[..., "Fitting"] | None = None,
) -> Run | Plan:
    """Train a classifier from a table and say how good it is.

    task: "text" for a class a text, "tokens" for a tag a word, "nodes" for a class a node; then train is a graph: its
    name, a file, a PyG Data, or a table of nodes with a table of edges. Else train, unlabeled, dev and test are paths
    (CSV, TSV, JSON lines, gzipped or not, Parquet, for words also CoNLL columns), DataFrames or Datasets. A blank label
    is an unlabelled row. text, tokens, label: columns; obvious ones are found. weak: a column with noisy labels; rules:
    a file with rules that give some. labels_per_class: forget all labels but so many of each class. model: an encoder
    by name or folder, "default" or "textcnn"; "gcn" or "grand" of a graph. finetune: train the whole encoder; by
    default only on a machine with a GPU. seeds: how many to train at once, heads on a fixed encoder or models of a
    graph. preset, profile, config, settings: where other settings come from, the later over the earlier; by group or by
    whole name, {"training": {"steps": 300}} or {"training.steps": 300}. out: the run's folder; nothing is written
    without one. resume: go on with the run in that folder. dry_run: only time a few steps, and give back the plan.
    fitting: what makes a run of all this, if not `Fitting`.
    """
    if train is None and config is None:
        if out is None or not resume:
            raise ConfigError("no table was given; name one, or use --resume with the folder of a run")
        config = RunFolder(out).config()  # it names everything
    given = {"train": train, "unlabeled": unlabeled, "dev": dev, "test": test}
    named: dict[str, Any] = {kind: source_name(source) for kind, source in given.items() if source is not None}
    named |= {"text": text, "tokens": tokens, "label": label, "weak": weak}
    named |= {name: None if path is None else str(path) for name, path in (("rules", rules), ("edges", edges))}
    options = {
        "data": {**_given(named), **_given({"encoding": encoding, "labels_per_class": labels_per_class})},
        "model": _given({"name": model, "frozen": None if finetune is None else not finetune}),
        "method": _given({"name": method}),
        "training": _given({"seed": seed}),
        **_given({"task": task, "seeds": seeds}),
    }
    below = read_config(config) if isinstance(config, (str, Path)) else nested(config or {})
    layers = [below, options, nested(settings or {})]
    said = merge(merge(below, options), layers[-1])
    name = known_task(said.get("task", "text"))
    if own := _own_model(name, said):
        layers.append({"model": {"name": own}})
        said = merge(said, layers[-1])
    kind = _kind(name, said["model"], preset, profile)
    if labels_per_class is not None and name == "tokens":
        raise ConfigError(f"words are labelled by the sentence; use data.labeled_rows={labels_per_class}, of sentences")
    fields = type(CONFIGS[name].model_fields["data"].default).model_fields
    if unfit := [option for option in options["data"] if option not in fields]:
        raise ConfigError(f"{unfit[0]} is not for --task {name}; {_hint(unfit[0], name)}")
    is_weak = said["data"].get("weak") is not None or said["data"].get("rules") is not None
    resolved = resolve(task=name, kind=kind, weak=is_weak, preset_name=preset, profile=profile, layers=layers)
    if not resolved.data.train:
        raise ConfigError("no table was given; name one, here or as data.train in the configuration")
    sources = {part: getattr(resolved.data, part, None) if source is None else source for part, source in given.items()}
    folder = None if out is None else RunFolder(out)
    made = (fitting or Fitting)(resolved, kind, sources, folder, quiet=quiet)
    return made.plan() if dry_run else made.run(resume=resume, onnx=onnx)


class Fitting:
    """One run in its parts: read, prepare, train, judge, save."""

    def __init__(
        self, config: RunConfig, kind: str, sources: dict[str, Any], folder: RunFolder | None, *, quiet: bool
    ) -> None:
        self.config, self.sources, self.folder, self.quiet = config, sources, folder, quiet
        first = config.training.seed
        self.seeds = tuple(range(first, first + (config.seeds if kind in STACKED else 1)))
        self.task = TASKS[config.task](config, kind, self.seeds, partial(progress, shown=not quiet))

    def plan(self) -> Plan:
        """Time a few steps; nothing is written."""
        self.task.read(self.sources)
        prepared = self._prepared()
        with threads(self.config.training.threads):
            found = make_plan(self._trainer(prepared, SingleProcess(), None))
        return replace(found, notes=[*self.task.notes(), *prepared.notes])

    def run(self, *, resume: bool = False, onnx: bool = True) -> Run:
        settings, described = self.config.training, self.config.model_dump(mode="json")
        if self.folder is not None and os.environ.get("RANK", "0") == "0":
            self.folder.check(described, resume=resume)  # now, not after minutes of embedding
        self.task.read(self.sources)
        if self.folder is not None and resume:
            self.folder.check_data(self.task.fingerprint())
            if all((self.folder.path / name).exists() for name in (MODEL, METRICS, REPORT)):
                return self._finished(self.folder.path)
        prepared = self._prepared()
        machine: SingleProcess = SingleProcess()
        if self.folder is not None:
            machine = Accelerated(precision=settings.precision, trackers=settings.trackers, folder=self.folder.path)
            if machine.process == 0:
                self.folder.begin(described, resume=resume)
                self.folder.write_json(DATA, {"fingerprint": self.task.fingerprint()})
            machine.gather(None)
        whole = copy.deepcopy(prepared.student) if machine.sharded else None  # the other one is cut up in place
        with threads(self.config.training.threads):
            trainer = self._trainer(prepared, machine, self.folder)
            outcome = trainer.run(resume=resume)
        held_out = {"dev": prepared.dev, "test": prepared.test()}
        predictions = {name: _predictions(trainer, part) for name, part in held_out.items() if part is not None}
        chosen = int(trainer.selection.scores.argmax()) if prepared.dev is not None else 0
        student = machine.unwrap(trainer.method.student) if whole is None else whole
        if whole is not None:
            whole.load_state_dict(machine.whole_state(trainer.method.student))
        model = prepared.finished(student.cpu(), chosen)
        run = account(self.task, prepared.training.budget, outcome, predictions, chosen, model)
        run.notes.extend(prepared.notes)
        if self.folder is not None and (self.folder.path / FOUND).exists():
            tell_search(run, self.folder.read_json(FOUND))
        if self.folder is not None and machine.process == 0:
            run.save(self.folder, onnx=onnx, quiet=self.quiet)
        return run

    def _finished(self, path: Path) -> Run:
        run = load(path, model=self.config.model.name if self.task.kind == "factory" else None)
        run.notes = [*run.notes, f"{path} was finished before; nothing was trained"]
        return run

    def _prepared(self) -> Prepared:
        prepared = self.task.prepare()
        return learning_from_dev(prepared, self.seeds) if METHODS[self.config.method_name].trains_on_dev else prepared

    def _trainer(self, prepared: Prepared, machine: SingleProcess, folder: RunFolder | None) -> Trainer:
        return Trainer(
            prepared.student,
            prepared.training,
            self.config.training,
            self.config.method_name,
            self.config.method_settings(),
            classification_scores if prepared.dev is None else prepared.dev.score,
            seeds=self.seeds if self.task.stacked else None,
            machine=machine,
            folder=folder,
            quiet=self.quiet,
        )


def tell_search(run: Run, found: Mapping[str, Any]) -> None:
    """Add how the settings were found. found: the search's account, and a note that sums it up."""
    run.metrics["tuning"] = found["account"]
    run.notes.append(found["note"])


def _predictions(trainer: Trainer, held_out: HeldOut) -> Predictions:
    part = held_out.part
    found = predict(trainer.method, part.examples, part.rows, trainer.machine, trials=trainer.trials).numpy()
    return Predictions(found if trainer.trials is not None else found[None], part.labels.numpy(), held_out.score)


def _kind(task: str, said: Mapping[str, Any], preset: str | None, profile: str) -> str:
    """Frozen where nothing else is said and there is no GPU; the paper's profile fine-tunes. said: of the model."""
    if task == "nodes":
        return node_kind(said)
    if said.get("name") in ("textcnn", "vampire"):
        return str(said["name"])
    frozen = said.get("frozen")
    if frozen is None:
        frozen = not torch.accelerator.is_available() and not (preset and profile == "paper")
    return "frozen" if frozen else "finetuned"


def _own_model(task: str, said: Mapping[str, Any]) -> str | None:
    """The model that the method is made for, if it is for one alone."""
    method, given = METHODS.get(str(said["method"].get("name"))), said["model"].get("name")
    if method is None or method.model is None or task not in method.tasks:
        return None
    if given not in (None, method.model):
        raise ConfigError(f"{method.name} trains {method.model}, not {given}; leave --model out or use another method")
    return method.model


def _hint(option: str, task: str) -> str:
    """What to do about a setting of data that is for another task."""
    if (option, task) == ("text", "tokens"):
        return "name the column of words with --tokens"
    return " or ".join(
        f"say --task {other}"
        for other, config in CONFIGS.items()
        if option in type(config.model_fields["data"].default).model_fields
    )


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
