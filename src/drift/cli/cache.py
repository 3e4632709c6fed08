"""`drift cache`: what is in the cache, and how to empty it."""

import typer

cache = typer.Typer(
    name="cache",
    rich_markup_mode=None,
    invoke_without_command=True,
    help="Show what is in the cache; `drift cache clear` empties it.",
)


@cache.callback()
def contents(context: typer.Context) -> None:
    """Show what is in the cache: files and size of each part, and the limit.

    The cache is `$DRIFT_CACHE`, or `drift` in the user's cache folder. Beyond `$DRIFT_CACHE_SIZE` (10GB) the files that
    were not used for the longest time are removed; encoders are not.
    """
    if context.invoked_subcommand is not None:
        return
    from drift.cli.show import show_table
    from drift.data.cache import KEPT, PARTS, cache_folder, cache_limit, cached_files

    files = {part: cached_files(part) for part in PARTS}
    sizes = {part: sum(stat.st_size for stat in stats.values()) for part, stats in files.items()}
    limited = sum(size for part, size in sizes.items() if part != KEPT)
    typer.echo(f"{cache_folder()}: {_megabytes(limited)} of at most {_megabytes(cache_limit())}, without encoders")
    rows = [[part, str(len(stats)), _megabytes(sizes[part])] for part, stats in files.items() if stats]
    if rows:
        show_table(["part", "files", "size"], rows)


@cache.command()
def clear() -> None:
    """Delete everything in the cache. It is filled again when it is needed."""
    from drift.data.cache import cache_folder, clear_cache

    typer.echo(f"{cache_folder()}: {_megabytes(clear_cache())} deleted")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
