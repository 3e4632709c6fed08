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
from drift.cli.failures import CTRL_C, check_environment, failure
from drift.cli.fit import fit
from drift.cli.label import label
from drift.cli.methods import methods
from drift.cli.models import models
from drift.cli.predict import evaluate, predict
from drift.cli.push import push
from drift.cli.report import report
from drift.cli.serve import serve
from drift.cli.suggest import suggest
from drift.cli.tsne import tsne

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,  # plain text: rich and its Markdown parser would double the time of --help
    pretty_exceptions_enable=False,
)
COMPLETE, COMPLETION = "_DRIFT_COMPLETE", ("--install-completion", "--show-completion")
VERBS = (
    demo,
    label,
    annotate,
    fit,
    predict,
    evaluate,
    serve,
    push,
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
    """Entry point: whatever a user can cause is one line and an exit code, never a traceback."""
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"  # without a line of code
    code = _called()
    if code == CTRL_C:  # outside of training steps, which save first
        hint = "; continue training that had begun with drift fit --resume -o RUN" if "fit" in sys.argv else ""
        print(f"drift: stopped{hint}", file=sys.stderr)
    if code == 0 and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        from drift.training.devices import leave

        leave()
    sys.exit(code)


def _completes() -> bool:
    """Whether the shell asks for completion, or it is being installed."""
    return COMPLETE in os.environ or any(option in sys.argv[1:2] for option in COMPLETION)


def _called() -> int:
    """Run the command that was called; return its exit code."""
    try:
        check_environment()
        return int(app(prog_name="drift", standalone_mode=False) or 0)
    except BaseException as error:
        if isinstance(error, SystemExit) and _completes():
            raise  # this is how typer ends
        if (told := failure(error)) is None or os.environ.get("DRIFT_TRACEBACK"):
            raise
        if told.line:
            print(told.line if told.line.startswith("Usage") else f"drift: {told.line}", file=sys.stderr)
        sys.exit(told.code)
