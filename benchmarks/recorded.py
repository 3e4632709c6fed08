"""Results under docs/results: measurements as JSON lines, so that a benchmark can be continued, and tables in pages."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "docs" / "results"
RECOVERED = "recovered.jsonl"  # written by recovered.py


def read_lines(file: Path) -> list[dict[str, Any]]:
    """All measurements in a file; none if it does not exist."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def add_line(file: Path, line: dict[str, Any]) -> None:
    """Append a measurement to a file."""
    with file.open("a", encoding="utf-8") as target:
        target.write(json.dumps(line) + "\n")


def replace_tables(page: Path, *tables: list[str]) -> None:
    """Replace tables of a Markdown page; the text around them stays.

    tables: in the order of the page, each as its lines. A table replaces the next one with the same first line, which
    holds the headings.
    """
    lines, position = page.read_text(encoding="utf-8").splitlines(), 0
    for table in tables:
        if table[0] not in lines[position:]:
            raise SystemExit(f"{page} has no table with these headings: {table[0]}")
        start = end = lines.index(table[0], position)
        while end < len(lines) and lines[end].startswith("|"):
            end += 1
        lines[start:end] = table
        position = start + len(table)
        print("\n".join(table), end="\n\n")
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def table(headings: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """The lines of a Markdown table."""
    headings = list(headings)
    return [_line(headings), "|---" * len(headings) + "|", *map(_line, rows)]


def _line(cells: Iterable[object]) -> str:
    texts = map(str, cells)
    return "|" + "|".join(f" {text} " if text else " " for text in texts) + "|"
