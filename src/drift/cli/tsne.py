"""`drift tsne`: learned representations of runs on one graph, side by side."""

from pathlib import Path

import typer


def tsne(
    runs: list[Path] = typer.Argument(..., metavar="RUN...", help="Folders of finished runs on the same graph."),
    out: Path = typer.Option(Path("figures"), "--out", "-o", file_okay=False, help="Folder for the pictures."),
    titles: str | None = typer.Option(None, help="One title per run, separated by commas; default: method and graph."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress bar."),
) -> None:
    """Draw the learned representations of nodes. Writes tsne.png and tsne.svg, with one panel per run.

    Nodes that are close have similar representations; colours are true classes.

    Examples:

        drift tsne runs/self-training runs/drift -o figures

        drift tsne runs/a runs/b --titles "Self-training, DRIFT"
    """
    from drift.runs.tsne import tsne as draw
    from drift.training.progress import progress

    named = None if titles is None else [title.strip() for title in titles.split(",")]
    with progress("t-SNE", len(runs), shown=not quiet) as tick:
        path = draw(runs, out, titles=named, tick=tick)
    typer.echo(f"Written: {path} and {path.with_suffix('.svg').name}")
