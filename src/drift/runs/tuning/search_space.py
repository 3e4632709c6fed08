"""Which settings a search tries, and in which range."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from drift.runs.layers import merge
from drift.runs.spec import RunSpec
from drift.tasks import RunConfig, config_type

# Settings of methods that have no effect while their `coupling` is "detached".
NEED_COUPLING: dict[str, tuple[str, ...]] = {
    "drift": (),
    "uda": ("alpha",),
    "mixtext": ("alpha",),
    "uast": ("alpha", "tau"),
}


@dataclass(frozen=True)
class Searched:
    """A setting and its range. from_one: the distance from 1 is drawn."""

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
        value = float(f"{drawn:.3g}")  # more digits mean nothing
        return round(1 - value, 6) if self.from_one else value

    def usual(self, config: RunConfig) -> float | None:
        """The value in the configuration, as it would be drawn; None if it is outside the range."""
        value = config.model_dump()[self.group][self.name]
        drawn = 1 - value if self.from_one else value
        return drawn if self.low <= drawn <= self.high else None


def search_space(spec: RunSpec) -> list[Searched]:
    """What is searched: α and τ if the method uses them, and the learning rate, up to ten times higher or lower."""
    method, training, settings = spec.method, spec.config.training, spec.config.method
    own = [
        Searched("method", "alpha", 0.001, 0.5, log=True, from_one=True),  # α from .5 (fast teacher) to .999 (slow)
        Searched("method", "tau", 0.1, 1.0),
    ]
    idle = NEED_COUPLING.get(method.name, ()) if settings.get("coupling") == "detached" else ()
    first_alone = not method.has_second_phase and training.initial_learning_rate is not None
    rate = "initial_learning_rate" if first_alone else "learning_rate"
    usual = getattr(training, rate)
    used = [each for each in own if each.name in method.settings_type.model_fields and each.name not in idle]
    return [*used, Searched("training", rate, usual / 10, usual * 10, log=True)]


def with_settings(spec: RunSpec, space: Sequence[Searched], drawn: Mapping[str, float]) -> RunSpec:
    """The spec with the drawn settings in place of its own."""
    changed = spec.described()
    for each in space:
        changed = merge(changed, {each.group: {each.name: each.setting(drawn[each.path])}})
    return spec.with_config(config_type(spec.task).read(changed, "configuration"))
