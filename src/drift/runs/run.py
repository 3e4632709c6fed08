"""Execute a spec: plan it, or read, prepare, train, judge and save."""

import copy
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from torch import Tensor

from drift.data.examples import Labeled
from drift.data.locks import FolderLock
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
from drift.training.plan import Plan, make_plan, peak_memory
from drift.training.progress import progress
from drift.training.run_folder import DATA, METRICS, RunFolder
from drift.training.start import Observe
from drift.training.threads import threads
from drift.training.trainer import Trainer

BFLOAT16 = "trained in bfloat16 mixed precision, which is faster on this machine; --precision float32 turns it off"
FORMATS: Mapping[str, Any] = {"no": "float32", "bf16": "bfloat16", "fp16": "float16"}
SEARCH_RESULT = "tuning/found.json"  # in a run's folder whose settings were searched: the result of the search


def plan_run(spec: RunSpec, *, quiet: bool = False) -> Plan:
    """Time a few steps of a run; nothing is written."""
    began = time.monotonic()
    task = new_task(spec, quiet=quiet)
    task.read(spec.sources)
    prepared = prepare(task)
    with threads(spec.config.training.threads):
        plan = make_plan(make_trainer(task, prepared, prepared_in=time.monotonic() - began))
    return replace(plan, notes=[*task.notes(), *prepared.notes])


def run(
    spec: RunSpec,
    out: str | Path | RunFolder | None = None,
    *,
    resume: bool = False,
    onnx: bool | None = None,
    quiet: bool = False,
    callbacks: Sequence[Callback] = (),
    page: bool = True,
) -> Run:
    """Train and judge a model.

    out: folder of the run; without one, nothing is written. resume: continue the run in that folder.
    onnx, page: see `Run.save`. callbacks: see `drift.Callback`.
    """
    folder = out if isinstance(out, RunFolder) or out is None else RunFolder(out)
    is_first = os.environ.get("RANK", "0") == "0"
    with FolderLock(folder.path if folder is not None and is_first else None) as lock:
        if folder is not None and is_first:
            # Before minutes of embedding.
            lock.take()
            folder.check(spec.described(), resume=resume, normalize=spec.normalize)
        return _run(spec, folder, lock, resume=resume, onnx=onnx, quiet=quiet, callbacks=callbacks, page=page)


def _run(
    spec: RunSpec,
    folder: RunFolder | None,
    lock: FolderLock,
    *,
    resume: bool,
    onnx: bool | None,
    quiet: bool,
    callbacks: Sequence[Callback],
    page: bool,
) -> Run:
    """Read, prepare, train, judge and save. folder: checked. lock: of the folder, taken when it is made."""
    began = time.monotonic()
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
            lock.take(create=True)
            folder.begin(spec.described(), resume=resume, normalize=spec.normalize)
            folder.write_json(DATA, {"fingerprint": task.fingerprint()})
        machine.gather(None)
    if precision == "bf16" and settings.precision == "auto":
        prepared.notes.append(BFLOAT16)
    prepared_in = time.monotonic() - began
    result = _train(
        task, prepared, machine, folder, resume=resume, quiet=quiet, callbacks=callbacks, prepared_in=prepared_in
    )
    result.record.precision = FORMATS[precision]
    result.record.peak_memory = round(peak_memory(machine.device), 2)
    if folder is not None and (folder.path / SEARCH_RESULT).exists():
        result = add_search(result, folder.read_json(SEARCH_RESULT))
    if machine.process == 0:
        result.labeled = task.labeled_rows(result.model)
    if folder is not None and machine.process == 0:
        result.save(folder, onnx=onnx, quiet=quiet, sample=task.sample, page=page)
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
    prepared_in: float = 0.0,
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
        prepared_in=prepared_in,
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
    prepared_in: float,
) -> Run:
    """Train, score dev and test, and take out the model to keep."""
    whole = copy.deepcopy(prepared.student) if machine.sharded else None  # the other one is sharded in place
    test = cache(prepared.test)

    def observed() -> dict[str, Labeled]:
        parts = {"dev": prepared.dev, "test": test()}
        return {name: part.part for name, part in parts.items() if part is not None}

    with threads(task.config.training.threads):
        trainer = make_trainer(
            task,
            prepared,
            machine=machine,
            folder=folder,
            callbacks=callbacks,
            observe=observed,
            quiet=quiet,
            prepared_in=prepared_in,
        )
        outcome = trainer.run(resume=resume)
    held_out = {"dev": prepared.dev, "test": test()}
    if whole is not None:
        whole.load_state_dict(machine.whole_state(trainer.method.student))

    @cache
    def finished(position: int | None) -> Any:
        student = machine.released(trainer.method.student) if whole is None else whole
        return prepared.finish(student.cpu(), position)

    predictions = {
        name: _predictions(trainer, part, outcome.start_predictions.get(name), finished)
        for name, part in held_out.items()
        if part is not None
    }
    for name, each in predictions.items():  # dev before test
        refined = task.refine(name, each.probabilities, each.score_of)
        predictions[name] = replace(each, probabilities=refined)
    kept = keep(task, outcome, predictions.get("dev"), trainer.selection.scores)
    model = task.refined_model(finished(kept.position))
    if kept.temperature is not None:
        model = model.calibrated(kept.temperature)
    record = build_record(task, prepared.training.budget, outcome, predictions, kept, model)
    record.notes.extend(prepared.notes)
    return Run(model, record, type(task))


def _predictions(
    trainer: Trainer, held_out: HeldOut, start: Tensor | None, finished: Callable[[int | None], Any]
) -> Predictions:
    """Probabilities by every trial. finished: makes the model to keep from a position."""
    part, machine = held_out.part, trainer.machine
    if held_out.answers is not None and trainer.trials is None and machine.processes == 1:
        probabilities = held_out.answers(finished(0))
    else:
        probabilities = predict(trainer.method, part.examples, part.rows, machine, trials=trainer.trials).numpy()
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
