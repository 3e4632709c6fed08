"""Settings are strict: every fault is told at once, on one line, with the nearest name."""

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


def told(values: dict[str, object]) -> str:
    with pytest.raises(ConfigError) as error:
        Outer.read(values, "run.yaml")
    message = str(error.value)
    assert "\n" not in message
    assert message.startswith("run.yaml: ")
    return message


def test_what_is_left_out_has_its_default_and_what_is_given_is_taken() -> None:
    assert Outer.read({}) == Outer()
    assert Outer.read({"steps": 5, "inner": {"tau": 2}}) == Outer(steps=5, inner=Inner(tau=2.0))


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    assert told({"alhpa": 0.5}) == "run.yaml: there is no 'alhpa'; did you mean 'alpha'?"
    assert told({"inner": {"taus": 1}}) == "run.yaml: there is no 'inner.taus'; did you mean 'inner.tau'?"
    assert told({"zzz": 1}) == "run.yaml: there is no 'zzz' (there are: alpha, steps, inner)"


def test_all_faults_are_told_at_once() -> None:
    message = told({"alpha": 2, "step": 1, "steps": "many", "inner": {"tau": 0}})
    assert "alpha=2: input should be less than or equal to 1" in message
    assert "there is no 'step'; did you mean 'steps'?" in message
    assert "steps='many': input should be a valid integer" in message
    assert "inner.tau=0: input should be greater than 0" in message
    assert message.count(";") == 4  # three between four faults, one before the nearest name


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_refused(value: float) -> None:
    assert "finite number" in told({"inner": {"tau": value}})


def test_settings_cannot_change() -> None:
    settings = Outer()
    with pytest.raises(ValidationError, match="frozen"):
        settings.alpha = 0.1


def test_nothing_near_lists_what_there_is_in_order() -> None:
    assert nearest("q", ["b", "A"]) == " (there are: b, A)"
    assert nearest("alpa", ["beta", "alpha"]) == "; did you mean 'alpha'?"
    assert nearest("BODY", ["Body", "topic"]) == "; did you mean 'Body'?"
