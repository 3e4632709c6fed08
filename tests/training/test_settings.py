"""The training settings: explained, checked, and whole again after a file."""

import pytest

from drift.errors import ConfigError
from drift.training.settings import TrainingSettings


@pytest.mark.parametrize("name", TrainingSettings.model_fields)
def test_every_setting_is_explained(name: str) -> None:
    description = TrainingSettings.model_fields[name].description
    assert description
    assert "\n" not in description


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"batch_size": 0}, "batch_size=0"),
        ({"learning_rate": 0.0}, "learning_rate=0.0"),
        ({"momentum": 1.0}, "momentum=1.0"),
        ({"clip": 0.0}, "clip=0.0"),
        ({"optimizer": "lion"}, "optimizer='lion': input should be 'adamw', 'adam' or 'sgd'"),
        ({"trackers": ["excel"]}, "trackers.0='excel'"),
        ({"exact_accumulation": True}, "exact_accumulation needs accumulation of 2 or more"),
        ({"learning_rat": 0.1}, "did you mean 'learning_rate'?"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(values: dict[str, object], fault: str) -> None:
    with pytest.raises(ConfigError) as told:
        TrainingSettings.read(values)
    assert fault in str(told.value)
    assert "\n" not in str(told.value)


def test_settings_survive_a_round_trip() -> None:
    settings = TrainingSettings(seed=3, predictions_at=(0, 100), trackers=(), clip=1.0)
    assert TrainingSettings.model_validate_json(settings.model_dump_json()) == settings
