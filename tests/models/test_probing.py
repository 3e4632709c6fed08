"""The last layer is fitted to fixed representations: as scikit-learn fits it, and nothing below it changes."""

from dataclasses import replace

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from drift.data.examples import Labeled, Vectors
from drift.models.mlp import mlp
from drift.models.probing import STRENGTH, fit_last_layer

CLASSES, ROWS = 4, 120


def part(classes: int = CLASSES) -> Labeled:
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(ROWS) % classes
    x = torch.randn(ROWS, 6, generator=generator)
    x[torch.arange(ROWS), y] += 2
    return Labeled(Vectors(x), torch.arange(ROWS), y)


def network() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, CLASSES))


def test_probabilities_are_those_of_logistic_regression_on_standardised_vectors() -> None:
    module, rows = network(), part()
    below = {name: value.clone() for name, value in module[0].state_dict().items()}
    fit_last_layer(module, rows, seed=0)
    assert all(torch.equal(value, below[name]) for name, value in module[0].state_dict().items())
    with torch.inference_mode():
        hidden = module[:2](rows.examples.inputs(rows.rows)).numpy()
        fitted = module.eval()(rows.examples.inputs(rows.rows)).softmax(-1).numpy()
    scaled = (hidden - hidden.mean(0)) / hidden.std(0)
    oracle = LogisticRegression(C=STRENGTH).fit(scaled, rows.labels.numpy())
    np.testing.assert_allclose(fitted, oracle.predict_proba(scaled), atol=1e-3)


def test_two_classes_and_classes_without_labels() -> None:
    module, rows = network(), part(classes=2)
    fit_last_layer(module, rows, seed=0)
    with torch.inference_mode():
        predicted = module(rows.examples.inputs(rows.rows)).argmax(-1)
    assert (predicted == rows.labels).float().mean() > 0.8  # never one of the two classes without labels


def test_one_class_leaves_the_layer_as_it_was() -> None:
    module, rows = mlp(6, CLASSES, [8]), part(classes=1)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    fit_last_layer(module, rows, seed=0)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_soft_labels_count_as_often_as_they_say() -> None:
    module, rows = network(), part()
    soft = torch.nn.functional.one_hot(rows.labels, CLASSES).float() * 0.7 + 0.1
    fit_last_layer(module, replace(rows, soft=soft), seed=0)
    with torch.inference_mode():
        hidden = module[:2](rows.examples.inputs(rows.rows)).numpy()
        fitted = module.eval()(rows.examples.inputs(rows.rows)).softmax(-1).numpy()
    scaled = (hidden - hidden.mean(0)) / hidden.std(0)
    copies = np.repeat(np.arange(ROWS), CLASSES), np.tile(np.arange(CLASSES), ROWS)
    oracle = LogisticRegression(C=STRENGTH).fit(scaled[copies[0]], copies[1], sample_weight=soft.numpy().ravel())
    np.testing.assert_allclose(fitted, oracle.predict_proba(scaled), atol=1e-3)


def test_certain_soft_labels_are_hard_labels() -> None:
    hard, soft, rows = network(), network(), part()
    fit_last_layer(hard, rows, seed=0)
    fit_last_layer(soft, replace(rows, soft=torch.nn.functional.one_hot(rows.labels, CLASSES).float()), seed=0)
    assert all(torch.allclose(one, other) for one, other in zip(hard.parameters(), soft.parameters(), strict=True))
