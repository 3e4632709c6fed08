"""A classifier that trains in a moment, with the settings of the paper where the defaults differ."""

from typing import Any

from drift import DriftClassifier

PAPER: dict[str, Any] = {
    "dropout": 0.5,
    "input_dropout": 0.2,
    "prior": None,
    "start": "labels",
    "learning_rate": 1e-3,
    "standardize": True,
}


def short(**settings: Any) -> DriftClassifier:
    return DriftClassifier(
        **{**PAPER, "hidden": (16,), "initial_steps": 20, "steps": 10, "random_state": 0, **settings}
    )
