"""`drift methods`: what there is to train with."""

import typer


def methods() -> None:
    """List every method, a line each; `drift fit --method NAME` runs one."""
    from drift.methods import METHODS

    width = max(map(len, METHODS))
    for name, method in METHODS.items():
        typer.echo(f"{name:{width}}  {method.summary}")
