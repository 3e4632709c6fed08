"""`drift fit`: from a table to a classifier."""

import os
from collections.abc import Callable
from functools import partial
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
        None, help="text: a class a text (default); tokens: a tag a word; nodes: a class a node of a graph."
    ),
    out: Path = typer.Option(..., "--out", "-o", file_okay=False, help="Folder of the run; it must be new or empty."),
    graph: str | None = typer.Option(
        None, help="Cora, CiteSeer, PubMed, an .npz or .pt file, or a table of nodes; for --task nodes."
    ),
    edges: Path | None = typer.Option(None, help="Table of edges, where the graph is a table of nodes."),
    text: str | None = typer.Option(None, help="Column with the texts; an obvious one is found."),
    tokens: str | None = typer.Option(None, help="Column with the words of each sentence, for --task tokens."),
    label: str | None = typer.Option(None, help="Column with the labels; blank is unlabelled."),
    weak: str | None = typer.Option(None, metavar="COLUMN", help="Column with noisy labels from any source."),
    rules: Path | None = typer.Option(None, help="YAML or Python file with rules that give noisy labels."),
    unlabeled: str | None = typer.Option(None, metavar="TABLE", help="More texts, without labels."),
    dev: str | None = typer.Option(None, metavar="TABLE", help="Labels to choose by; they count as budget."),
    test: str | None = typer.Option(None, metavar="TABLE", help="Labels to score on, once, at the end."),
    encoding: str | None = typer.Option(None, help="Of CSV, TSV and JSON lines; utf-8 if left out."),
    labels_per_class: int | None = typer.Option(None, min=1, help="Forget all labels but so many a class."),
    method: str | None = typer.Option(None, help="drift if left out; `drift methods` lists them."),
    model: str | None = typer.Option(None, help="Encoder by name or folder, `default`, `textcnn`, `gcn` or `grand`."),
    finetune: bool | None = typer.Option(
        None, "--finetune/--frozen", help="Train the whole encoder, or a head on its vectors (default without a GPU)."
    ),
    seed: int | None = typer.Option(None, min=0, help="Decides everything random."),
    seeds: int | None = typer.Option(None, min=1, help="Heads trained at once, with a fixed encoder (10)."),
    preset: str | None = typer.Option(None, help="Settings of a dataset in the paper, such as agnews or wikigold."),
    profile: str = typer.Option("laptop", help="Of the preset: paper or laptop."),
    config: Path | None = typer.Option(None, help="YAML file with settings; config.yaml of a run is one."),
    assignments: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="One setting; may be repeated."),
    tune: bool = typer.Option(False, "--tune", help="Search α, τ and the learning rate on dev first."),
    trials: int | None = typer.Option(None, min=1, help="Settings that --tune tries (20)."),
    jobs: int | None = typer.Option(None, min=1, help="Trials of --tune at once; one, or what --cluster takes."),
    cluster: str | None = typer.Option(
        None, metavar="ADDRESS", help="For --tune: of a Dask scheduler, such as tcp://host:8786, or `ray`."
    ),
    resume: bool = typer.Option(False, "--resume", help="Go on with the run in --out."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Time a few steps and print the plan; write nothing."),
    onnx: bool = typer.Option(True, help="Write the model as ONNX too."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress bars."),
) -> None:
    """Train a classifier of texts, of the words in them, or of a graph's nodes, from few labels or from rules alone.

    Rows with a blank label are unlabelled. Without a GPU the encoder stays fixed: texts become vectors once, and ten
    heads are trained at once, so that the score comes with a spread.

    Examples:

        drift fit reviews.csv --text body --label topic -o runs/topics

        drift fit reviews.csv --rules rules.yaml --test test.csv -o runs/rules

        drift fit train.jsonl.gz --dev dev.jsonl.gz --labels-per-class 30 --set training.steps=300 -o runs/few

        drift fit sentences.jsonl --task tokens --weak weak --dev dev.jsonl -o runs/names

        drift fit --task nodes --graph Cora --labels-per-class 20 -o runs/cora

        drift fit reviews.csv --dev dev.csv --tune --trials 30 --jobs 2 -o runs/tuned

        drift fit --resume -o runs/topics
    """
    from rich.console import Console

    from drift.cli.show import show_run
    from drift.errors import ConfigError
    from drift.runs.config import read_assignments
    from drift.runs.fit import fit as plain_fit
    from drift.runs.result import Run
    from drift.training.threads import keep_freed_memory

    if not tune and any(option is not None for option in (trials, jobs, cluster)):
        raise ConfigError("--trials, --jobs and --cluster are of a search; give --tune too, or leave them out")
    if graph is not None and train is not None:
        raise ConfigError(f"a table, {train}, and --graph were given; name the data once")
    keep_freed_memory()
    run_fit: Callable[..., Any] = plain_fit
    if tune:
        from drift.runs.tuning.tune import tune as search

        run_fit = partial(search, trials=trials, jobs=jobs, cluster=cluster)
    done = run_fit(
        graph or train,
        out=out,
        unlabeled=unlabeled,
        dev=dev,
        test=test,
        task=task or ("nodes" if graph else None),
        edges=edges,
        text=text,
        tokens=tokens,
        label=label,
        weak=weak,
        rules=rules,
        encoding=encoding,
        labels_per_class=labels_per_class,
        model=model,
        finetune=finetune,
        method=method,
        seed=seed,
        seeds=seeds,
        preset=preset,
        profile=profile,
        config=config,
        settings=read_assignments(assignments),
        resume=resume,
        dry_run=dry_run,
        onnx=onnx,
        quiet=quiet,
    )
    if os.environ.get("RANK", "0") != "0":  # one of several processes speaks
        return
    console = Console()
    if isinstance(done, Run):
        show_run(console, done)
    else:
        for line in done.lines():
            console.print(line, highlight=False)
