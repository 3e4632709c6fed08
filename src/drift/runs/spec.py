"""A request, resolved: which task, model and method, with every setting. Pure: no file is read, nothing is computed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Self

from drift.errors import ConfigError
from drift.imports import is_outside
from drift.methods import METHODS, find_method
from drift.methods.method import Method
from drift.methods.shares import NOISE
from drift.paper.presets import PROFILES, base_settings, preset, published
from drift.runs.layers import merge
from drift.settings import nearest
from drift.tasks import TASKS, Kind, RunConfig, Task, config_type, find_task
from drift.tasks.config import without_name

Layers = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class RunSpec:
    """What a run is.

    task, kind, method: the task, the kind of model it trains, and the method that trains it.
    config: every setting.
    sources: train, unlabeled, dev and test, as paths or objects; `config.data` names them.
    """

    task: type[Task]
    kind: Kind
    method: type[Method]
    config: RunConfig
    sources: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def resolve(
        cls,
        layers: Layers,
        sources: Mapping[str, Any] | None = None,
        *,
        task: str | type[Task] = "text",
        method: str | type[Method] = "drift",
        preset_name: str | None = None,
        profile: str = "laptop",
        accelerator: bool = False,
        weak: bool | None = None,
        finetune: bool | None = None,
    ) -> Self:
        """Merge defaults, a preset and layers of settings into one configuration.

        layers: settings by group; later ones override earlier ones, and all override defaults and presets.
        sources: objects that stand for train, unlabeled, dev and test; the others are what the settings name.
        task, method: by name, or as classes from outside.
        preset_name, profile: settings of a dataset in the paper.
        accelerator: whether the machine has one; without it, encoders stay fixed by default.
        weak: whether labels are noisy; default: as the settings of the data say.
        finetune: whether encoders are fine-tuned where the settings do not say; default: with an accelerator.
        """
        if profile not in PROFILES:
            raise ConfigError(f"there is no profile {profile!r}{nearest(profile, list(PROFILES))}")
        task_type, method_type = find_task(task), find_method(method)
        method_name = _name_of(method, method_type)
        layers = [*layers, {"task": task_type.name, "method": {"name": method_name}}]
        requested: dict[str, Any] = reduce(merge, layers, {"data": {}, "model": {}})
        if not method_type.serves(task_type.offers):
            serving = [name for name, other in TASKS.items() if method_type.serves(other.offers)]
            raise ConfigError(
                f"{method_type.name} is for {' and '.join(serving) or 'other data'}, not for --task {task_type.name};"
                " drift methods lists all"
            )
        if only := _own_model(method_type, requested):
            layers = [*layers, {"model": {"name": only}}]
            requested = merge(requested, layers[-1])
        if finetune is None:  # the paper fine-tunes
            finetune = accelerator or (profile == "paper" if preset_name else task_type.finetunes)
        kind = task_type.choose_kind(requested["model"], finetune=finetune)
        weak = task_type.is_weak(requested["data"]) if weak is None else weak
        if preset_name is None:
            merged = task_type.defaults(kind, weak=weak)
        else:
            setting = kind.preset or ("weak" if weak else "semi")
            own = preset(preset_name, setting, profile, kind.name, task=task_type.name)
            merged = merge(base_settings(task_type.name, kind.name, weak=weak, profile=profile), own)
            steps = reduce(merge, layers, merged)["training"]["steps"]
            layers = [{"method": published(method_name, preset_name, steps, profile)}, *layers]
        merged = task_type.complete(reduce(merge, layers, merged), kind)
        merged = _with_head_dropout(merged, task_type, kind, method_type)
        merged["method"] = _settings_for(method_name, method_type, merged["method"], layers)
        config = config_type(task_type).read(merged, "configuration")
        if is_outside(method_name):
            settings = method_type.settings_type.read(without_name(config.method), "method").model_dump(mode="json")
            config = config.model_copy(update={"method": {"name": method_name, **settings}})
        return cls(task_type, kind, method_type, config, _sources(config, sources or {}))

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that are trained: several at once if the kind of model allows it."""
        first = self.config.training.seed
        return tuple(range(first, first + (self.config.most_seeds if self.kind.stacked else 1)))

    def described(self) -> dict[str, Any]:
        """The configuration as `config.yaml` holds it."""
        return self.config.model_dump(mode="json")

    def normalize(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """A stored configuration in today's form: renamed settings have their new names."""
        read: RunConfig = config_type(self.task).read(with_settings_of_0_1(stored), "config.yaml")
        return read.model_dump(mode="json")

    def with_config(self, config: RunConfig) -> "RunSpec":
        """The same run with other settings."""
        return replace(self, config=config)


def with_settings_of_0_1(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration that a run of 0.1 wrote, with what was not a setting then: fixed steps, and the game is kept.

    Methods that balance towards class shares trust them as all tasks did then. Other configurations stay as they are.
    """
    training, method = (stored.get(name) for name in ("training", "method"))
    names = set(training) if isinstance(training, Mapping) else set()
    if "until" in names or not {"initial_steps", "steps", "keep_checkpoints"} <= names:
        return dict(stored)
    then: dict[str, Any] = {"training": {"until": "steps", "return_to_start": False}}
    if isinstance(method, Mapping) and "prior" in method:
        then["method"] = {"prior_noise": NOISE}
    return merge(dict(stored), then)


def read_stored(config: Mapping[str, Any], where: str, task: str | type[Task] | None = None) -> RunConfig:
    """A complete configuration, such as a run's folder holds. where: for messages."""
    return config_type(find_task(task or config.get("task", "text"))).read(config, where)


def _name_of(method: str | type[Method], method_type: type[Method]) -> str:
    """What the configuration calls a method: its name, or where the class of an outside one is."""
    if isinstance(method, str):
        return method
    if METHODS.get(method_type.name) is method_type:
        return method_type.name
    return f"{method_type.__module__}:{method_type.__qualname__}"


def _own_model(method: type[Method], requested: Mapping[str, Any]) -> str | None:
    """The model that the method is made for, if it is made for only one."""
    name = requested["model"].get("name")
    if method.model is not None and name not in (None, method.model):
        raise ConfigError(f"{method.name} trains {method.model}, not {name}; leave --model out or use another method")
    return method.model


def _with_head_dropout(merged: dict[str, Any], task: type[Task], kind: Kind, method: type[Method]) -> dict[str, Any]:
    """Dropout before stacked heads, which have none of their own, for methods that need some."""
    dropout = task.model_settings.model_fields.get("dropout")
    if not kind.stacked or not method.head_dropout or dropout is None or dropout.default is not None:
        return merged
    return merge({"model": {"dropout": method.head_dropout}}, merged)


def _settings_for(name: str, method: type[Method], settings: Mapping[str, Any], layers: Layers) -> dict[str, Any]:
    """The settings that this method has. Of the defaults, which are DRIFT's, it takes those it knows and inherits.

    What the user gave to this method is kept even if it is unknown, so that it is refused with a message. Settings of a
    layer that names another method were meant for that one.
    """
    fields = method.settings_type
    known = {*fields.model_fields, *fields.renamed, "name"}
    given: set[str] = set()
    for layer in layers:
        own = layer.get("method", {})
        given = set() if own.get("name", name) != name else given | set(own)
    taken = known if method.inherited is None else known & {*method.inherited, "name"}
    return {key: value for key, value in settings.items() if key in taken | given}


def _sources(config: RunConfig, objects: Mapping[str, Any]) -> dict[str, Any]:
    named: dict[str, Any] = {part: getattr(config.data, part, None) for part in ("train", "unlabeled", "dev", "test")}
    for several in ("labels", "add"):
        if tables := list(getattr(config.data, several, ())):
            named[several] = tables
    return {**named, **{part: source for part, source in objects.items() if source is not None}}
