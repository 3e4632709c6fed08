"""Execute a spec: plan it, or read, prepare, train, judge and save."""

import copy
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from torch import Tensor

from drift.data.examples import Labeled
from drift.models.precision import chosen_mixed_precision
from drift.runs.keeping import keep
from drift.runs.load import load
from drift.runs.record import build_record
from drift.runs.result import MODEL, REPORT, Predictions, Run, add_search
from drift.runs.spec import RunSpec
from drift.tasks import Task
from drift.tasks.parts import HeldOut, Prepared, train_on_dev
from drift.tasks.scoring import classification_scores
from drift.training.callbacks import Callback
from drift.training.devices import Accelerated, SingleProcess
from drift.training.evaluation import predict
from drift.training.plan import Plan, make_plan
from drift.training.progress import progress
from drift.training.run_folder import DATA, METRICS, RunFolder
from drift.training.start import Observe
from drift.training.threads import threads
from drift.training.trainer import Trainer

SEARCH_RESULT = "tuning/found.json"  # in a run's folder whose settings were searched: the result of the search


def plan_run(spec: RunSpec, *, quiet: bool = False) -> Plan:
    """Time a few steps of a run; nothing is written."""
    task = new_task(spec, quiet=quiet)
    task.read(spec.sources)
    prepared = prepare(task)
    with threads(spec.config.training.threads):
        plan = make_plan(make_trainer(task, prepared))
    return replace(plan, notes=[*task.notes(), *prepared.notes])


def run(
    spec: RunSpec,
    out: str | Path | RunFolder | None = None,
    *,
    resume: bool = False,
    onnx: bool | None = None,
    quiet: bool = False,
    callbacks: Sequence[Callback] = (),
) -> Run:
    """Train and judge a model.

    out: folder of the run; without one, nothing is written. resume: continue the run in that folder.
    onnx: see `Run.save`. callbacks: see `drift.Callback`.
    """
    folder = out if isinstance(out, RunFolder) or out is None else RunFolder(out)
    described = spec.described()
    if folder is not None and os.environ.get("RANK", "0") == "0":
        # Before minutes of embedding.
        folder.check(described, resume=resume, normalize=spec.normalize)
    task = new_task(spec, quiet=quiet)
    task.read(spec.sources)
    if folder is not None and resume:
        folder.check_data(task.fingerprint())
        if all((folder.path / name).exists() for name in (MODEL, METRICS, REPORT)):
            return _finished(spec, folder.path)
    prepared = prepare(task)
    settings = spec.config.training
    precision = chosen_mixed_precision(settings.precision)
    machine: SingleProcess
    if folder is None:
        machine = SingleProcess() if precision == "no" else Accelerated(precision=precision)
    else:
        machine = Accelerated(precision=precision, trackers=settings.trackers, folder=folder.path)
        if machine.process == 0:
            folder.begin(described, resume=resume, normalize=spec.normalize)
            folder.write_json(DATA, {"fingerprint": task.fingerprint()})
        machine.gather(None)
    result = _train(task, prepared, machine, folder, resume=resume, quiet=quiet, callbacks=callbacks)
    if folder is not None and (folder.path / SEARCH_RESULT).exists():
        result = add_search(result, folder.read_json(SEARCH_RESULT))
    if folder is not None and machine.process == 0:
        result.save(folder, onnx=onnx, quiet=quiet)
    return result


def new_task(spec: RunSpec, *, quiet: bool) -> Task:
    """The task of a run, before anything is read."""
    return spec.task(spec.config, spec.kind, spec.method, spec.seeds, partial(progress, shown=not quiet))


def prepare(task: Task) -> Prepared:
    """Student and training data, after the task has read its sources."""
    prepared = task.prepare()
    return train_on_dev(prepared, task.seeds) if task.method.trains_on_dev else prepared


def make_trainer(
    task: Task,
    prepared: Prepared,
    *,
    machine: SingleProcess | None = None,
    folder: RunFolder | None = None,
    callbacks: Sequence[Callback] = (),
    observe: Observe | None = None,
    quiet: bool = True,
) -> Trainer:
    """The trainer of a prepared run."""
    return Trainer(
        prepared.student,
        prepared.training,
        task.config.training,
        task.method,
        task.method_settings,
        classification_scores if prepared.dev is None else prepared.dev.score,
        seeds=task.seeds if task.kind.stacked else None,
        machine=machine,
        folder=folder,
        callbacks=callbacks,
        observe=observe,
        quiet=quiet,
    )


def _train(
    task: Task,
    prepared: Prepared,
    machine: SingleProcess,
    folder: RunFolder | None,
    *,
    resume: bool,
    quiet: bool,
    callbacks: Sequence[Callback],
) -> Run:
    """Train, score dev and test, and take out the model to keep."""
    whole = copy.deepcopy(prepared.student) if machine.sharded else None  # the other one is sharded in place
    test = cache(prepared.test)

    def observed() -> dict[str, Labeled]:
        parts = {"dev": prepared.dev, "test": test()}
        return {name: part.part for name, part in parts.items() if part is not None}

    with threads(task.config.training.threads):
        trainer = make_trainer(
            task, prepared, machine=machine, folder=folder, callbacks=callbacks, observe=observed, quiet=quiet
        )
        outcome = trainer.run(resume=resume)
    held_out = {"dev": prepared.dev, "test": test()}
    predictions = {
        name: _predictions(trainer, part, outcome.start_predictions.get(name))
        for name, part in held_out.items()
        if part is not None
    }
    for name, each in predictions.items():  # dev before test
        refined = task.refine(name, each.probabilities, each.score_of)
        predictions[name] = replace(each, probabilities=refined)
    kept = keep(task, outcome, predictions.get("dev"), trainer.selection.scores)
    student = machine.unwrap(trainer.method.student) if whole is None else whole
    if whole is not None:
        whole.load_state_dict(machine.whole_state(trainer.method.student))
    model = prepared.finish(student.cpu(), kept.position)
    if kept.temperature is not None:
        model = model.calibrated(kept.temperature)
    record = build_record(task, prepared.training.budget, outcome, predictions, kept, model)
    record.notes.extend(prepared.notes)
    return Run(model, record, type(task))


def _predictions(trainer: Trainer, held_out: HeldOut, start: Tensor | None) -> Predictions:
    part = held_out.part
    probabilities = predict(trainer.method, part.examples, part.rows, trainer.machine, trials=trainer.trials).numpy()
    first = None if start is None else start.numpy()
    if trainer.trials is None:
        probabilities, first = probabilities[None], None if first is None else first[None]
    return Predictions(probabilities, part.labels.numpy(), held_out.score, first)


def _finished(spec: RunSpec, path: Path) -> Run:
    """A run that was finished before: load it instead of training."""
    made_by = spec.config.model.name if spec.kind.from_user_code else None
    result = load(path, model=made_by, task=spec.task)
    result.record.notes.append(f"{path} was finished before; nothing was trained")
    return result
