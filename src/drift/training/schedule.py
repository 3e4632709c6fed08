"""What happens between the steps of a run, as a callback."""

from typing import TYPE_CHECKING

from drift.training.callbacks import Callback, TrainingState
from drift.training.predictions import PredictionWriter

if TYPE_CHECKING:
    from drift.training.trainer import Trainer


class Schedule(Callback):
    """What a trainer does between steps: log entries, dev evaluations, predictions, and the method's refreshes."""

    def __init__(self, run: "Trainer") -> None:
        self.run = run
        self.predictions = PredictionWriter(run)

    def on_phase_begin(self, state: TrainingState) -> None:
        if not state.step:
            self.predictions.write_if_due(state)

    def on_backward_end(self, state: TrainingState) -> None:
        if state.step % self.run.settings.trace_every and state.step != state.last_step:
            return
        entry = {
            "phase": state.phase,
            "step": state.step,
            "loss": state.loss,
            "lr": self.run.schedule.get_last_lr()[0],
        }
        if state.playing:
            entry |= {**self.run.method.diagnostics(), **self.run.pseudo_label_accuracy()}
        self.run.notify("on_log", entry)

    def on_step_end(self, state: TrainingState) -> None:
        settings, method = self.run.settings, self.run.method
        last = state.step == state.last_step or self.run.convergence.reason is not None
        self.predictions.write_if_due(state)
        if state.step % settings.evaluate_every == 0 or last:
            self.run.evaluate()
        if state.playing and method.refresh_every is not None and state.step % method.refresh_every == 0 and not last:
            self.run.refresh()
        state.stop = state.stop or self.run.selection.exhausted
