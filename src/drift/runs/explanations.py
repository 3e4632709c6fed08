"""Explanations of some predictions, kept with a run for its page."""

from typing import Any

from pydantic import TypeAdapter, ValidationError

from drift.errors import FileError
from drift.report.page import Section, Table
from drift.runs.result import Run
from drift.tasks.explaining import Explanation
from drift.tasks.parts import TableOptions
from drift.training.run_folder import RunFolder

FILE, ROWS, LONGEST = "explanations.json", 5, 300
STORED = TypeAdapter(list[Explanation])


def write_explanations(folder: RunFolder, run: Run, source: Any) -> None:
    """Explain some rows of a table, for the next page."""
    found = run.task.explain_table(run.trained(), source, ROWS, TableOptions())
    folder.write_json(FILE, STORED.dump_python(found))


def explanation_sections(folder: RunFolder) -> list[Section]:
    """Why some texts get their labels."""
    if not (folder.path / FILE).is_file():
        return []
    try:
        found = STORED.validate_python(folder.read_json(FILE))
    except ValidationError as error:
        raise FileError(f"{folder.path / FILE} is damaged; delete it, or explain again") from error
    text = (
        "The words without which the predicted class is less likely, with the fall of its log-odds; and the labelled"
        " rows with the nearest vectors, with the cosine. Neither says what the model does with other texts."
    )
    rows = [
        [_cut(each.text), f"{each.label} {100 * each.confidence:.0f} %", *(cell or "-" for cell in each.cells())]
        for each in found
    ]
    headings = ["text", "predicted", "words that matter", "nearest labelled rows"]
    return [Section("Why these predictions", [text], [Table(headings, rows)])]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
