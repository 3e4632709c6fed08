"""`drift datasets`: the paper's datasets compared with what is on disk."""

import typer


def datasets() -> None:
    """List the paper's datasets. These are its tables 6 and 7, beside what is found in `$DRIFT_DATA`.

    Example:

        DRIFT_DATA=~/data drift datasets
    """
    from drift.cli.show import show_table
    from drift.paper.bench.datasets import dataset_tables

    tables, faults = dataset_tables()
    for table in tables:
        typer.echo(table.caption)
        show_table(table.headings, table.rows)
        typer.echo()
    for fault in faults:
        typer.echo(fault)
