"""`drift methods`: what there is to train with."""

import typer


def methods() -> None:
    """List every method: the tasks it serves, what its step costs, and what it does.

    A step of the second phase sees labelled and unlabelled rows; its cost is the arithmetic it cannot do without, in
    supervised steps on as many labelled rows: a forward is 1/3 of one, a forward with its backward is one.
    `drift fit --method NAME` runs one.
    """
    from drift.methods import METHODS

    width = max(map(len, METHODS))
    typer.echo(f"{'method':{width}}  {'tasks':20}  {'cost':>5}  what it does")
    for name, method in METHODS.items():
        tasks = ", ".join(method.tasks)
        typer.echo(f"{name:{width}}  {tasks:20}  {method.relative_cost:4.1f}x  {method.summary}")
