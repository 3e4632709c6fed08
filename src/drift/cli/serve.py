"""`drift serve`: a trained model as an HTTP service."""

from pathlib import Path

import typer


def serve(
    run: Path = typer.Argument(..., help="Folder of a finished run, or of a saved DriftClassifier."),
    host: str = typer.Option("127.0.0.1", help="Address to listen on; by default only this machine can reach it."),
    port: int = typer.Option(8000, min=0, max=65535, help="Port; 0 takes a free one."),
    allow_host: list[str] = typer.Option(
        [], metavar="NAME", help='Further Host header to accept, such as model.example; "*" is any. May be repeated.'
    ),
    int8: bool = typer.Option(False, "--int8", help="Use the ONNX file in int8: smaller and faster."),
    max_rows: int = typer.Option(1_000, min=1, help="Rows per request."),
    max_bytes: int = typer.Option(1_000_000, min=1, help="Bytes per request."),
    timeout: float = typer.Option(30.0, min=0.1, help="Seconds after which a request is given up."),
) -> None:
    """Serve a trained model over HTTP: JSON in, predictions out.

    POST /predict takes {"texts": [...]}, or {"sentences": [...]} for a tagger. GET / is a page to try it, /openapi.json
    describes it, /health says that it answers. The run's ONNX file is used if it has one. There are no users and no
    encryption: beyond this machine, put a server in front of it.

    Examples:

        drift serve runs/topics

        curl localhost:8000/predict -H 'content-type: application/json' -d '{"texts": ["a text"]}'
    """
    from drift.service.app import serve as start

    def ready(url: str) -> None:
        typer.echo(f"Serving {run} at {url} (Ctrl-C stops)")

    start(
        run,
        host=host,
        port=port,
        allow_hosts=allow_host,
        int8=int8,
        max_rows=max_rows,
        max_bytes=max_bytes,
        timeout=timeout,
        ready=ready,
    )
