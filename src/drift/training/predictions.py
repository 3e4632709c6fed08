"""Predictions of every training row at chosen steps, as files."""

from typing import TYPE_CHECKING

import torch

from drift.data.labels import UNLABELED
from drift.training.callbacks import TrainingState
from drift.training.evaluation import predict
from drift.training.trace import write_predictions

if TYPE_CHECKING:
    from drift.training.trainer import Trainer

PREDICTIONS = "predictions"  # folder inside a run's folder


class PredictionWriter:
    """Writes the predictions of all rows after the steps of the second phase named by `training.predictions_at`."""

    def __init__(self, run: "Trainer") -> None:
        self.run = run

    def write_if_due(self, state: TrainingState) -> None:
        """Write them if this step was asked for. Every process takes part in predicting; the first one writes."""
        run = self.run
        if not (state.playing and state.step in run.settings.predictions_at):
            return
        part = run.data.unlabeled or run.data.labeled
        stacked = part.rows.dim() > 1
        rows = torch.arange(len(part.examples)) if stacked else part.rows
        probabilities = predict(run.method, part.examples, rows, run.machine, trials=run.trials)
        if run.folder is None or run.machine.process != 0:
            return
        counts = part.examples.counts
        targets = rows if counts is None else rows.repeat_interleave(torch.from_numpy(counts[rows]))
        gold = None if run.data.unlabeled is None else run.data.unlabeled.first_gold(part.rows.shape[-1])
        if gold is not None and stacked:  # the labelled rows of a trial are not among its unlabelled ones
            gold = torch.full((len(gold), len(rows)), UNLABELED).scatter(-1, part.rows, gold)
        write_predictions(
            run.folder.path / PREDICTIONS,
            state.step,
            targets.numpy(),
            probabilities.numpy(),
            None if gold is None else gold.numpy(),
        )
