"""The paper's own numbers, read from `paper_figures.yaml`."""

from functools import cache
from importlib.resources import files
from typing import Any

import yaml


@cache
def paper_numbers() -> dict[str, Any]:
    """Tables 1 to 5 by the name of their exhibit; `datasets` and `graph_datasets` are tables 7 and 6."""
    found: dict[str, Any] = yaml.safe_load((files("drift.paper.bench") / "paper_figures.yaml").read_text("utf-8"))
    return found


def paper_figure(exhibit: str, row: str | None, cell: str) -> float | None:
    """What the paper prints, in percent: accuracy, or F1 of named entities; None where it prints nothing."""
    table = paper_numbers().get(exhibit)
    if table is None or row not in table["rows"] or cell not in table["columns"]:
        return None
    figure = table["rows"][row][table["columns"].index(cell)]
    printed: float | None = figure[0] if isinstance(figure, list) else figure
    return printed


def paper_notes(exhibit: str) -> list[str]:
    return list(paper_numbers().get(exhibit, {}).get("notes", []))
