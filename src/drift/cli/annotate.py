"""`drift annotate`: label texts or sentences in the browser while a model learns along."""

from pathlib import Path
from typing import Any

import typer


def annotate(
    table: str = typer.Argument(..., metavar="TABLE", help="CSV, TSV, JSON lines (also .gz) or Parquet."),
    out: Path = typer.Option(
        ...,
        "--out",
        "-o",
        dir_okay=False,
        help="Table of labels to write; LABELS.journal beside it keeps every action.",
    ),
    classes: str = typer.Option(
        "", help='Names of the classes: "bug, question, praise". More can be added in the page.'
    ),
    task: str = typer.Option("text", help="text: one class per text; tokens: entities in sentences."),
    text: str | None = typer.Option(None, help="Column with the texts; an obvious one is recognised."),
    tokens: str | None = typer.Option(None, help="Column with the words of each sentence, for --task tokens."),
    label: str | None = typer.Option(
        None, help='Column with labels to go on from; an obvious one is recognised, "" is none.'
    ),
    weak: list[str] = typer.Option([], metavar="COLUMN", help="Column with noisy labels to compare; may be repeated."),
    rules: Path | None = typer.Option(None, help="YAML or Python file with rules that give noisy labels."),
    start_from: Path | None = typer.Option(None, "--from", help="Folder of a run whose predictions to begin with."),
    guidelines: Path | None = typer.Option(None, help="YAML file: what belongs into each class, {class: text}."),
    model: str = typer.Option("default", help="Encoder by name or folder."),
    run: Path | None = typer.Option(None, help="Folder of the final run. Default: the name of --out with -run."),
    audit_every: int = typer.Option(5, min=0, help="Draw every so many texts at random; 0 for never."),
    target: float | None = typer.Option(
        None, min=0, max=1, help="Accuracy that is good enough, such as 0.9: the page says when it is reached."
    ),
    port: int = typer.Option(0, min=0, max=65535, help="Port of the page. Default: a free one."),
    browser: bool = typer.Option(True, "--browser/--no-browser", help="Open the page in the browser."),
    seed: int = typer.Option(0, min=0, help="Random seed."),
    encoding: str = typer.Option("utf-8", help="Encoding of CSV, TSV and JSON lines."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress bar."),
) -> None:
    """Label texts or sentences in the browser, while a model learns from every label and chooses the next one.

    Every fifth text is drawn at random: the accuracy that the page shows is measured on these. Each label is on disk
    before the page shows it as saved. The same command continues where you stopped. `Finish` in the page writes the
    labels and trains a model on them with `drift fit`.

    Examples:

        drift annotate mails.csv --text body --classes "bug, question, praise" -o labels.csv

        drift annotate mails.csv --rules rules.yaml -o labels.csv

        drift annotate mails.csv --from runs/topics -o labels.csv

        drift annotate sentences.jsonl --task tokens --classes "person, place" -o labels.jsonl
    """
    from drift.errors import ConfigError, needed_for

    with needed_for("drift annotate", "pip install 'drift-ssl[annotate]'"):
        import starlette  # noqa: F401, drift.web asks for the extra of drift serve

    from drift.annotate.finish import Finish
    from drift.annotate.server import Server
    from drift.annotate.session import Annotation
    from drift.data.table_formats import format_of
    from drift.weak.class_names import SUFFIXES

    format_of(out)  # now, not when hours of labels are to be written
    names = [name for part in classes.split(",") if (name := part.strip())]
    texts = _guidelines(guidelines) if guidelines is not None else {}
    if len(set(names)) < len(names):
        raise ConfigError(f"--classes names a class twice: {classes}")
    if classes.strip().lower().endswith(SUFFIXES):
        raise ConfigError(f"--classes {classes.strip()} is a file; give names, or --guidelines FILE")
    session = Annotation(
        table,
        [*names, *(name for name in texts if name not in names)],
        task=task,
        text=text,
        tokens=tokens,
        label=label,
        weak=weak,
        rules=rules,
        start_from=start_from,
        journal=out.with_name(out.name + ".journal"),
        encoder=model,
        audit_every=audit_every,
        background=True,
        encoding=encoding,
        seed=seed,
        quiet=quiet,
    )
    with session:
        session.pool.check_out(out)
        session.target = target
        for name, guideline in texts.items():
            session.set_guideline(name, guideline)
        options = ["--seed", str(seed)] * bool(seed)  # the labels are in UTF-8, whatever the table is in
        options += ["--model", model] * (model != "default")
        finish = Finish(session, out, run or out.with_name(f"{out.name.split('.')[0]}-run"), options)
        server = Server(session, finish, port=port)
        _greet(session, server.url, out)
        if browser:
            _open(server.url)
        server.run()
        finish.wait()
        _say_goodbye(session, finish)


def _greet(session: Any, url: str, out: Path) -> None:
    labels = len(session.state.marks)
    rows = f"{len(session.texts):,} {session.pool.unit}s"
    typer.echo(f"{rows}, {labels:,} with a label. Saved to {out}.journal with every click.")
    typer.echo(f"Open {url}")
    typer.echo("Ctrl-C stops; the same command continues.")


def _say_goodbye(session: Any, finish: Any) -> None:
    status = finish.status()
    typer.echo(f"\n{status['labels']:,} labels. Accuracy: {session.estimate()}")
    if status["state"] == "open":
        typer.echo("The labels are in the journal; Finish in the page writes them as a table.")
    else:
        typer.echo(f"Written: {status['out']}")
    if status["state"] == "done":
        typer.echo(f"Try next: {status['predict']}")
    elif status["state"] == "failed":
        typer.echo(f"The final run failed: {status['error']}", err=True)


def _guidelines(path: Path) -> dict[str, str]:
    from drift.data.reading import parse_yaml, read_text
    from drift.errors import ConfigError

    content = parse_yaml(read_text(path), path)
    if not isinstance(content, dict) or not all(isinstance(text, str) for text in content.values()):
        raise ConfigError(f"{path}: write one line per class, such as `bug: something does not work as documented`")
    return {str(name): text for name, text in content.items()}


def _open(url: str) -> None:
    """Open the page, if there is a browser."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
