"""Trials of a search: drawn by Optuna, trained, and stopped where those before were better; here or by a worker."""

import copy
import gc
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from drift.errors import StateError
from drift.runs.config import RunConfig
from drift.runs.fit import Fitting
from drift.runs.tuning.search_space import Searched, with_settings
from drift.runs.workers import ONE_A_PROCESS
from drift.tasks.base import Prepared
from drift.training.devices import Accelerated
from drift.training.threads import threads

if TYPE_CHECKING:
    import optuna

NEVER_PRUNED = 4  # trials, the first ones: a median of fewer says little


class Reporting(Accelerated):
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


@dataclass(frozen=True)
class Trials:
    """What all trials of a search share. sources: what train, dev and the others are, as of `Fitting`."""

    config: RunConfig
    kind: str
    sources: dict[str, Any]
    space: list[Searched]
    fingerprint: str

    def study(self, **options: Any) -> "optuna.Study":
        """A new study, or with options one that is stored somewhere."""
        import optuna

        looks = self.config.training.steps // self.config.training.evaluate_every
        pruner = optuna.pruners.MedianPruner(n_startup_trials=NEVER_PRUNED, n_warmup_steps=looks // 4)
        return optuna.create_study(pruner=pruner, direction="maximize", **options)

    def ask(self, study: "optuna.Study", number: int) -> "optuna.Trial":
        """Draw the settings of the trial with this number."""
        import optuna

        # A sampler a trial: draws depend on the trials before it, not on where the search was resumed. The liar takes
        # trials that are asked for and not yet trained for bad ones, so that those of a round differ.
        study.sampler = optuna.samplers.TPESampler(seed=self.config.training.seed + number, constant_liar=True)
        trial = study.ask()
        for each in self.space:
            trial.suggest_float(each.path, each.low, each.high, log=each.log)
        return trial

    def enqueue_usual(self, study: "optuna.Study") -> None:
        """Let the first trial have the settings that were given."""
        usual = {each.path: each.usual(self.config) for each in self.space}
        study.enqueue_trial({path: value for path, value in usual.items() if value is not None})

    def round(self, before: "Sequence[optuna.trial.FrozenTrial]", size: int) -> list[dict[str, float]]:
        """What is drawn for so many trials at once, after those before."""
        study = self.study()
        study.add_trials(before)
        if not before:
            self.enqueue_usual(study)
        return [self.ask(study, len(before) + place).params for place in range(size)]

    def train(self, study: "optuna.Study", trial: "optuna.Trial", prepared: Prepared) -> None:
        """Train a copy of the student with the settings of the trial, and tell the study how it went."""
        import optuna

        config = with_settings(self.config, self.space, trial.params)
        fitting = Fitting(config, self.kind, self.sources, None, quiet=True)
        measure = next(iter(fitting.task.measures))
        machine = Reporting(trial, measure, precision=config.training.precision)
        trainer = fitting._trainer(replace(prepared, student=copy.deepcopy(prepared.student)), machine, None)
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
            trial.set_user_attr("steps", trainer.taken)
            trial.set_user_attr("looks", machine.looks)
            study.tell(trial, score, state=state)


def train_apart(
    trials: Trials, before: "Sequence[optuna.trial.FrozenTrial]", drawn: Mapping[str, float]
) -> "optuna.trial.FrozenTrial":
    """One trial in a worker: by a study of its own, which holds the trials before, so that Optuna prunes as ever."""
    with ONE_A_PROCESS, quiet_optuna(), threads(trials.config.training.threads):
        fitting = Fitting(trials.config, trials.kind, trials.sources, None, quiet=True)
        fitting.task.read(trials.sources)
        if fitting.task.fingerprint() != trials.fingerprint:
            raise StateError(
                "a worker reads other data than the search began with; give paths that mean the same there"
            )
        study = trials.study()
        study.add_trials(before)
        study.enqueue_trial(dict(drawn))
        trials.train(study, trials.ask(study, len(before)), fitting._prepared())
        del fitting
        free()
        return study.trials[-1]


def free() -> None:
    """Give back what a trial held: players, optimiser and graph hold each other."""
    gc.collect()
    torch.cuda.empty_cache()


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Optuna tells every trial; a progress bar is enough."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # the constant liar was, in Optuna 4
            yield
    finally:
        optuna.logging.set_verbosity(before)
