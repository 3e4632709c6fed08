"""Settings are strict: all errors are reported together, on one line, with the nearest name."""

from typing import ClassVar

import pytest
from pydantic import Field, ValidationError

from drift.errors import ConfigError
from drift.settings import Settings, nearest


class Inner(Settings):
    tau: float = Field(0.5, gt=0)


class Outer(Settings):
    alpha: float = Field(0.9, ge=0, le=1)
    steps: int = Field(3, ge=0)
    inner: Inner = Inner()


class Renamed(Settings):
    renamed: ClassVar[dict[str, str]] = {"epochs": "steps"}
    steps: int = Field(3, ge=0)


class WithRenamed(Settings):
    inner: Renamed = Renamed()


def message(values: dict[str, object]) -> str:
    with pytest.raises(ConfigError) as error:
        Outer.read(values, "run.yaml")
    text = str(error.value)
    assert "\n" not in text
    assert text.startswith("run.yaml: ")
    return text


def test_missing_values_take_their_default_and_given_values_are_used() -> None:
    assert Outer.read({}) == Outer()
    assert Outer.read({"steps": 5, "inner": {"tau": 2}}) == Outer(steps=5, inner=Inner(tau=2.0))


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    assert message({"alhpa": 0.5}) == "run.yaml: there is no 'alhpa'; did you mean 'alpha'?"
    assert message({"inner": {"taus": 1}}) == "run.yaml: there is no 'inner.taus'; did you mean 'inner.tau'?"
    assert message({"zzz": 1}) == "run.yaml: there is no 'zzz' (there are: alpha, steps, inner)"


def test_all_errors_are_reported_together() -> None:
    text = message({"alpha": 2, "step": 1, "steps": "many", "inner": {"tau": 0}})
    assert "alpha=2: input should be less than or equal to 1" in text
    assert "there is no 'step'; did you mean 'steps'?" in text
    assert "steps='many': input should be a valid integer" in text
    assert "inner.tau=0: input should be greater than 0" in text
    assert text.count(";") == 4  # three between four errors, one before the nearest name


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_no_finite_number_is_refused(value: float) -> None:
    assert "finite number" in message({"inner": {"tau": value}})


def test_settings_cannot_change() -> None:
    settings = Outer()
    with pytest.raises(ValidationError, match="frozen"):
        settings.alpha = 0.1


def test_without_a_similar_name_all_names_are_listed_in_order() -> None:
    assert nearest("q", ["b", "A"]) == " (there are: b, A)"
    assert nearest("alpa", ["beta", "alpha"]) == "; did you mean 'alpha'?"
    assert nearest("BODY", ["Body", "topic"]) == "; did you mean 'Body'?"


def test_a_renamed_setting_is_accepted_under_its_old_name_with_a_warning() -> None:
    with pytest.warns(FutureWarning, match="^the setting epochs is now steps; use that name$"):
        assert Renamed(epochs=5) == Renamed(steps=5)
    with pytest.warns(FutureWarning, match="epochs is now steps"):
        assert WithRenamed.read({"inner": {"epochs": 5}}).inner.steps == 5


def test_an_old_name_is_validated_and_dumped_under_the_new_one() -> None:
    with pytest.warns(FutureWarning), pytest.raises(ConfigError, match="steps=-1: input should be greater"):
        Renamed.read({"epochs": -1})
    with pytest.warns(FutureWarning):
        assert Renamed.read({"epochs": 5}).model_dump() == {"steps": 5}


def test_an_old_and_a_new_name_together_are_an_error() -> None:
    with pytest.raises(
        ConfigError, match=r"^run\.yaml: both epochs and steps, its new name, are given; give steps only"
    ):
        Renamed.read({"epochs": 5, "steps": 5}, "run.yaml")
    with pytest.raises(ConfigError, match="both epochs and steps, its new name, are given; give steps only"):
        WithRenamed.read({"inner": {"epochs": 5, "steps": 5}})
