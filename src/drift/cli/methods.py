"""`drift methods`: the methods to train with."""

import typer


def methods() -> None:
    """List all methods. For each, the tasks it serves, the cost of a step, and what it does.

    The cost is that of one step of the second phase relative to a supervised step on as many labelled rows, counted in
    arithmetic: a forward pass is 1/3 of a step, a forward and backward pass is one. Run a method with
    `drift fit --method NAME`; a method of your own with `drift fit --method file.py:Class`.
    """
    from drift.methods import METHODS
    from drift.tasks import TASKS

    width = max(map(len, METHODS))
    typer.echo(f"{'method':{width}}  {'tasks':20}  {'cost':>5}  what it does")
    for name, method in METHODS.items():
        tasks = ", ".join(task.name for task in TASKS.values() if method.serves(task.offers))
        typer.echo(f"{name:{width}}  {tasks:20}  {method.relative_cost:4.1f}x  {method.summary}")
