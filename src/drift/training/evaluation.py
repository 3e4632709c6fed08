"""Predictions of a method on rows, and their scores."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from drift.core.forward import Inputs
from drift.data.batches import ranges
from drift.data.examples import Examples, Labeled, moved
from drift.methods.method import Method
from drift.training.devices import SingleProcess

Score = Callable[[np.ndarray, np.ndarray], dict[str, float]]
"""Scores between 0 and 1 from probabilities `(n, C)` and class indices `(n,)`; model selection uses the first."""


def predict(
    method: Method, examples: Examples, rows: Tensor, machine: SingleProcess, *, trials: int | None = None
) -> Tensor:
    """Class probabilities of these rows, `(n, C)` or `(trials, n, C)`, the same on every process.

    rows: `(n,)`, or `(trials, n)` for other rows in each trial.
    If a row has several targets, such as words, n counts targets, row after row.
    """

    def answer(inputs: Inputs) -> Tensor:
        same_rows = trials is not None and rows.dim() == 1
        return method.predict_proba(inputs.expand(trials, *inputs.shape) if same_rows else inputs)

    method.student.eval()
    probabilities = answers(answer, examples, rows, machine)
    method.student.train()
    return probabilities


def answers(answer: Callable[[Inputs], Tensor], examples: Examples, rows: Tensor, machine: SingleProcess) -> Tensor:
    """Apply a function of inputs to these rows in batches: `(..., n, k)`, the same on every process.

    Rows of similar length share a batch, and every process computes its share of the batches. rows: `(n,)`, or
    `(trials, n)` for stacked inputs.
    """
    order = torch.arange(rows.shape[-1])
    if examples.lengths is not None and rows.dim() == 1:
        order = torch.from_numpy(np.argsort(examples.lengths[rows.numpy()], kind="stable"))
    batches = list(torch.split(order, examples.at_once))
    mine = batches[machine.process :: machine.processes]
    # Every process must call the model equally often, because sharded weights are gathered in each call.
    extra = -(-len(batches) // machine.processes) - len(mine)
    outputs = [
        answer(moved(examples.inputs(rows[..., places]), machine.device)).cpu()
        for places in (*mine, *[order[:1]] * extra)
    ]
    if machine.processes == 1:
        together, places_of = torch.cat(outputs, dim=-2), torch.cat(mine)
    else:
        parts = machine.gather((outputs[: len(mine)], mine))
        together = torch.cat([p for own, _ in parts for p in own], dim=-2)
        places_of = torch.cat([p for _, places in parts for p in places])
    if examples.counts is not None:
        counts = examples.counts[rows.numpy()]
        starts = np.cumsum(counts) - counts
        places_of = torch.from_numpy(ranges(starts[places_of.numpy()], counts[places_of.numpy()]))
    ordered = torch.empty_like(together)
    ordered[..., places_of, :] = together
    return ordered


def evaluate(
    method: Method, labeled: Labeled, score: Score, machine: SingleProcess, *, trials: int | None = None
) -> list[dict[str, float]]:
    """Scores on labelled rows, one dictionary per trial."""
    probabilities = predict(method, labeled.examples, labeled.rows, machine, trials=trials).numpy()
    labels = labeled.labels.numpy()
    return [score(trial, labels) for trial in (probabilities if trials is not None else probabilities[None])]
