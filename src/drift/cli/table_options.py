"""Options that `drift check` and `drift curve` share."""

import typer

LABEL = typer.Option(None, help="Column with the labels; an obvious one is recognised.")
ENCODER = typer.Option("default", help="Encoder of texts, by name or folder.")
MAX_LENGTH = typer.Option(256, min=3, help="Tokens of a text that the encoder reads.")
ENCODING = typer.Option("utf-8", help="Encoding of CSV, TSV and JSON lines.")
QUIET = typer.Option(False, "--quiet", help="No progress bars.")
