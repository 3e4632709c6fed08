"""`drift.fit` and `drift.plan`: from a table and a few options to a trained model, or to a plan of the run."""

import warnings
from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from drift.methods.method import Method
from drift.runs.request import config_of_run, request, stored_config
from drift.runs.result import Run
from drift.runs.run import plan_run, run
from drift.runs.spec import RunSpec
from drift.settings import nearest
from drift.tasks import Task
from drift.training.callbacks import Callback
from drift.training.plan import Plan

# Parameters of `fit` that say how a run is executed, not what it is.
EXECUTION = {"from_run", "out", "callbacks", "resume", "dry_run", "onnx", "quiet"}


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
        Number of seeds to train at once, where the model allows it. The default is lower with very many classes, or
        nodes.
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
    spec = spec_of(dict(locals()))
    if dry_run:
        warnings.warn("fit(dry_run=True) is deprecated; use drift.plan(...)", FutureWarning, stacklevel=2)
        return plan_run(spec, quiet=quiet)  # type: ignore[return-value]
    return run(spec, out, resume=resume, onnx=onnx, quiet=quiet, callbacks=callbacks)


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
    return plan_run(spec_of({"train": train, **options}), quiet=quiet)


def spec_of(parameters: Mapping[str, Any]) -> RunSpec:
    """The spec of a run with these parameters of `fit`; those that were left out have their defaults."""
    known = list(signature(fit).parameters)
    if unknown := [name for name in parameters if name not in known]:
        raise TypeError(f"drift.fit has no parameter {unknown[0]!r}{nearest(unknown[0], known)}")
    asked = {name: value for name, value in parameters.items() if name not in EXECUTION}
    if parameters.get("from_run") is not None:
        asked["config"] = config_of_run(parameters["from_run"], parameters)
    elif asked.get("train") is None and asked.get("config") is None:
        asked["config"] = stored_config(parameters.get("out"), resume=parameters.get("resume", False))
    return request(**asked)
