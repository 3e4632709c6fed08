"""The page of a check: what was found in a table, with examples."""

from pathlib import Path

from drift.quality.findings import ISSUES, Finding, TableCheck
from drift.report.page import Section, Table, write_page

SHOWN = 100  # findings of one issue on the page
PAIRS = 12
ADVICE = {
    "label": "The label and the likelier one, by how much that is likelier, from models that did not see the label."
    " Look at each: a suspected label may be right.",
    "conflict": "At least one of the labels is wrong, or the label depends on more than the text.",
    "leak": "Scores on the test table are too good if its rows are trained on. Take them out of one of the tables.",
    "inconsistent": "The same phrase has another type, or none, in most other sentences. The meaning may differ.",
    "missing": "The same phrase is an entity in most other sentences, and is tagged O here.",
    "duplicate": "All but the first of each group. They count more than other rows in training.",
    "empty": "A model learns nothing from them; take them out.",
    "truncated": "The model does not see the end of these texts.",
    "language": "Guessed from scripts and common words. The default encoder reads English.",
    "outlier": "Far from all other rows: other topics, boilerplate, garbage, or rare cases that are worth keeping.",
}


def write_check_page(path: Path, checked: TableCheck) -> Path:
    """Write the page of a check."""
    return write_page(path, f"Check of {checked.name}", [_summary(checked), *_classes(checked), *_issues(checked)])


def summary_rows(checked: TableCheck) -> list[list[str]]:
    """What was found: title and number of findings of each issue."""
    return [
        [ISSUES[issue], f"{count:,}", f"{count / max(1, checked.rows):.1%}"] for issue, count in checked.found.items()
    ]


def _summary(checked: TableCheck) -> Section:
    share = checked.estimated_errors
    sentences = [f"{checked.rows:,} {checked.unit}, {checked.labeled:,} of them with a label."]
    if share is not None:
        sentences.append(f"About {share:.1%} of the labels are estimated to be wrong.")
    if not checked.found:
        sentences.append("Nothing suspicious was found.")
    tables = [Table(["issue", checked.unit, "share"], summary_rows(checked))] if checked.found else []
    return Section("Summary", [" ".join(sentences), *checked.notes], tables=tables)


def _classes(checked: TableCheck) -> list[Section]:
    if not checked.classes:
        return []
    total = max(1, sum(checked.counts))
    rows = [
        [name, f"{count:,}", f"{count / total:.1%}"]
        for name, count in zip(checked.classes, checked.counts, strict=True)
    ]
    tables = [Table(["class", "labels", "share"], rows)]
    if pairs := checked.confusions()[:PAIRS]:
        cells = [[label, true, f"{count:.0f}"] for label, true, count in pairs]
        tables.append(Table(["label", "true class", "rows"], cells, "Estimated number of wrong labels"))
    return [Section("Classes", tables=tables)]


def _issues(checked: TableCheck) -> list[Section]:
    sections = []
    for issue in checked.found:
        findings = checked.of(issue)
        more = [f"The first {SHOWN} of {len(findings):,}."] if len(findings) > SHOWN else []
        tables = [Table(*_cells(findings[:SHOWN]))]
        sections.append(Section(ISSUES[issue].capitalize(), [ADVICE[issue], *more], tables=tables))
    return sections


def _cells(findings: list[Finding]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells; columns that are empty in all rows are left out."""
    columns = {
        "row": [str(finding.row) for finding in findings],
        "label": [finding.label or "" for finding in findings],
        "suggested": [finding.suggested or "" for finding in findings],
        "copies": [finding.others for finding in findings],
        "what was seen": [finding.detail for finding in findings],
        "text": [finding.text for finding in findings],
    }
    used = {name: cells for name, cells in columns.items() if any(cells)}
    return list(used), [list(cells) for cells in zip(*used.values(), strict=True)]
