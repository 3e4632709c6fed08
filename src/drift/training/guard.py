"""Stop before a bad step is taken: a loss that is not a number, or that has exploded."""

import math
from typing import Any

from torch import Tensor

from drift.data.examples import Batch
from drift.errors import StateError
from drift.training.callbacks import Callback, TrainingState
from drift.training.checkpoints import CHECKPOINTS
from drift.training.devices import SingleProcess
from drift.training.run_folder import DIVERGED, RunFolder

EXPLODED = 100.0  # times 1 + the running average
LISTED = 8  # row numbers in a message; all of them go to the file


class Guard(Callback):
    """Ends a run whose loss is not finite or has exploded, before the step is taken.

    average: running average of the losses of this phase; None before the first.
    """

    def __init__(self, machine: SingleProcess | None = None, folder: RunFolder | None = None) -> None:
        self.machine, self.folder = machine or SingleProcess(), folder
        self.average: float | None = None

    def fault(self, loss: float) -> str | None:
        """What is wrong with this loss. None if nothing is: the loss then counts towards the average."""
        if not math.isfinite(loss):
            return f"the loss is {loss}"
        if self.average is not None and loss > EXPLODED * (1.0 + self.average):
            return f"the loss has exploded: {loss:.4g}, where it was {self.average:.4g} on average"
        self.average = loss if self.average is None else 0.9 * self.average + 0.1 * loss
        return None

    def on_backward_end(self, state: TrainingState) -> None:
        # The loss is a mean over processes, so either all of them stop or none.
        if (fault := self.fault(state.loss)) is None:
            return
        by_process = self.machine.gather(batch_rows(list(state.batches)))
        rows = {name: [row for own in by_process for row in own[name]] for name in by_process[0]}
        checkpoint = "no checkpoint was written yet"
        if self.folder is not None:
            newest = next(iter(sorted((self.folder.path / CHECKPOINTS).glob("step-*"), reverse=True)), None)
            checkpoint = f"the last good checkpoint is {newest}" if newest else checkpoint
            if self.machine.process == 0:
                report = {"phase": state.phase, "step": state.step, "fault": fault, "rows": rows}
                self.folder.write_json(DIVERGED, report)
        raise StateError(
            f"{fault} at step {state.step} of the {state.phase} phase, on {list_rows(rows)}; {checkpoint};"
            " lower learning_rate, or set clip"
        )


def batch_rows(batches: list[Batch]) -> dict[str, list[Any]]:
    """Row numbers of a step's batches: "labeled" and "unlabeled"."""

    def collect(parts: list[Tensor | None]) -> list[Any]:
        return [row for part in parts if part is not None for row in part.flatten().tolist()]

    return {
        "labeled": collect([batch.labeled_rows for batch in batches]),
        "unlabeled": collect([batch.unlabeled_rows for batch in batches]),
    }


def list_rows(rows: dict[str, list[Any]]) -> str:
    """The first row numbers of each part, for a message."""
    parts = []
    for name, numbers in rows.items():
        if numbers:
            listed = ", ".join(str(number) for number in numbers[:LISTED])
            more = f" and {len(numbers) - LISTED} more" if len(numbers) > LISTED else ""
            parts.append(f"{name} rows {listed}{more}")
    return "; ".join(parts)
