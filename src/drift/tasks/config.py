"""The settings of a run, in groups: data, model, method and training."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, create_model, field_validator

from drift.errors import ConfigError
from drift.imports import is_outside
from drift.methods import find_method
from drift.settings import Settings
from drift.training.settings import TrainingSettings

if TYPE_CHECKING:
    from drift.tasks.base import Task


SEEDS = 10  # that are trained at once, unless the settings or the size of the data say otherwise


class RunConfig(Settings):
    """All settings of a run. `data` and `model` are settings of the task; `method` holds its name and its settings."""

    task: str
    data: Any
    model: Any
    method: dict[str, Any] = Field(default_factory=lambda: {"name": "drift"}, validate_default=True)
    training: TrainingSettings = TrainingSettings()
    seeds: Annotated[int, Field(ge=1, le=1000)] | Literal["auto"] = Field(
        "auto",
        description="Seeds that are trained at once, where the model allows it. auto: 10, or fewer where there are very"
        " many classes, or nodes.",
    )

    @field_validator("method")
    @classmethod
    def _complete(cls, value: dict[str, Any]) -> dict[str, Any]:
        """Validate the settings of a built-in method. An outside method is checked when its class is at hand."""
        name = value.get("name", "drift")
        if is_outside(str(name)):
            return value
        try:
            settings = find_method(name).settings_type.read(without_name(value), "method")
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return {"name": name, **settings.model_dump(mode="json")}

    @property
    def method_name(self) -> str:
        return str(self.method["name"])

    @property
    def most_seeds(self) -> int:
        """How many seeds are trained at once, if the data are not too large for so many."""
        return SEEDS if self.seeds == "auto" else self.seeds


@cache
def config_type(task: "type[Task]") -> type[RunConfig]:
    """The settings of runs of a task: `RunConfig` with the task's own settings of data and model."""
    return create_model(
        f"{task.__name__}Config",
        __base__=RunConfig,
        task=(str, task.name),
        data=(task.data_settings, task.data_settings()),
        model=(task.model_settings, task.model_settings()),
    )


def without_name(method: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a method without its name."""
    return {key: value for key, value in method.items() if key != "name"}
