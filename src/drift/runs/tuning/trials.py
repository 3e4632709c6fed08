"""Trials of a search: drawn by Optuna, trained, and pruned if earlier ones were better; here or in a worker."""

import copy
import gc
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from drift.errors import StateError
from drift.imports import files_of, load_files
from drift.models.precision import chosen_mixed_precision
from drift.runs.run import make_trainer, new_task, prepare
from drift.runs.spec import RunSpec
from drift.runs.tuning.search_space import Searched, with_settings
from drift.runs.workers import ONE_PER_PROCESS
from drift.tasks import Task
from drift.tasks.parts import Prepared
from drift.training.callbacks import Callback, TrainingState, mean_scores
from drift.training.devices import Accelerated
from drift.training.threads import threads

if TYPE_CHECKING:
    import optuna

NEVER_PRUNED = 4  # first trials: a median of fewer says little


class Pruner(Callback):
    """Reports the dev scores of the second phase to a trial, ends the run if Optuna prunes it, and counts evaluations.

    measure: the score that is reported, as a mean over seeds.
    """

    def __init__(self, trial: "optuna.Trial", measure: str) -> None:
        self.trial, self.measure, self.evaluations, self.reported = trial, measure, 0, 0

    def on_evaluate(self, state: TrainingState, scores: Sequence[Mapping[str, float]]) -> None:
        self.evaluations += 1
        if state.playing:
            # Numbered by evaluation, not by step: the first phase may end at another step in each trial.
            self.trial.report(mean_scores(scores)[self.measure], self.reported)
            self.reported += 1
            if self.trial.should_prune():
                import optuna

                raise optuna.TrialPruned


@dataclass(frozen=True)
class Trials:
    """What all trials of a search share: the run as requested, the settings to search, and a hash of the data."""

    spec: RunSpec
    space: list[Searched]
    fingerprint: str

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker has to execute the files of the user's task and method before it can unpickle the spec.
        files = _UserFiles(files_of(self.spec.task, self.spec.method))
        return _unpickled, (files, self.spec, self.space, self.fingerprint)

    def study(self, **options: object) -> "optuna.Study":
        """A new study, or with options one that is stored."""
        import optuna

        training = self.spec.config.training
        evaluations = training.steps // training.evaluate_every
        pruner = optuna.pruners.MedianPruner(n_startup_trials=NEVER_PRUNED, n_warmup_steps=evaluations // 4)
        return optuna.create_study(pruner=pruner, direction="maximize", **options)  # type: ignore[arg-type]

    def ask(self, study: "optuna.Study", number: int) -> "optuna.Trial":
        """Draw the settings of the trial with this number."""
        import optuna

        # One sampler per trial: draws depend on the trials before it, not on where the search was resumed. The constant
        # liar counts trials that are drawn and not trained yet as bad ones, so that those of a round differ.
        seed = self.spec.config.training.seed + number
        study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        trial = study.ask()
        for each in self.space:
            trial.suggest_float(each.path, each.low, each.high, log=each.log)
        return trial

    def enqueue_usual(self, study: "optuna.Study") -> None:
        """Give the first trial the settings that were requested."""
        usual = {each.path: each.usual(self.spec.config) for each in self.space}
        study.enqueue_trial({path: value for path, value in usual.items() if value is not None})

    def round(self, before: "Sequence[optuna.trial.FrozenTrial]", size: int) -> list[dict[str, float]]:
        """The settings of several trials that run at once, after those before."""
        study = self.study()
        study.add_trials(before)
        if not before:
            self.enqueue_usual(study)
        return [self.ask(study, len(before) + position).params for position in range(size)]

    def train(self, study: "optuna.Study", trial: "optuna.Trial", task: Task, prepared: Prepared) -> None:
        """Train a copy of the student with the settings of the trial, and report the result to the study."""
        import optuna

        spec = with_settings(self.spec, self.space, trial.params)
        measure = next(iter(task.measures))
        pruner = Pruner(trial, measure)
        own_task = new_task(spec, quiet=True)
        own_task.method_settings = _with_prior(own_task, task)
        trainer = make_trainer(
            own_task,
            replace(prepared, student=copy.deepcopy(prepared.student)),
            machine=Accelerated(precision=chosen_mixed_precision(spec.config.training.precision)),
            callbacks=[pruner],
        )
        state, score = optuna.trial.TrialState.FAIL, None
        try:
            best = trainer.run().best or []
            state, score = optuna.trial.TrialState.COMPLETE, float(np.mean([seed[measure] for seed in best]))
        except optuna.TrialPruned:
            state = optuna.trial.TrialState.PRUNED
        except StateError as error:
            state = optuna.trial.TrialState.PRUNED
            trial.set_user_attr("diverged", str(error))
        finally:
            trial.set_user_attr("steps", trainer.state.total_steps)
            trial.set_user_attr("looks", pruner.evaluations)
            study.tell(trial, score, state=state)


class _UserFiles:
    """Executes the user's Python files where it is unpickled."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self.files = files

    def __reduce__(self) -> tuple[Any, ...]:
        return load_files, (self.files,)


def _unpickled(_: None, spec: RunSpec, space: list[Searched], fingerprint: str) -> Trials:
    return Trials(spec, space, fingerprint)


def _with_prior(task: Task, read: Task) -> object:
    """The settings of the method, with the prior in the order of the classes that were read."""
    if not hasattr(task.method_settings, "prior"):
        return task.method_settings
    return task.method_settings.model_copy(update={"prior": read.method_settings.prior})


def train_in_worker(
    trials: Trials, before: "Sequence[optuna.trial.FrozenTrial]", drawn: Mapping[str, float]
) -> "optuna.trial.FrozenTrial":
    """One trial in a worker, by a study of its own that holds the trials before, so that Optuna prunes as usual."""
    with ONE_PER_PROCESS, quiet_optuna(), threads(trials.spec.config.training.threads):
        task = new_task(trials.spec, quiet=True)
        task.read(trials.spec.sources)
        if task.fingerprint() != trials.fingerprint:
            raise StateError(
                "a worker reads other data than the search began with; give paths that mean the same there"
            )
        study = trials.study()
        study.add_trials(before)
        study.enqueue_trial(dict(drawn))
        trials.train(study, trials.ask(study, len(before)), task, prepare(task))
        del task
        free_memory()
        return study.trials[-1]


def free_memory() -> None:
    """Release what a trial held: student, optimizer and graph refer to each other."""
    gc.collect()
    torch.cuda.empty_cache()


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Optuna logs every trial; a progress bar is enough."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            # The constant liar was experimental in Optuna 4.
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)
