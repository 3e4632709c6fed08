"""Train-on-dev: trains on the labels of dev only, and uses no labels for model selection."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from drift.errors import ConfigError
from tests.runs.small import same_weights, small_encoder, small_fit, small_table

OPTIONS: dict[str, Any] = {"text": "body", "label": "topic", "method": "train-on-dev"}


def table(rows: int, **options: Any) -> pd.DataFrame:
    return pd.DataFrame(small_table(rows, **options))


def test_it_learns_from_dev_alone_and_counts_its_labels(tmp_path: Path) -> None:
    encoder, train = small_encoder(tmp_path / "encoder"), table(40)
    options = {**OPTIONS, "dev": table(30, seed=1), "test": table(20, seed=2)}
    run = small_fit(train, encoder, {"initial_steps": 60}, **options)
    assert run.metrics["label_budget"] == {"train": 30, "dev": 0, "total": 30}
    assert "dev" not in run.metrics
    assert run.metrics["test"]["scores"][0]["accuracy"] > 0.9
    swapped = train.assign(topic=train["topic"].map({"money": "sport", "sport": "money"}))
    assert same_weights(run, small_fit(swapped, encoder, {"initial_steps": 60}, **options))


def test_without_dev_there_is_nothing_to_learn_from(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--dev"):
        small_fit(table(40), small_encoder(tmp_path / "encoder"), **OPTIONS)
