"""Results as JSON lines under docs/results: written as they come, so that a measurement can be taken up again."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "docs" / "results"


def read_lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def add_line(file: Path, line: dict[str, Any]) -> None:
    with file.open("a", encoding="utf-8") as target:
        target.write(json.dumps(line) + "\n")
