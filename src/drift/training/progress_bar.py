"""The progress bar of a run."""

import math
from contextlib import AbstractContextManager

from drift.training import progress
from drift.training.callbacks import Callback, TrainingState


class ProgressBar(Callback):
    """One bar per phase, with the loss and the best dev score beside it."""

    def __init__(self) -> None:
        self._bar: AbstractContextManager[progress.Tick] | None = None

    def on_phase_begin(self, state: TrainingState) -> None:
        title = state.method.name if state.playing else "Finding the start"
        self._bar = progress.progress(title, state.last_step, done=state.step)
        self._tick = self._bar.__enter__()

    def on_step_end(self, state: TrainingState) -> None:
        dev = f"  dev {100 * state.best_score:.2f}" if math.isfinite(state.best_score) else ""
        self._tick(f"loss {state.loss:.4f}{dev}")

    def on_phase_end(self, state: TrainingState) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None

    on_run_end = on_phase_end  # a run that failed leaves no bar behind
