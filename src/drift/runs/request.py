"""What a run is asked for: from the parameters of `drift.fit`, and a configuration, to a `RunSpec`."""

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import torch

from drift.data.tables import is_in_memory, source_name
from drift.errors import ConfigError
from drift.imports import is_outside
from drift.methods.method import Method
from drift.runs.layers import check_groups, merge, nested, only_given, read_config
from drift.runs.spec import RunSpec, with_settings_of_0_1
from drift.tasks import TASKS, Task, find_task
from drift.tasks.settings import TableSettings
from drift.training.run_folder import RunFolder
from drift.weak.class_names import class_phrases

# Options that may name Python code, and where a configuration has them: group and key.
CODE = {"task": ("task", None), "method": ("method", "name"), "model": ("model", "name"), "rules": ("data", "rules")}
MIXED = {"float32": "no", "bfloat16": "bf16"}  # training.precision for each precision of encoders; others are the same
COLUMNS = ("text", "tokens", "label", "split", "encoding", "gold", "labels_per_class", "labels_are")  # of data


def stored_config(out: str | Path | None, *, resume: bool) -> dict[str, Any]:
    """The configuration in the folder of a run to resume, which names everything; for a request without data."""
    if out is None or not resume:
        raise ConfigError("no table was given; name one, or use --resume with the folder of a run")
    return RunFolder(out).config()


def config_of_run(run: str | Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of a finished run, for another one on the same data. given: parameters of `fit`."""
    if given.get("config") is not None or given.get("resume"):
        raise ConfigError("from_run (--from) repeats a run with its own settings; leave out config and resume")
    stored = RunFolder(run).config()
    data = dict(_data_settings(stored))
    for part in ("train", "unlabeled", "dev", "test"):
        if given.get(part) is None and is_in_memory(str(data.get(part))):
            raise ConfigError(f"{run} was trained on {data[part]}, which is not in a file; give {part} again")
    for several in ("labels", "add"):
        lost = [name for name in _tables_of(data, several) if is_in_memory(name)]
        if lost and given.get(several) is not None:
            raise ConfigError(
                f"{run} used {several} of {lost[0]}, which is not in a file; give them again, all in a list"
            )
    return {**stored, "data": data}


def _data_settings(stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """The group `data` of a configuration; none if there is another value in its place, which is reported later."""
    data = stored.get("data")
    return data if isinstance(data, Mapping) else {}


def _tables_of(data: Mapping[str, Any], setting: str) -> list[str]:
    """The tables that a configuration names in a list; none if it has another value, which is reported later."""
    names = data.get(setting)
    return list(names) if isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names) else []


def _with_stored(tables: Any, stored: Sequence[str]) -> list[Any] | None:
    """All tables of one sort: those of the configuration, then new ones. None without any."""
    new = [] if tables is None else list(tables) if isinstance(tables, (list, tuple)) else [tables]
    names = [source_name(source) for source in new]
    return [*(name for name in stored if name not in names), *new] or None


def request(
    train: Any = None,
    *,
    task: str | type[Task] | None = None,
    method: str | type[Method] | None = None,
    config: str | Path | Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    preset: str | None = None,
    profile: str = "laptop",
    **options: Any,
) -> RunSpec:
    """The spec that these parameters of `fit` ask for."""
    stored = with_settings_of_0_1(read_config(config) if isinstance(config, (str, Path)) else nested(config or {}))
    before = _data_settings(stored)
    for several in ("labels", "add"):
        options[several] = _with_stored(options.get(several), _tables_of(before, several))
    if (options["labels"] or options["add"]) and not before.get("labels_are"):
        # Rows that were suggested, or are of a new class, are no random sample.
        options["labels_are"] = options.get("labels_are") or ("suggested" if options["labels"] else "per-class")
    given = _layer(train, task=task, method=method, **options)
    layers = [check_groups(layer) for layer in (stored, given, nested(settings or {}))]
    requested: dict[str, Any] = reduce(merge, layers, {"data": {}, "model": {}, "method": {}, "training": {}})
    _check_code(stored, layers[-1], {"task": task, "method": method, **options})
    task_type = find_task(task or requested.get("task", "text"))
    chosen = method if isinstance(method, type) else requested.get("method", {}).get("name") or "drift"
    _check_options(task_type, given["data"])
    layers.append({"data": _recognised(task_type, requested["data"], {"train": train, **options})})
    spec = RunSpec.resolve(
        [{key: value for key, value in layer.items() if key != "task"} for layer in layers],
        {
            "train": train,
            **{part: options.get(part) for part in ("unlabeled", "labels", "add", "dev", "test", "rules")},
        },
        task=task_type,
        method=chosen,
        preset_name=preset,
        profile=profile,
        accelerator=torch.accelerator.is_available(),
    )
    if not spec.config.data.train:
        raise ConfigError("no table was given; name one, here or as data.train in the configuration")
    return spec


def _layer(train: Any, *, task: Any, method: Any, **options: Any) -> dict[str, Any]:
    """Parameters of `fit` as settings by group."""
    sources = {"train": train, **{part: options.get(part) for part in ("unlabeled", "dev", "test")}}
    data: dict[str, Any] = {part: source_name(source) for part, source in sources.items() if source is not None}
    data |= {name: options.get(name) for name in COLUMNS}
    for several in ("labels", "add"):
        data[several] = options[several] and [source_name(source) for source in options[several]]
    data |= {name: _described(options.get(name)) for name in ("rules", "edges")}
    data |= _sources(options)
    finetune, precision = options.get("finetune"), options.get("precision")
    return {
        "data": only_given(data),
        "model": only_given(
            {
                "name": options.get("model"),
                "frozen": None if finetune is None else not finetune,
                "precision": precision,
                "self_contained": options.get("self_contained"),
            }
        ),
        "method": only_given({"name": method if isinstance(method, str) else None}),
        "training": only_given(
            {
                "seed": options.get("seed"),
                "minutes": options.get("minutes"),
                "precision": None if precision is None else MIXED.get(precision, precision),
            }
        ),
        **only_given({"seeds": options.get("seeds"), "task": task if isinstance(task, str) else None}),
    }


def _sources(options: Mapping[str, Any]) -> dict[str, Any]:
    """Settings for columns of noisy labels, and for class names."""
    weak, classes = options.get("weak"), options.get("classes")
    columns = [weak] if isinstance(weak, str) else list(weak or ())
    return {
        "weak": columns[0] if columns else None,
        "more_weak": tuple(columns[1:]) or None,
        "classes": None if classes is None else {name: list(each) for name, each in class_phrases(classes).items()},
    }


def _recognised(task: type[Task], data: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that follow from the columns of the training table. given: tables as paths or objects."""
    sources = {part: data.get(part) if given.get(part) is None else given[part] for part in ("train", "dev", "test")}
    if not issubclass(task.data_settings, TableSettings) or sources["train"] is None:
        return {}
    return task.data_settings.recognise(data, sources)


def _described(source: Any) -> str | None:
    """A path as text; an object by the name of its type."""
    return None if source is None else str(source) if isinstance(source, (str, Path)) else f"a {type(source).__name__}"


def _check_code(stored: Mapping[str, Any], settings: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Refuse code that only a configuration file or a run's folder names: it may be somebody else's."""
    for option, (group, key) in CODE.items():
        name, again = (
            layer.get(group, {}) if key is None else layer.get(group, {}).get(key) for layer in (stored, settings)
        )
        is_code = isinstance(name, str) and (name.endswith(".py") if option == "rules" else is_outside(name))
        if is_code and not again and options.get(option) is None:
            raise ConfigError(
                f"the configuration names {option} {name}; its code is run only if you name it: give --{option} {name}"
            )


def _check_options(task: type[Task], data: Mapping[str, Any]) -> None:
    """Refuse settings of data that are for other tasks."""
    fields = task.data_settings.model_fields
    if unfit := [name for name in data if name not in fields]:
        raise ConfigError(f"{unfit[0]} is not for --task {task.name}; {task.hint(unfit[0]) or _other_tasks(unfit[0])}")


def _other_tasks(option: str) -> str:
    return " or ".join(
        f"use --task {name}" for name, task in TASKS.items() if option in task.data_settings.model_fields
    )
