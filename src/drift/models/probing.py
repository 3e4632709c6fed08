"""The last layer of a classifier, fitted to fixed representations before the layers below are trained.

A last layer that starts at random sends noise through the layers below it until it has learned something. Fitting it
first ("linear probing, then fine-tuning", Kumar et al. 2022) keeps what the encoder knows, and saves steps.
"""

import warnings

import numpy as np
import torch
from torch import nn

from drift.data.examples import Labeled, moved
from drift.models.devices import best_device, device_of
from drift.models.hidden import last_layer, representations

MOST_ROWS, MOST_TARGETS = 2000, 30_000  # that the layer is fitted to
ROWS_AT_ONCE = 64
STRENGTH = 0.1  # C of the logistic regression
ITERATIONS = 100
SMALLEST_SCALE = 1e-6
SMALLEST_WEIGHT = 0.01  # of a class in a soft label


def fit_last_layer(student: nn.Module, part: Labeled, *, seed: int, bfloat16: bool = False) -> None:
    """Fit the last layer by logistic regression on standardised representations; classes without labels stay unlikely.

    student: changed in place. part: labelled rows, of which at most `MOST_ROWS` are used, drawn by seed.
    bfloat16: compute representations in bfloat16 mixed precision.
    """
    generator = torch.Generator().manual_seed(seed)
    positions = torch.randperm(part.rows.shape[-1], generator=generator)[:MOST_ROWS].sort().values
    if part.examples.counts is None and part.examples.lengths is not None:  # rows of similar length: less padding
        lengths = torch.from_numpy(part.examples.lengths)[part.rows[positions]]
        positions = positions[lengths.argsort(stable=True)]
    found: list[np.ndarray] = []
    labels: list[np.ndarray] = []
    home, device = device_of(student), best_device()
    student.eval().to(device)
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=bfloat16):
        for batch in torch.split(positions, ROWS_AT_ONCE):
            inputs, known = part.pair(batch)
            found.append(representations(student, moved(inputs, device))[1].float().cpu().numpy())
            labels.append(known.numpy())
    student.train().to(home)
    vectors, targets = np.concatenate(found)[:MOST_TARGETS], np.concatenate(labels)[:MOST_TARGETS]
    layer = last_layer(student)
    if not isinstance(layer, nn.Linear):
        return
    rows, codes, weights = _hard(targets)
    classes = np.unique(codes)
    if len(classes) < 2:
        return
    weight, bias = _regression(vectors, rows, codes, weights)
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.fill_(float(bias.min()))  # of classes that have no label
        layer.weight[torch.from_numpy(classes)] = torch.from_numpy(weight).to(layer.weight)
        layer.bias[torch.from_numpy(classes)] = torch.from_numpy(bias).to(layer.bias)


def _hard(targets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, code and weight of each label. targets: codes `(n,)`, or distributions `(n, C)`: a label for each class."""
    if targets.ndim == 1:
        return np.arange(len(targets)), targets, np.ones(len(targets))
    rows, codes = np.nonzero(targets >= SMALLEST_WEIGHT)
    return rows, codes, targets[rows, codes]


def _regression(
    vectors: np.ndarray, rows: np.ndarray, codes: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weight `(classes, D)` and bias `(classes,)` for vectors as they are. vectors: `(n, D)`; the rest: see `_hard`."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    mean, scale = vectors.mean(0), np.maximum(vectors.std(0), SMALLEST_SCALE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is trained on
        fitted = LogisticRegression(C=STRENGTH, max_iter=ITERATIONS).fit(
            ((vectors - mean) / scale)[rows], codes, sample_weight=weights
        )
    weight, bias = fitted.coef_, fitted.intercept_
    if len(weight) == 1:  # of two classes scikit-learn has one row of weights
        weight, bias = np.concatenate([-weight / 2, weight / 2]), np.concatenate([-bias / 2, bias / 2])
    weight = weight / scale
    return weight.astype(np.float32), (bias - weight @ mean).astype(np.float32)
