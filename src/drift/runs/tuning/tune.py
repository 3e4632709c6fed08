"""`drift.tune`: settings searched on dev with Optuna, then a run with the best of them; test is scored once."""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib

from drift.data.packages import needed_for
from drift.errors import ConfigError, FileError, Interrupted, StateError
from drift.methods import METHODS
from drift.runs.fit import FOUND, Fitting, fit, tell_search
from drift.runs.result import Run
from drift.runs.tuning.search_space import search_space, with_settings
from drift.runs.tuning.trials import Trials, free, quiet_optuna, train_apart
from drift.runs.workers import results, workers
from drift.tasks.base import Prepared
from drift.training.plan import Plan, format_duration
from drift.training.progress import Tick, progress
from drift.training.run_folder import CONFIG, DATA, RunFolder
from drift.training.threads import threads

if TYPE_CHECKING:
    import optuna

TRIALS = 20
FOLDER, STUDY, SEARCH = "tuning", "study.jsonl", "search.json"
KEPT = "finished trials are kept, and the same command with --resume goes on"
NO_DEV = "settings are searched on dev, and there is no dev set; give one with --dev (of a graph: data.dev_nodes)"


def tune(
    train: Any = None, *, trials: int | None = None, jobs: int | None = None, cluster: str | None = None, **options: Any
) -> Run | Plan:
    """Search settings on dev, train with the best and say how good that is.

    train, options: those of `drift.fit`. trials: how many settings to try, the given ones first; 20 if left out. jobs:
    how many at once; by default one after the other, on a cluster as many as it takes. cluster: the address of a Dask
    scheduler, or "ray"; its workers must see the same data. resume: go on with the search in the folder, with as many
    trials and as many at once as it was begun with. dry_run: give back the plan of one trial, and a note of how many.
    """
    if trials is not None and trials < 1:
        raise ConfigError(f"trials is {trials}; try at least 1")
    if jobs is not None and jobs < 1:
        raise ConfigError(f"jobs is {jobs}; give at least 1")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError("settings are searched in one process; start it without accelerate launch or torchrun")
    out = options.get("out")
    if train is None and options.get("config") is None and out is not None and options.get("resume"):
        options["config"] = RunFolder(Path(out) / FOLDER).config()  # it names everything
    return fit(train, **options, fitting=partial(Tuning, trials=trials, jobs=jobs, cluster=cluster))


class TunedFolder(RunFolder):
    """A run's folder that may hold the search which led to the run."""

    @property
    def begun(self) -> bool:
        return (self.path / CONFIG).exists()

    def check(self, config: Mapping[str, Any], *, resume: bool = False) -> None:
        if resume or not self.path.exists() or any(entry.name != FOLDER for entry in self.path.iterdir()):
            super().check(config, resume=resume)


class Tuning(Fitting):
    """A run whose settings are searched first: one trial after the other on data that is prepared once, or in rounds.

    The study is in the run's folder, in `tuning`. Its journal is JSON lines that are only ever added to: a process
    that is killed leaves at most one line cut short, and there is neither a database to be locked nor a pickle.
    """

    def __init__(
        self, *arguments: Any, trials: int | None, jobs: int | None, cluster: str | None, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.asked, self.jobs, self.cluster, self.space = trials, jobs, cluster, search_space(self.config)
        self.wanted = trials or TRIALS

    def plan(self) -> Plan:
        found = super().plan()
        whole = format_duration((self.wanted + 1) * found.seconds)
        note = f"that is one of {self.wanted} trials, some of which end early; with the run after them at most {whole}"
        return replace(found, notes=[*found.notes, note])

    def run(self, *, resume: bool = False, onnx: bool = True) -> Run:
        with needed_for("a search of settings", "pip install 'drift-ssl[tune]'"):
            import optuna  # noqa: F401
        prepared = self._begin(resume=resume)
        dev_labels = prepared.training.budget.dev
        trials = Trials(self.config, self.task.kind, self.sources, self.space, self.task.fingerprint())
        with quiet_optuna():
            study = self._study(trials)
            self._search(study, trials, prepared)
        del prepared
        folder = None if self.folder is None else TunedFolder(self.folder.path)
        account = self._account(study, dev_labels)
        found = {"account": account, "note": _note(account)}
        if folder is not None:
            folder.write_json(FOUND, found)  # whoever goes on with the run tells of it too
        best = with_settings(self.config, self.space, study.best_trial.params)
        last = Fitting(best, self.task.kind, self.sources, folder, quiet=self.quiet)
        run = last.run(resume=folder is not None and folder.begun, onnx=onnx)
        if folder is None:
            tell_search(run, found)
        return run

    def _begin(self, *, resume: bool) -> Prepared:
        """Read and prepare what all trials use; refuse early what cannot be done."""
        described = self.config.model_dump(mode="json")
        if METHODS[self.config.method_name].trains_on_dev:
            raise ConfigError(f"{self.config.method_name} learns from dev, and nothing is left to choose by")
        if self.config.task != "nodes" and self.sources["dev"] is None:
            raise ConfigError(NO_DEV)
        folder = None if self.folder is None else RunFolder(self.folder.path / FOLDER)
        if folder is not None and resume and not (folder.path / CONFIG).exists():
            raise FileError(f"{folder.path.parent} holds no search to resume; search in a new folder")
        if self.folder is not None and folder is not None:
            folder.check(described, resume=resume)
            if not resume:
                self.folder.check(described)
        self.task.read(self.sources)
        if folder is not None and resume:
            folder.check_data(self.task.fingerprint())
            self._as_it_was_begun(folder.read_json(SEARCH))
        prepared = self._prepared()
        if prepared.dev is None:
            raise ConfigError(NO_DEV)
        if folder is not None:
            folder.begin(described, resume=resume)
            folder.write_json(DATA, {"fingerprint": self.task.fingerprint()})
            self._write_search(self.jobs or (1 if self.cluster is None else None))
        return prepared

    def _as_it_was_begun(self, search: Mapping[str, Any]) -> None:
        """How many trials, and how many of them at once: what is drawn depends on what was known by then."""
        self.wanted, at_once = self.asked or search["trials"], search["at_once"]
        if at_once is not None and self.jobs not in (None, at_once):
            raise ConfigError(f"the search was begun with {at_once} trials at once; leave out --jobs to go on with it")
        self.jobs = at_once or self.jobs

    def _write_search(self, at_once: int | None) -> None:
        if self.folder is not None:
            RunFolder(self.folder.path / FOLDER).write_json(SEARCH, {"trials": self.wanted, "at_once": at_once})

    def _study(self, trials: Trials) -> "optuna.Study":
        """The study of the folder, or a new one; trials that a killed process left are given up."""
        import optuna

        path = None if self.folder is None else self.folder.path / FOLDER / STUDY
        try:
            storage = None if path is None else _journal(path)
            study = trials.study(study_name="drift", storage=storage, load_if_exists=True)
        except (ValueError, KeyError, TypeError) as error:
            raise FileError(f"{path} is damaged ({error}); search again in a new folder") from error
        for trial in study.get_trials(states=[optuna.trial.TrialState.RUNNING]):
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        return study

    def _search(self, study: "optuna.Study", trials: Trials, prepared: Prepared) -> None:
        import optuna

        done = len(_finished(study))
        if done < self.wanted and self.folder is not None and TunedFolder(self.folder.path).begun:
            raise ConfigError(f"{self.folder.path}: the best of {done} trials was chosen; use a new folder for more")
        with progress("Tuning", self.wanted, done=done, shown=not self.quiet) as tick:
            if self.cluster is None and self.jobs in (None, 1):
                self._one_by_one(study, trials, prepared, tick)
            elif done < self.wanted:
                self._in_rounds(study, trials, tick)
        if not study.get_trials(states=[optuna.trial.TrialState.COMPLETE]):
            raise StateError(f"all {self.wanted} trials diverged; lower training.learning_rate, or set training.clip")

    def _one_by_one(self, study: "optuna.Study", trials: Trials, prepared: Prepared, tick: Tick) -> None:
        import optuna

        done = len(_finished(study))
        if not done and not study.get_trials(states=[optuna.trial.TrialState.WAITING]):
            trials.enqueue_usual(study)
        with threads(self.config.training.threads):
            for number in range(done, self.wanted):
                try:
                    trials.train(study, trials.ask(study, number), prepared)
                except Interrupted as error:
                    path = None if self.folder is None else self.folder.path
                    kept = "nothing was saved" if path is None else f"go on with drift fit --tune --resume -o {path}"
                    raise Interrupted(f"stopped in trial {number + 1} of {self.wanted}; {kept}") from error
                free()
                tick()

    def _in_rounds(self, study: "optuna.Study", trials: Trials, tick: Tick) -> None:
        """Several trials at once, drawn from the rounds before alone: which of them ends first changes nothing.

        Workers write nothing; a trial that is trained becomes one line of the journal, in the order of the round. Of a
        round that was cut short the rest is trained.
        """
        kept = "nothing was saved" if self.folder is None else KEPT
        with workers(self.cluster, self.jobs or 1) as room:
            size = self.jobs or room
            self._write_search(size)
            while (done := len(_finished(study))) < self.wanted:
                first = done // size * size
                before = _finished(study)[:first]
                drawn = trials.round(before, min(size, self.wanted - first))[done - first :]
                calls = [joblib.delayed(train_apart)(trials, before, each) for each in drawn]
                for trained in results(calls, self.cluster, kept=kept, in_order=True):
                    study.add_trial(trained)
                    tick()

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
