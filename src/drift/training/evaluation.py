"""What a method predicts on rows it is not trained on, and how good that is."""

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
"""Scores, as shares, from probabilities `(n, C)` and class indices `(n,)`; the first is what is chosen by."""


def predict(
    method: Method, examples: Examples, rows: Tensor, machine: SingleProcess, *, trials: int | None = None
) -> Tensor:
    """Class probabilities of these rows, `(n, C)` or `(trials, n, C)`, the same on every process.

    Where more than one thing is classified in a row, n counts those, row after row.
    """

    def answer(inputs: Inputs) -> Tensor:
        return method.predict_proba(inputs if trials is None else inputs.expand(trials, *inputs.shape))

    method.student.eval()
    probabilities = answers(answer, examples, rows, machine)
    method.student.train()
    return probabilities


def answers(answer: Callable[[Inputs], Tensor], examples: Examples, rows: Tensor, machine: SingleProcess) -> Tensor:
    """What a function of inputs says of these rows, `(..., n, k)`, some at a time, the same on every process.

    Rows of like length go together, and every process does its share of the batches. rows: `(n,)`, or `(trials, n)`
    for stacked inputs.
    """
    order = torch.arange(rows.shape[-1])
    if examples.lengths is not None and rows.dim() == 1:
        order = torch.from_numpy(np.argsort(examples.lengths[rows.numpy()], kind="stable"))
    batches = list(torch.split(order, examples.at_once))
    mine = batches[machine.process :: machine.processes]
    # Every process must call the model equally often: sharded weights are gathered in each call.
    spare = -(-len(batches) // machine.processes) - len(mine)
    found = [
        answer(moved(examples.inputs(rows[..., places]), machine.device)).cpu()
        for places in (*mine, *[order[:1]] * spare)
    ]
    if machine.processes == 1:
        together, places_of = torch.cat(found, dim=-2), torch.cat(mine)
    else:
        parts = machine.gather((found[: len(mine)], mine))
        together = torch.cat([p for found, _ in parts for p in found], dim=-2)
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
    """Scores on labelled rows, one dictionary a trial."""
    probabilities = predict(method, labeled.examples, labeled.rows, machine, trials=trials).numpy()
    labels = labeled.labels.numpy()
    return [score(trial, labels) for trial in (probabilities if trials is not None else probabilities[None])]
