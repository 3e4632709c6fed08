"""`drift fit`: from a table to a classifier."""

import os
from pathlib import Path
from typing import Any

import typer


def fit(
    train: str | None = typer.Argument(
        None,
        metavar="TABLE",
        help="CSV, TSV, JSON lines (also .gz), Parquet, or CoNLL columns; not needed with --resume or --config.",
    ),
    task: str | None = typer.Option(
        None,
        help="text: one class per text (default); tokens: one tag per word; nodes: one class per node of a graph;"
        " or file.py:Class.",
    ),
    out: Path = typer.Option(..., "--out", "-o", file_okay=False, help="Folder of the run; it must be new or empty."),
    graph: str | None = typer.Option(
        None, help="Cora, CiteSeer, PubMed, an .npz or .pt file, or a table of nodes; for --task nodes."
    ),
    edges: Path | None = typer.Option(None, help="Table of edges, if the graph is a table of nodes."),
    text: str | None = typer.Option(None, help="Column with the texts; an obvious one is recognised."),
    tokens: str | None = typer.Option(None, help="Column with the words of each sentence, for --task tokens."),
    label: str | None = typer.Option(None, help="Column with the labels; a blank label is unlabelled."),
    weak: list[str] = typer.Option(
        [], metavar="COLUMN", help="Column with noisy labels; also COLUMN=CONFIDENCE or PREFIX*. May be repeated."
    ),
    classes: str | None = typer.Option(
        None,
        metavar="NAMES|FILE",
        help='Names of the classes, such as "sports, politics": needs no label. Or YAML: NAME: DESCRIPTION.',
    ),
    gold: str | None = typer.Option(
        None,
        metavar="train|measure",
        help="Beside noisy labels: train on gold labels of TABLE too (default with --classes), or only measure.",
    ),
    rules: Path | None = typer.Option(None, help="YAML or Python file with rules that give noisy labels."),
    unlabeled: str | None = typer.Option(None, metavar="TABLE", help="Table with more unlabelled rows."),
    labels: list[str] = typer.Option(
        [], metavar="TABLE", help="Labels of rows of TABLE, such as rows of drift suggest that were filled in."
    ),
    add: list[str] = typer.Option(
        [], metavar="TABLE", help="Further rows with labels, which may be of new classes. May be repeated."
    ),
    from_run: Path | None = typer.Option(
        None, "--from", file_okay=False, metavar="RUN", help="Go on from a run, with --labels or --add."
    ),
    dev: str | None = typer.Option(
        None, metavar="TABLE", help="Validation table for model selection; counts toward the label budget."
    ),
    test: str | None = typer.Option(None, metavar="TABLE", help="Test table; scored once, at the end."),
    split: str | None = typer.Option(
        None, metavar="COLUMN", help='Column of TABLE that says train, dev or test; `split` is recognised, "" is none.'
    ),
    encoding: str | None = typer.Option(None, help="Encoding of CSV, TSV and JSON lines (utf-8)."),
    labels_per_class: int | None = typer.Option(
        None, min=1, help="Keep N labels per class (simulates a small budget)."
    ),
    labels_are: str | None = typer.Option(
        None,
        metavar="random|per-class|suggested",
        help="How rows were chosen for labelling; random counts tell class shares. Default: as the counts suggest;"
        " suggested with --labels.",
    ),
    method: str | None = typer.Option(None, help="drift (default), one of `drift methods`, or file.py:Class."),
    model: str | None = typer.Option(None, help="Encoder by name or folder, `default`, `textcnn`, `gcn` or `grand`."),
    finetune: bool | None = typer.Option(
        None,
        "--finetune/--frozen",
        help="Train layers of the encoder (default for tokens, and with a GPU), or a head on its vectors.",
    ),
    precision: str | None = typer.Option(
        None, metavar="auto|float32|bfloat16", help="Number format of encoders (auto: bfloat16 where it is fast)."
    ),
    minutes: float | None = typer.Option(
        None, min=0.1, help="Time limit of preparing and training; steps are planned to fit."
    ),
    seed: int | None = typer.Option(None, min=0, help="Random seed (0)."),
    seeds: int | None = typer.Option(
        None, min=1, help="Seeds trained at once, with a fixed encoder (10; fewer on large data)."
    ),
    preset: str | None = typer.Option(None, help="Settings of a dataset in the paper, such as agnews or wikigold."),
    profile: str = typer.Option("laptop", help="Profile of the preset: paper or laptop."),
    config: Path | None = typer.Option(None, help="YAML file with settings; config.yaml of a run is one."),
    assignments: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="One setting; may be repeated."),
    tune: bool = typer.Option(False, "--tune", help="Search α, τ and the learning rate on dev first."),
    trials: int | None = typer.Option(None, min=1, help="Number of settings that --tune tries (20)."),
    jobs: int | None = typer.Option(None, min=1, help="Trials of --tune at once (1, or what --cluster takes)."),
    cluster: str | None = typer.Option(
        None,
        metavar="ADDRESS",
        help="For --tune: a Dask scheduler, such as tcp://host:8786, `ray`, or ray://host:10001.",
    ),
    resume: bool = typer.Option(False, "--resume", help="Continue the run in --out."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Time a few steps and print the plan; write nothing."),
    self_contained: bool | None = typer.Option(
        None, "--self-contained", help="Store a fixed encoder in the folder, not only its name and checksum."
    ),
    onnx: bool | None = typer.Option(
        None, "--onnx/--no-onnx", help="Also write the model as ONNX (default, except with a fixed encoder)."
    ),
    quiet: bool = typer.Option(False, "--quiet", help="No progress bars."),
) -> None:
    """Train a classifier from few or noisy labels. It classifies texts, words, or the nodes of a graph.

    Rows with a blank label are unlabelled. Without a GPU the encoder stays fixed: texts become vectors once, and ten
    heads are trained at once, so that the score comes with a spread.

    Examples:

        drift fit reviews.csv --text body --label topic -o runs/topics

        drift fit reviews.csv --classes "sports, politics, business" -o runs/zero

        drift fit reviews.csv --weak anna --weak ben --weak gpt=gpt_confidence -o runs/votes

        drift fit reviews.csv --rules rules.yaml --test test.csv -o runs/rules

        drift fit train.jsonl.gz --dev dev.jsonl.gz --labels-per-class 30 --set training.steps=300 -o runs/few

        drift fit sentences.jsonl --task tokens --weak weak --dev dev.jsonl -o runs/names

        drift fit --task nodes --graph Cora --labels-per-class 20 -o runs/cora

        drift fit reviews.csv --dev dev.csv --tune --trials 30 --jobs 2 -o runs/tuned

        drift fit --from runs/topics --labels filled.csv -o runs/topics-2

        drift fit --from runs/topics --add new-class.csv -o runs/topics-3

        drift fit --resume -o runs/topics
    """
    _execute(dict(locals()))


def _execute(options: dict[str, Any]) -> None:
    """Run the command. options: its parameters by name."""
    from drift.cli.show import show_plan, show_run
    from drift.errors import ConfigError
    from drift.runs.fit import fit as fit_run
    from drift.runs.fit import plan
    from drift.runs.layers import read_assignments
    from drift.training.plan import Plan
    from drift.training.threads import keep_freed_memory

    tune, search = options.pop("tune"), {name: options.pop(name) for name in ("trials", "jobs", "cluster")}
    if not tune and any(value is not None for value in search.values()):
        raise ConfigError("--trials, --jobs and --cluster are of a search; give --tune too, or leave them out")
    train, graph = options.pop("train"), options.pop("graph")
    if graph is not None and train is not None:
        raise ConfigError(f"a table, {train}, and --graph were given; name the data once")
    options["weak"] = options.pop("weak") or None
    options["settings"] = read_assignments(options.pop("assignments"))
    options["task"] = options["task"] or ("nodes" if graph else None)
    keep_freed_memory()
    done: Any
    options["labels"], options["add"] = options["labels"] or None, options["add"] or None
    if tune and options.pop("from_run") is not None:
        raise ConfigError("--from repeats a run with its own settings; leave out --tune")
    if tune:
        from drift.runs.tuning.tune import tune as search_settings

        renamed = {"n_trials": search["trials"], "n_jobs": search["jobs"], "cluster": search["cluster"]}
        done = search_settings(graph or train, **renamed, **options)
    elif options.pop("dry_run"):
        done = plan(graph or train, **options)
    else:
        done = fit_run(graph or train, **options)
    if os.environ.get("RANK", "0") != "0":  # one of several processes prints
        return
    if isinstance(done, Plan):
        show_plan(done)
    else:
        show_run(done)
