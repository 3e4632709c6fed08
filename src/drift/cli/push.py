"""`drift push`: upload the model of a run."""

from pathlib import Path

import typer


def push(
    run: Path = typer.Argument(..., help="Folder of a finished run."),
    repository: str = typer.Argument(..., metavar="USER/NAME", help="Repository on the Hugging Face Hub."),
    public: bool = typer.Option(False, "--public", help="Let everybody read it, if it is created now."),
    dry_run: bool = typer.Option(False, "--dry-run", help="List the files; upload nothing."),
) -> None:
    """Upload the model of a run to the Hugging Face Hub, with its card.

    Only the folder `model` of the run is uploaded, without any text that it was trained on. Log in first, with
    `hf auth login`.

    Examples:

        drift push runs/topics anna/topics --dry-run

        drift push runs/topics anna/topics
    """
    from drift.runs.push import push as upload
    from drift.runs.result import MODEL

    files = upload(run, repository, public=public, dry_run=dry_run)
    for file in files:
        typer.echo(f"{(run / MODEL / file).stat().st_size:>12,}  {file.as_posix()}")
    if dry_run:
        typer.echo(f"{len(files)} files would be uploaded to {repository}")
    else:
        typer.echo(f"Uploaded: https://huggingface.co/{repository}")
