"""`drift.tune`: settings searched on dev with Optuna, then a run with the best of them; test is scored once."""

import copy
import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from drift.data.packages import needed_for
from drift.errors import ConfigError, FileError, Interrupted, StateError
from drift.methods import METHODS
from drift.runs.config import RunConfig, config_of, merge
from drift.runs.fit import Fitting, fit
from drift.runs.result import Run
from drift.runs.task import Prepared
from drift.training.machine import Machine
from drift.training.plan import Plan
from drift.training.progress import progress
from drift.training.run_folder import CONFIG, DATA, METRICS, RunFolder
from drift.training.threads import threads

if TYPE_CHECKING:
    import optuna

TRIALS = 20
FOLDER, STUDY = "tuning", "study.jsonl"
NEVER_PRUNED = 4  # trials, the first ones: a median of fewer says little
NO_DEV = "settings are searched on dev, and there is no dev set; give one with --dev (of a graph: data.dev_nodes)"


@dataclass(frozen=True)
class Searched:
    """A setting and where it is looked for. from_one: what is drawn is its distance from 1."""

    group: str
    name: str
    low: float
    high: float
    log: bool = False
    from_one: bool = False

    @property
    def path(self) -> str:
        return f"{self.group}.{self.name}"

    def setting(self, drawn: float) -> float:
        value = float(f"{drawn:.3g}")  # further digits mean nothing
        return round(1 - value, 6) if self.from_one else value

    def usual(self, config: RunConfig) -> float | None:
        """What the configuration has, as it would be drawn; None if it lies outside."""
        value = config.model_dump()[self.group][self.name]
        drawn = 1 - value if self.from_one else value
        return drawn if self.low <= drawn <= self.high else None


def search_space(config: RunConfig) -> list[Searched]:
    """What is searched: α and τ where the method has them, and the learning rate, ten times up and down."""
    method, training = METHODS[config.method_name], config.training
    own = [
        Searched("method", "alpha", 0.001, 0.5, log=True, from_one=True),  # α from .5, hasty, to .999, slow
        Searched("method", "tau", 0.1, 1.0),
    ]
    first_alone = not method.goes_on and training.initial_learning_rate is not None
    rate = "initial_learning_rate" if first_alone else "learning_rate"
    usual = getattr(training, rate)
    found = [each for each in own if each.name in method.settings_type.model_fields]
    return [*found, Searched("training", rate, usual / 10, usual * 10, log=True)]


def tune(train: Any = None, *, trials: int = TRIALS, **options: Any) -> Run | Plan:
    """Search settings on dev, train with the best and say how good that is.

    train, options: those of `drift.fit`. trials: how many settings to try, the given ones first. resume: go on with
    the search in the folder. dry_run: give back the plan of one trial.
    """
    if trials < 1:
        raise ConfigError(f"trials is {trials}; try at least 1")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError("settings are searched in one process; start it without accelerate launch or torchrun")
    out = options.get("out")
    if train is None and options.get("config") is None and out is not None and options.get("resume"):
        options["config"] = RunFolder(Path(out) / FOLDER).config()  # it names everything
    return fit(train, **options, fitting=partial(Tuning, trials=trials))


class TunedFolder(RunFolder):
    """A run's folder that may hold the search which led to the run."""

    @property
    def begun(self) -> bool:
        return (self.path / CONFIG).exists()

    def check(self, config: Mapping[str, Any], *, resume: bool = False) -> None:
        if resume or not self.path.exists() or any(entry.name != FOLDER for entry in self.path.iterdir()):
            super().check(config, resume=resume)


class Reporting(Machine):
    """A machine that sends dev scores of the second phase to a trial, which may end there, and counts all looks."""

    def __init__(self, trial: "optuna.Trial", measure: str, *, precision: str) -> None:
        super().__init__(precision=precision)
        self.trial, self.measure, self.looks, self.reported = trial, measure, 0, 0

    def log(self, values: dict[str, float], step: int) -> None:
        self.looks += f"start/dev_{self.measure}" in values or f"game/dev_{self.measure}" in values
        if (score := values.get(f"game/dev_{self.measure}")) is not None:
            # By looks, not steps: where the first phase ends may differ between trials.
            self.trial.report(score, self.reported)
            self.reported += 1
            if self.trial.should_prune():
                import optuna

                raise optuna.TrialPruned


class Tuning(Fitting):
    """A run whose settings are searched first, one trial after the other, on data that is read and prepared once.

    The study is in the run's folder, in `tuning`. Its journal is JSON lines that are only ever added to: a process
    that is killed leaves at most one line cut short, and there is neither a database to be locked nor a pickle.
    """

    def __init__(self, *arguments: Any, trials: int, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.trials, self.space = trials, search_space(self.config)
        self.measure = next(iter(self.task.measures))

    def run(self, *, resume: bool = False, onnx: bool = True) -> Run:
        with needed_for("a search of settings", "pip install 'drift-ssl[tune]'"):
            import optuna  # noqa: F401
        prepared = self._begin(resume=resume)
        dev_labels = prepared.training.budget.dev
        with _unheard():
            study = self._study()
            self._search(study, prepared)
        del prepared
        folder = None if self.folder is None else TunedFolder(self.folder.path)
        found = self._account(study, dev_labels)
        best = self._config(study.best_trial.params)
        last = Last(best, self.task.kind, self.sources, folder, quiet=self.quiet, note=_note(found))
        run = last.run(resume=folder is not None and folder.begun, onnx=onnx)
        run.metrics["tuning"] = found
        if folder is not None:
            folder.write_json(METRICS, {**run.metrics, "notes": run.notes})
        return run

    def _begin(self, *, resume: bool) -> Prepared:
        """Read and prepare what all trials use; refuse early what cannot be done."""
        described = self.config.model_dump(mode="json")
        if self.config.task != "nodes" and self.sources["dev"] is None:
            raise ConfigError(NO_DEV)
        folder = None if self.folder is None else RunFolder(self.folder.path / FOLDER)
        if self.folder is not None and folder is not None:
            folder.check(described, resume=resume)
            if not resume:
                self.folder.check(described)
        self.task.read(self.sources)
        if folder is not None and resume:
            folder.check_data(self.task.fingerprint())
        prepared = self._prepared()
        if prepared.dev is None:
            raise ConfigError(NO_DEV)
        if folder is not None:
            folder.begin(described, resume=resume)
            folder.write_json(DATA, {"fingerprint": self.task.fingerprint()})
        return prepared

    def _study(self) -> "optuna.Study":
        """The study of the folder, or a new one; trials that a killed process left are given up."""
        import optuna

        looks = self.config.training.steps // self.config.training.evaluate_every
        path = None if self.folder is None else self.folder.path / FOLDER / STUDY
        try:
            study = optuna.create_study(
                study_name="drift",
                storage=None if path is None else _journal(path),
                pruner=optuna.pruners.MedianPruner(n_startup_trials=NEVER_PRUNED, n_warmup_steps=looks // 4),
                direction="maximize",
                load_if_exists=True,
            )
        except (ValueError, KeyError) as error:
            raise FileError(f"{path} is damaged ({error}); search again in a new folder") from error
        for trial in study.get_trials(states=[optuna.trial.TrialState.RUNNING]):
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        return study

    def _search(self, study: "optuna.Study", prepared: Prepared) -> None:
        import optuna

        done = len(_finished(study))
        if done < self.trials and self.folder is not None and TunedFolder(self.folder.path).begun:
            raise ConfigError(f"{self.folder.path}: the best of {done} trials was chosen; use a new folder for more")
        if not done and not study.get_trials(states=[optuna.trial.TrialState.WAITING]):
            usual = {each.path: each.usual(self.config) for each in self.space}
            study.enqueue_trial({path: value for path, value in usual.items() if value is not None})
        shown = not self.quiet
        with progress("Tuning", self.trials, done=done, shown=shown) as tick, threads(self.config.training.threads):
            for number in range(done, self.trials):
                # A sampler a trial: draws depend on the trials before it, not on where the search was resumed.
                study.sampler = optuna.samplers.TPESampler(seed=self.config.training.seed + number)
                self._try(study, number, prepared)
                gc.collect()  # players, optimiser and graph hold each other
                torch.cuda.empty_cache()
                tick()
        if not study.get_trials(states=[optuna.trial.TrialState.COMPLETE]):
            raise StateError(f"all {self.trials} trials diverged; lower training.learning_rate, or set training.clip")

    def _try(self, study: "optuna.Study", number: int, prepared: Prepared) -> None:
        """One trial: train a copy of the student, and tell the study how it went."""
        import optuna

        trial = study.ask()
        drawn = {each.path: trial.suggest_float(each.path, each.low, each.high, log=each.log) for each in self.space}
        config = self._config(drawn)
        machine = Reporting(trial, self.measure, precision=config.training.precision)
        own = replace(prepared, student=copy.deepcopy(prepared.student))
        trainer = Fitting(config, self.task.kind, self.sources, None, quiet=True)._trainer(own, machine, None)
        state, score = optuna.trial.TrialState.FAIL, None
        try:
            best = trainer.run().best or []
            state, score = optuna.trial.TrialState.COMPLETE, float(np.mean([seed[self.measure] for seed in best]))
        except optuna.TrialPruned:
            state = optuna.trial.TrialState.PRUNED
        except StateError as error:
            state = optuna.trial.TrialState.PRUNED
            trial.set_user_attr("diverged", str(error))
        except Interrupted as error:
            where = "nothing was saved" if self.folder is None else f"go on with --tune --resume -o {self.folder.path}"
            raise Interrupted(f"stopped in trial {number + 1} of {self.trials}; {where}") from error
        finally:
            trial.set_user_attr("steps", trainer.taken)
            trial.set_user_attr("looks", machine.looks)
            study.tell(trial, score, state=state)

    def _config(self, drawn: Mapping[str, float]) -> RunConfig:
        """The configuration with these settings in place of its own."""
        config = self.config.model_dump(mode="json")
        for each in self.space:
            config = merge(config, {each.group: {each.name: each.setting(drawn[each.path])}})
        return config_of(config, "configuration")

    def _account(self, study: "optuna.Study", dev_labels: int) -> dict[str, Any]:
        """What the search cost, trials that were stopped included, and what every trial came to."""
        tried = [
            {
                "settings": {each.path: each.setting(trial.params[each.path]) for each in self.space},
                "dev": trial.value,
                "ended": "diverged" if "diverged" in trial.user_attrs else trial.state.name.lower(),
                "steps": trial.user_attrs["steps"],
                "looks": trial.user_attrs["looks"],
            }
            for trial in _finished(study)
        ]
        best = study.best_trial
        return {
            "trials": len(tried),
            "pruned": sum(trial["ended"] == "pruned" for trial in tried),
            "diverged": sum(trial["ended"] == "diverged" for trial in tried),
            "steps": sum(trial.user_attrs.get("steps", 0) for trial in study.trials),
            "dev_looks": sum(trial.user_attrs.get("looks", len(trial.intermediate_values)) for trial in study.trials),
            "dev_labels": dev_labels,
            "settings": {each.path: each.setting(best.params[each.path]) for each in self.space},
            "dev": best.value,
            "tried": tried,
        }


class Last(Fitting):
    """The run with the best settings, which tells how they were found."""

    def __init__(self, *arguments: Any, note: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.note = note

    def _prepared(self) -> Prepared:
        prepared = super()._prepared()
        return replace(prepared, notes=[*prepared.notes, self.note])


def _finished(study: "optuna.Study") -> "list[optuna.trial.FrozenTrial]":
    """Trials that count; one that was interrupted is made again."""
    import optuna

    return study.get_trials(states=[optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED])


def _note(found: Mapping[str, Any]) -> str:
    chosen = ", ".join(f"{path}={value:g}" for path, value in found["settings"].items())
    return (
        f"settings were searched on dev: {found['trials']} trials ({found['pruned']} stopped early,"
        f" {found['diverged']} diverged), {found['steps']:,} steps beside those of this run; all"
        f" {found['dev_labels']:,} dev labels were looked at {found['dev_looks']:,} times, so dev scores are too good;"
        f" chosen: {chosen}"
    )


def _journal(path: Path) -> "optuna.storages.JournalStorage":
    """A study's file, without a last line that a killed process cut short: the next would be written onto it."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    if path.exists():
        os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
    # The other lock is a link, which cannot be taken from a killed process where the path is relative.
    return JournalStorage(JournalFileBackend(str(path), lock_obj=JournalFileOpenLock(str(path))))


@contextmanager
def _unheard() -> Iterator[None]:
    """Optuna tells every trial; a progress bar is enough."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
