"""What a search of settings looks for, and where."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from drift.methods import METHODS
from drift.runs.config import RunConfig, config_of, merge

# Settings of methods with a `coupling` that do nothing while it is "detached".
OF_COUPLING = {"uda": ("alpha",), "mixtext": ("alpha",), "uast": ("alpha", "tau")}


@dataclass(frozen=True)
class Searched:
    """A setting and where it is looked for. from_one: what is drawn is its distance from 1."""

    group: str
    name: str
    low: float
    high: float
    log: bool = False
    from_one: bool = False

    @property
    def path(self) -> str:
        return f"{self.group}.{self.name}"

    def setting(self, drawn: float) -> float:
        value = float(f"{drawn:.3g}")  # further digits mean nothing
        return round(1 - value, 6) if self.from_one else value

    def usual(self, config: RunConfig) -> float | None:
        """What the configuration has, as it would be drawn; None if it lies outside."""
        value = config.model_dump()[self.group][self.name]
        drawn = 1 - value if self.from_one else value
        return drawn if self.low <= drawn <= self.high else None


def search_space(config: RunConfig) -> list[Searched]:
    """What is searched: α and τ where the method uses them, and the learning rate, ten times up and down."""
    method, training, settings = METHODS[config.method_name], config.training, config.method_settings()
    own = [
        Searched("method", "alpha", 0.001, 0.5, log=True, from_one=True),  # α from .5, hasty, to .999, slow
        Searched("method", "tau", 0.1, 1.0),
    ]
    idle = OF_COUPLING[method.name] if getattr(settings, "coupling", None) == "detached" else ()
    first_alone = not method.has_second_phase and training.initial_learning_rate is not None
    rate = "initial_learning_rate" if first_alone else "learning_rate"
    usual = getattr(training, rate)
    found = [each for each in own if each.name in method.settings_type.model_fields and each.name not in idle]
    return [*found, Searched("training", rate, usual / 10, usual * 10, log=True)]


def with_settings(config: RunConfig, space: Sequence[Searched], drawn: Mapping[str, float]) -> RunConfig:
    """The configuration with what was drawn in place of its own."""
    changed = config.model_dump(mode="json")
    for each in space:
        changed = merge(changed, {each.group: {each.name: each.setting(drawn[each.path])}})
    return config_of(changed, "configuration")
