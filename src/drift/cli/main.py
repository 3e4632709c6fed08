"""The `drift` command: one file per verb; heavy modules are imported when a verb is called."""

import os
import sys
import warnings

import typer

from drift.cli.annotate import annotate
from drift.cli.bench import bench
from drift.cli.cache import cache
from drift.cli.check import check
from drift.cli.compare import compare
from drift.cli.curve import curve
from drift.cli.datasets import datasets
from drift.cli.demo import demo
from drift.cli.encoders import encoders
from drift.cli.fit import fit
from drift.cli.label import label
from drift.cli.methods import methods
from drift.cli.models import models
from drift.cli.predict import evaluate, predict
from drift.cli.report import report
from drift.cli.suggest import suggest
from drift.cli.tsne import tsne
from drift.errors import DriftError, Interrupted

CTRL_C = 130  # the exit code that shells use for Ctrl-C

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain text: rich and its Markdown parser would double the time of --help
    pretty_exceptions_enable=False,
)
VERBS = (
    demo,
    label,
    annotate,
    fit,
    predict,
    evaluate,
    report,
    bench,
    compare,
    tsne,
    suggest,
    check,
    curve,
    methods,
    models,
    datasets,
)
for verb in VERBS:
    app.command()(verb)
for group in (encoders, cache):
    app.add_typer(group)


def _print_version(wanted: bool) -> None:
    if wanted:
        from drift import __version__

        typer.echo(f"drift {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: bool = typer.Option(
        False, "--version", help="Print the version and stop.", is_eager=True, callback=_print_version
    ),
) -> None:
    """Good classifiers from few or noisy labels, by differentiable self-training.

    Start with `drift demo`.
    """


def run() -> None:
    """Entry point: a mistake of the user is one line and exit code 2, never a traceback."""
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"  # without a line of code
    try:
        app()
    except Interrupted as stop:
        print(f"drift: {stop}", file=sys.stderr)
        sys.exit(CTRL_C)
    except DriftError as error:
        print(f"drift: {error}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as end:  # typer raises it on success, too
        if end.code == CTRL_C:  # outside of training steps, which save first
            hint = "; continue training that had begun with drift fit --resume -o RUN" if "fit" in sys.argv else ""
            print(f"drift: stopped{hint}", file=sys.stderr)
        if end.code in (None, 0) and int(os.environ.get("WORLD_SIZE", "1")) > 1:
            from drift.training.devices import leave

            leave()
        raise
