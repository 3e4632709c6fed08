"""The student of `DriftClassifier`: the default MLP, or the user's own module."""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from drift.core.forward import log_probabilities
from drift.errors import ConfigError
from drift.models.mlp import mlp

if TYPE_CHECKING:
    from drift.estimator.classifier import DriftClassifier

INPUT_DROPOUT, MANY_FEATURES = 0.2, 32

ModuleFactory = Callable[[int, int], nn.Module]
"""Builds a module from the number of features and the number of classes."""


def build_student(classifier: "DriftClassifier", features: int, classes: int) -> nn.Module:
    """Build the student for `features` inputs and `classes` outputs.

    A module given as `classifier.module` is copied, so that training leaves the original unchanged.
    """
    module = classifier.module
    if module is None:
        dropout, input_dropout = classifier.dropout, classifier.input_dropout
        if isinstance(input_dropout, str):  # "auto": of few features each one is needed
            input_dropout = INPUT_DROPOUT if features >= MANY_FEATURES else 0.0
        return mlp(features, classes, classifier.hidden, "relu", input_dropout=input_dropout, dropout=dropout)
    if isinstance(module, nn.Module):
        return copy.deepcopy(module)
    if not callable(module):
        raise ConfigError(f"module is {type(module).__name__}; give a torch module or a function building one")
    try:
        built = module(features, classes)
    except TypeError as error:
        raise ConfigError(f"module could not be built from (features, classes): {error}") from error
    if not isinstance(built, nn.Module):
        raise ConfigError(f"module built {type(built).__name__}; return a torch module")
    return built


def check_student(student: nn.Module, row: Tensor, classes: int) -> None:
    """Raise unless the student accepts `row`, of shape (1, features), and returns one logit per class."""
    student.eval()
    with torch.no_grad():
        logits = log_probabilities(student, row).shape[1]
    if logits != classes:
        raise ConfigError(
            f"module {type(student).__name__} returns {logits} logits per row, the labels have {classes} classes"
        )


def reference_tensor(student: nn.Module) -> Tensor:
    """A floating-point parameter of the student: inputs must have its dtype and be on its device."""
    return next((p for p in student.parameters() if p.is_floating_point()), torch.empty(0))
