"""`drift.fit` and `drift.plan`: from a table and a few options to a trained model, or to a plan of the run."""

import warnings
from collections.abc import Mapping, Sequence
from functools import reduce
from inspect import signature
from pathlib import Path
from typing import Any

import torch

from drift.data.tables import is_in_memory, source_name
from drift.errors import ConfigError
from drift.imports import is_outside
from drift.methods.method import Method
from drift.runs.layers import check_groups, merge, nested, only_given, read_config
from drift.runs.result import Run
from drift.runs.run import plan_run, run
from drift.runs.spec import RunSpec, with_settings_of_0_1
from drift.settings import nearest
from drift.tasks import TASKS, Task, find_task
from drift.tasks.settings import TableSettings
from drift.training.callbacks import Callback
from drift.training.plan import Plan
from drift.training.run_folder import RunFolder
from drift.weak.class_names import class_phrases


def fit(
    train: Any = None,
    *,
    out: str | Path | None = None,
    unlabeled: Any = None,
    labels: Any = None,
    add: Any = None,
    from_run: str | Path | None = None,
    dev: Any = None,
    test: Any = None,
    split: str | None = None,
    task: str | type[Task] | None = None,
    edges: str | Path | None = None,
    text: str | None = None,
    tokens: str | None = None,
    label: str | None = None,
    weak: str | Sequence[str] | None = None,
    rules: Any = None,
    classes: Any = None,
    gold: str | None = None,
    encoding: str | None = None,
    labels_per_class: int | None = None,
    labels_are: str | None = None,
    model: str | None = None,
    finetune: bool | None = None,
    precision: str | None = None,
    minutes: float | None = None,
    method: str | type[Method] | None = None,
    seed: int | None = None,
    seeds: int | None = None,
    preset: str | None = None,
    profile: str = "laptop",
    config: str | Path | Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    callbacks: Sequence[Callback] = (),
    resume: bool = False,
    dry_run: bool = False,
    self_contained: bool | None = None,
    onnx: bool | None = None,
    quiet: bool = False,
) -> Run:
    """Train a classifier and measure how good it is.

    Parameters
    ----------
    train : path, DataFrame, Dataset or graph, default=None
        Training data. Tables are CSV, TSV, JSON lines (each also gzipped) or Parquet, for tokens also CoNLL columns; a
        row with a blank label is unlabelled. For nodes: the name of a known graph, a file, a PyG `Data`, or a table of
        nodes with `edges`. May be left out if `config` names it, or with `resume`.
    out : path, default=None
        Folder of the run. Without one, nothing is written.
    unlabeled, dev, test : as train, default=None
        More unlabelled rows; validation rows for model selection, which count toward the label budget; test rows, which
        are scored once, at the end.
    labels : path, DataFrame or list of these, default=None
        Labels of rows of `train` or `unlabeled`, such as a table from `drift.suggest` that was filled in. They are
        matched by row number and content; for nodes by the name of the node.
    add : path, DataFrame or list of these, default=None
        Tables of texts with further rows and their labels, which may be of new classes. A blank label is unlabelled.
    from_run : path, default=None
        Folder of a run whose data and settings are used again; other parameters override them, and `labels` and `add`
        come on top of what it had.
    split : str, default=None
        Column of `train` that says train, dev or test; one called split is recognised, "" means that there is none.
    task : {"text", "tokens", "nodes"} or class, default="text"
        One class per text, one tag per word, one class per node; or a task of your own.
    edges : path, default=None
        Table of edges, for a table of nodes.
    text, tokens, label : str, default=None
        Names of columns; obvious ones are recognised.
    weak : str or sequence of str, default=None
        Columns with noisy labels: "votes", "gpt=gpt_confidence", or "p_*" for one column of probabilities per class.
        A cell is a class, "not CLASS", probabilities ({"a": 0.7, "b": 0.3}), or blank.
    rules : path or RuleSet, default=None
        Rules that give noisy labels.
    classes : str, sequence, mapping or path, default=None
        Names of the classes: a source of noisy labels, which needs no label at all. "sports, politics", a list, a
        mapping from name to a description or to example phrases, or a YAML file with one of them.
    gold : {"auto", "train", "measure"}, default="auto"
        Beside noisy labels, labels of `train` are trained on, or only measure. By default they are trained on beside
        class names, unless every row has one.
    encoding : str, default="utf-8"
        Encoding of text files.
    labels_per_class : int, default=None
        Keep this many labels per class (simulates a small budget).
    labels_are : {"random", "per-class", "suggested"}, default=None
        How rows were chosen for labelling. Counts of random labels are evidence of class shares. By default, the counts
        themselves decide; with `labels`, rows were suggested.
    model : str, default="default"
        An encoder by name or folder, "default", "textcnn" or "vampire"; for nodes "gcn", "grand" or `file.py:function`.
    finetune : bool, default=None
        Fine-tune the encoder: all layers on a machine with a GPU, and otherwise the upper third (`model.train_layers`).
        By default, encoders are fine-tuned for tokens and on machines with a GPU.
    precision : {"auto", "float32", "bfloat16"}, default="auto"
        Number format of encoders. By default bfloat16 where the processor computes it, in mixed precision if the
        encoder is fine-tuned.
    minutes : float, default=None
        Time limit of preparing the data and training, but not of scoring. The number of steps is planned to fit.
    method : str or class, default="drift"
        One of `drift methods`, `file.py:Class`, or a subclass of `drift.methods.method.Method`.
    seed : int, default=0
        Random seed of the run; the first of several.
    seeds : int, default=10
        Number of seeds to train at once, where the model allows it.
    preset, profile : str, default=None, "laptop"
        Settings of a dataset in the paper; the profile is "paper" or "laptop".
    config : path or mapping, default=None
        Settings of the run; `config.yaml` of another run is such a file.
    settings : mapping, default=None
        More settings, which override all others: {"training": {"steps": 300}} or {"training.steps": 300}.
    callbacks : sequence of drift.Callback, default=()
        Called during training.
    resume : bool, default=False
        Continue the run in `out`.
    dry_run : bool, default=False
        Deprecated: use `drift.plan`.
    self_contained : bool, default=False
        Store a fixed encoder in the run's folder, so that the folder can be moved to another machine. By default the
        folder has its name and checksum.
    onnx : bool, default=None
        Also write the model as ONNX, if its kind allows it. By default it is written unless the folder only refers to
        its encoder.
    quiet : bool, default=False
        Show no progress bars.

    Returns
    -------
    Run
        The trained model, with its record.
    """
    arguments = dict(locals())
    if from_run is not None:
        arguments["config"] = config_of_run(from_run, arguments)
    elif train is None and config is None:
        arguments["config"] = stored_config(out, resume=resume)
    spec = request(**{name: value for name, value in arguments.items() if name not in EXECUTION})
    if dry_run:
        warnings.warn("fit(dry_run=True) is deprecated; use drift.plan(...)", FutureWarning, stacklevel=2)
        return plan_run(spec, quiet=quiet)  # type: ignore[return-value]
    return run(spec, out, resume=resume, onnx=onnx, quiet=quiet, callbacks=callbacks)


# Options that may name Python code, and where a configuration has them: group and key.
CODE = {"task": ("task", None), "method": ("method", "name"), "model": ("model", "name"), "rules": ("data", "rules")}
MIXED = {"float32": "no", "bfloat16": "bf16"}  # training.precision for each precision of encoders; others are the same
COLUMNS = ("text", "tokens", "label", "split", "encoding", "gold", "labels_per_class", "labels_are")  # of data
# Parameters of `fit` that are not the request.
EXECUTION = {"from_run", "out", "callbacks", "resume", "dry_run", "onnx", "quiet"}


def plan(train: Any = None, *, quiet: bool = False, **options: Any) -> Plan:
    """Time a few steps of a run and estimate the rest; nothing is written.

    Parameters
    ----------
    train, **options
        As for `fit`. With `resume=True`, the configuration is read from `out`.
    quiet : bool, default=False
        Show no progress bars.

    Returns
    -------
    Plan
        Steps, seconds, memory and label budget; `plan.lines()` is for a reader.
    """
    if options.get("from_run") is not None:
        options["config"] = config_of_run(options["from_run"], {**options, "train": train})
    elif train is None and options.get("config") is None:
        options["config"] = stored_config(options.get("out"), resume=options.get("resume", False))
    spec = request(train, **{name: value for name, value in options.items() if name not in EXECUTION})
    return plan_run(spec, quiet=quiet)


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
    known = list(signature(fit).parameters)
    if unknown := [name for name in options if name not in known]:
        raise TypeError(f"drift.fit has no parameter {unknown[0]!r}{nearest(unknown[0], known)}")
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
