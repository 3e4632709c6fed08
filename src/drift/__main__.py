"""`python -m drift`: the command, for launchers that start Python themselves."""

from drift.cli.main import run

run()
