"""The last layer of a classifier, fitted to fixed representations before the layers below are trained.

A last layer that starts at random sends noise through the layers below it until it has learned something. Fitting it
first ("linear probing, then fine-tuning", Kumar et al. 2022) keeps what the encoder knows, and saves steps.
"""

import warnings

import numpy as np
import torch
from torch import nn

from drift.data.examples import Labeled, moved
from drift.models.devices import device_of
from drift.models.hidden import last_layer, representations

MOST_ROWS, MOST_TARGETS = 2000, 30_000  # that the layer is fitted to
ROWS_AT_ONCE = 64
STRENGTH = 0.1  # C of the logistic regression
ITERATIONS = 100
SMALLEST_SCALE = 1e-6


def fit_last_layer(student: nn.Module, part: Labeled, *, seed: int) -> None:
    """Fit the last layer by logistic regression on standardised representations; classes without labels stay unlikely.

    student: changed in place. part: labelled rows, of which at most `MOST_ROWS` are used, drawn by seed.
    """
    generator = torch.Generator().manual_seed(seed)
    positions = torch.randperm(part.rows.shape[-1], generator=generator)[:MOST_ROWS].sort().values
    found: list[np.ndarray] = []
    labels: list[np.ndarray] = []
    device = device_of(student)
    student.eval()
    with torch.inference_mode():
        for batch in torch.split(positions, ROWS_AT_ONCE):
            inputs, codes = part.pair(batch)
            found.append(representations(student, moved(inputs, device))[1].float().cpu().numpy())
            labels.append(codes.numpy())
    student.train()
    vectors, codes_of = np.concatenate(found)[:MOST_TARGETS], np.concatenate(labels)[:MOST_TARGETS]
    layer, classes = last_layer(student), np.unique(codes_of)
    if len(classes) < 2 or not isinstance(layer, nn.Linear):
        return
    weight, bias = _regression(vectors, codes_of, len(classes))
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.fill_(float(bias.min()))  # of classes that have no label
        layer.weight[torch.from_numpy(classes)] = torch.from_numpy(weight).to(layer.weight)
        layer.bias[torch.from_numpy(classes)] = torch.from_numpy(bias).to(layer.bias)


def _regression(vectors: np.ndarray, codes: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Weight `(classes, D)` and bias `(classes,)` for vectors as they are. vectors: `(n, D)`; codes: `(n,)`."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    mean, scale = vectors.mean(0), np.maximum(vectors.std(0), SMALLEST_SCALE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is trained on
        fitted = LogisticRegression(C=STRENGTH, max_iter=ITERATIONS).fit((vectors - mean) / scale, codes)
    weight, bias = fitted.coef_, fitted.intercept_
    if classes == 2:  # scikit-learn has one row of weights then
        weight, bias = np.concatenate([-weight / 2, weight / 2]), np.concatenate([-bias / 2, bias / 2])
    weight = weight / scale
    return weight.astype(np.float32), (bias - weight @ mean).astype(np.float32)
