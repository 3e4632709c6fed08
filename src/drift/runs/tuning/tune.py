"""`drift.tune`: search settings on dev with Optuna, then train with the best; test is scored once."""

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib

from drift.data.files import check_inside
from drift.data.locks import FolderLock
from drift.errors import ConfigError, FileError, Interrupted, StateError, needed_for
from drift.runs.fit import spec_of
from drift.runs.request import stored_config
from drift.runs.result import Run, add_search
from drift.runs.run import SEARCH_RESULT, new_task, plan_run, prepare, run
from drift.runs.spec import RunSpec
from drift.runs.tuning.search_space import search_space, with_settings
from drift.runs.tuning.trials import Trials, free_memory, quiet_optuna, train_in_worker
from drift.runs.workers import results, workers
from drift.tasks import Task
from drift.tasks.parts import Prepared
from drift.training.callbacks import Callback
from drift.training.plan import Plan, format_duration
from drift.training.progress import Tick, progress
from drift.training.run_folder import CONFIG, DATA, Normalize, RunFolder
from drift.training.threads import threads

if TYPE_CHECKING:
    import optuna

TRIALS = 20
FOLDER, STUDY, SEARCH = "tuning", "study.jsonl", "search.json"
KEPT = "finished trials are kept, and the same command with --resume continues"
NO_DEV = "settings are searched on dev, and there is no dev set; give one with --dev (of a graph: data.dev_nodes)"


def tune(
    train: Any = None,
    *,
    n_trials: int | None = None,
    n_jobs: int | None = None,
    cluster: str | None = None,
    trials: int | None = None,
    jobs: int | None = None,
    **options: Any,
) -> Run | Plan:
    """Search settings on dev, train with the best, and measure how good that is.

    Parameters
    ----------
    train, **options
        As for `fit`. Callbacks are called in the run with the best settings, not in the trials.
    n_trials : int, default=20
        How many settings to try; the requested ones are tried first.
    n_jobs : int, default=None
        Trials at once; by default one after the other, or as many as the cluster takes.
    cluster : str, default=None
        Address of a Dask scheduler, or "ray". Its workers must see the same data.
    trials, jobs
        Deprecated names of `n_trials` and `n_jobs`.

    Returns
    -------
    Run
        The run with the best settings. With `dry_run=True`, the plan of one trial.

    Notes
    -----
    With `resume=True`, the search in the folder is continued, with as many trials and as many at once as it began with.
    """
    n_trials, n_jobs = _renamed("trials", trials, "n_trials", n_trials), _renamed("jobs", jobs, "n_jobs", n_jobs)
    if n_trials is not None and n_trials < 1:
        raise ConfigError(f"n_trials is {n_trials}; try at least 1")
    if n_jobs is not None and n_jobs < 1:
        raise ConfigError(f"n_jobs is {n_jobs}; give at least 1")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError("settings are searched in one process; start it without accelerate launch or torchrun")
    out, resume, quiet = options.get("out"), options.get("resume", False), options.get("quiet", False)
    if all(source is None for source in (train, options.get("config"), options.get("from_run"))):
        options["config"] = stored_config(None if out is None else Path(out) / FOLDER, resume=resume)
    spec = spec_of({"train": train, **options})
    if options.get("dry_run"):
        return plan_search(spec, n_trials or TRIALS, quiet=quiet)
    search = Search(spec, out, n_trials=n_trials, n_jobs=n_jobs, cluster=cluster, quiet=quiet)
    return search.run(resume=resume, onnx=options.get("onnx"), callbacks=options.get("callbacks", ()))


def _renamed(old: str, old_value: int | None, new: str, value: int | None) -> int | None:
    if old_value is None:
        return value
    warnings.warn(f"tune({old}=...) is now {new}; use that name", FutureWarning, stacklevel=3)
    return old_value if value is None else value


def plan_search(spec: RunSpec, n_trials: int, *, quiet: bool = False) -> Plan:
    """The plan of one trial, with a note about all of them."""
    plan = plan_run(spec, quiet=quiet)
    total = format_duration((n_trials + 1) * plan.seconds)
    note = f"that is one of {n_trials} trials, some of which end early; with the run after them at most {total}"
    return replace(plan, notes=[*plan.notes, note])


class TunedFolder(RunFolder):
    """A run's folder that may hold the search which led to the run."""

    @property
    def begun(self) -> bool:
        return (self.path / CONFIG).exists()

    def check(self, config: Mapping[str, Any], *, resume: bool = False, normalize: Normalize = dict) -> None:
        if resume or not self.path.exists() or any(entry.name != FOLDER for entry in self.path.iterdir()):
            super().check(config, resume=resume, normalize=normalize)


class Search:
    """A search of settings, one trial after the other on data that is prepared once, or in rounds of several.

    The study is in the run's folder, in `tuning`. Its journal is JSON lines that are only appended to: a process that
    is killed leaves at most one incomplete line, and there is neither a database to be locked nor a pickle.
    """

    def __init__(
        self,
        spec: RunSpec,
        out: str | Path | None,
        *,
        n_trials: int | None = None,
        n_jobs: int | None = None,
        cluster: str | None = None,
        quiet: bool = False,
    ) -> None:
        self.spec, self.cluster, self.quiet = spec, cluster, quiet
        self.requested, self.n_trials, self.n_jobs = n_trials, n_trials or TRIALS, n_jobs
        self.folder = None if out is None else TunedFolder(out)
        self.search_folder = None if out is None else RunFolder(Path(out) / FOLDER)
        self.space = search_space(spec)

    def run(self, *, resume: bool = False, onnx: bool | None = None, callbacks: Sequence[Callback] = ()) -> Run:
        """Search, then train with the best settings. callbacks: of that last run."""
        with needed_for("a search of settings", "pip install 'drift-ssl[tune]'"):
            import optuna  # noqa: F401
        with FolderLock(None if self.folder is None else self.folder.path) as lock:
            return self._run(lock, resume=resume, onnx=onnx, callbacks=callbacks)

    def _run(self, lock: FolderLock, *, resume: bool, onnx: bool | None, callbacks: Sequence[Callback]) -> Run:
        lock.take()
        task, prepared = self._begin(lock, resume=resume)
        dev_labels = prepared.training.budget.dev
        trials = Trials(self.spec, self.space, task.fingerprint())
        with quiet_optuna():
            study = self._study(trials)
            self._search(study, trials, task, prepared)
        del task, prepared
        account = self._account(study, dev_labels)
        search = {"account": account, "note": _note(account)}
        if self.folder is not None:
            self.folder.write_json(SEARCH_RESULT, search)  # a resumed run adds it to its record too
        best = with_settings(self.spec, self.space, study.best_trial.params)
        begun = self.folder is not None and self.folder.begun
        result = run(best, self.folder, resume=begun, onnx=onnx, quiet=self.quiet, callbacks=callbacks)
        return result if self.folder is not None else add_search(result, search)

    def _begin(self, lock: FolderLock, *, resume: bool) -> tuple[Task, Prepared]:
        """Read and prepare what all trials use; refuse early what cannot be done."""
        spec, folder = self.spec, self.search_folder
        if self.folder is not None and self.folder.path.is_dir():
            check_inside(self.folder.path)
        described = spec.described()
        if spec.method.trains_on_dev:
            raise ConfigError(f"{spec.method.name} trains on dev, so nothing is left for model selection")
        if not spec.task.splits_itself and spec.sources.get("dev") is None:
            raise ConfigError(NO_DEV)
        if folder is not None and resume and not (folder.path / CONFIG).exists():
            raise FileError(f"{folder.path.parent} holds no search to resume; search in a new folder")
        if self.folder is not None and folder is not None:
            folder.check(described, resume=resume, normalize=spec.normalize)
            if not resume:
                self.folder.check(described)
        task = new_task(spec, quiet=self.quiet)
        task.read(spec.sources)
        if folder is not None and resume:
            folder.check_data(task.fingerprint())
            if (folder.path / SEARCH).exists():  # otherwise the search was stopped while it began
                self._continue_as_begun(folder.read_json(SEARCH))
        prepared = prepare(task)
        if prepared.dev is None:
            raise ConfigError(NO_DEV)
        if folder is not None:
            lock.take(create=True)
            folder.begin(described, resume=resume, normalize=spec.normalize)
            folder.write_json(DATA, {"fingerprint": task.fingerprint()})
            self._write_search(self.n_jobs or (1 if self.cluster is None else None))
        return task, prepared

    def _continue_as_begun(self, search: Mapping[str, Any]) -> None:
        """Use as many trials, and as many at once, as before: draws depend on the trials that were finished by then."""
        self.n_trials, at_once = self.requested or search["trials"], search["at_once"]
        if at_once is not None and self.n_jobs not in (None, at_once):
            raise ConfigError(f"the search was begun with {at_once} trials at once; leave out --jobs to continue it")
        self.n_jobs = at_once or self.n_jobs

    def _write_search(self, at_once: int | None) -> None:
        if self.search_folder is not None:
            self.search_folder.write_json(SEARCH, {"trials": self.n_trials, "at_once": at_once})

    def _study(self, trials: Trials) -> "optuna.Study":
        """The study of the folder, or a new one; trials that a killed process left are marked as failed."""
        import optuna

        path = None if self.search_folder is None else self.search_folder.path / STUDY
        try:
            storage = None if path is None else _journal(path)
            study = trials.study(study_name="drift", storage=storage, load_if_exists=True)
        except (ValueError, KeyError, TypeError) as error:
            raise FileError(f"{path} is damaged ({error}); search again in a new folder") from error
        for trial in study.get_trials(states=[optuna.trial.TrialState.RUNNING]):
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        return study

    def _search(self, study: "optuna.Study", trials: Trials, task: Task, prepared: Prepared) -> None:
        import optuna

        done = len(_finished(study))
        if done < self.n_trials and self.folder is not None and self.folder.begun:
            raise ConfigError(f"{self.folder.path}: the best of {done} trials was chosen; use a new folder for more")
        with progress("Tuning", self.n_trials, done=done, shown=not self.quiet) as tick:
            if self.cluster is None and self.n_jobs in (None, 1):
                self._one_by_one(study, trials, task, prepared, tick)
            elif done < self.n_trials:
                self._in_rounds(study, trials, tick)
        if not study.get_trials(states=[optuna.trial.TrialState.COMPLETE]):
            raise StateError(f"all {self.n_trials} trials diverged; lower training.learning_rate, or set training.clip")

    def _one_by_one(self, study: "optuna.Study", trials: Trials, task: Task, prepared: Prepared, tick: Tick) -> None:
        import optuna

        done = len(_finished(study))
        if not done and not study.get_trials(states=[optuna.trial.TrialState.WAITING]):
            trials.enqueue_usual(study)
        with threads(self.spec.config.training.threads):
            for number in range(done, self.n_trials):
                try:
                    trials.train(study, trials.ask(study, number), task, prepared)
                except Interrupted as error:
                    path = None if self.folder is None else self.folder.path
                    kept = "nothing was saved" if path is None else f"continue with drift fit --tune --resume -o {path}"
                    raise Interrupted(f"stopped in trial {number + 1} of {self.n_trials}; {kept}") from error
                free_memory()
                tick()

    def _in_rounds(self, study: "optuna.Study", trials: Trials, tick: Tick) -> None:
        """Several trials at once, drawn only from the rounds before: which of them ends first changes nothing.

        Workers write nothing. A trained trial becomes one line of the journal, in the order of the round; of a round
        that was cut short, the rest is trained.
        """
        kept = "nothing was saved" if self.folder is None else KEPT
        with workers(self.cluster, self.n_jobs or 1) as room:
            size = self.n_jobs or room
            self._write_search(size)
            while (done := len(_finished(study))) < self.n_trials:
                first = done // size * size
                before = _finished(study)[:first]
                drawn = trials.round(before, min(size, self.n_trials - first))[done - first :]
                calls = [joblib.delayed(train_in_worker)(trials, before, each) for each in drawn]
                for trained in results(calls, self.cluster, kept=kept, in_order=True):
                    study.add_trial(trained)
                    tick()

    def _account(self, study: "optuna.Study", dev_labels: int) -> dict[str, Any]:
        """What the search cost, including trials that were stopped, and the result of every trial."""
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


def _finished(study: "optuna.Study") -> "list[optuna.trial.FrozenTrial]":
    """Trials that count; one that was interrupted is repeated."""
    import optuna

    return study.get_trials(states=[optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED])


def _note(account: Mapping[str, Any]) -> str:
    chosen = ", ".join(f"{path}={value:g}" for path, value in account["settings"].items())
    return (
        f"settings were searched on dev: {account['trials']} trials ({account['pruned']} stopped early,"
        f" {account['diverged']} diverged), {account['steps']:,} steps in addition to those of this run; all"
        f" {account['dev_labels']:,} dev labels were used in {account['dev_looks']:,} evaluations, so dev scores are"
        f" too good; chosen: {chosen}"
    )


def _journal(path: Path) -> "optuna.storages.JournalStorage":
    """The file of a study, without a last line that a killed process cut short: the next would be appended to it."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    if path.exists():
        os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
    # The default lock is a link, which cannot be taken from a killed process if the path is relative.
    return JournalStorage(JournalFileBackend(str(path), lock_obj=JournalFileOpenLock(str(path))))
