"""What the terminal and the page show about sources of noisy labels and class names."""

from drift.report.page import Section, Table
from drift.tasks.record import ClassRecord
from drift.tasks.record_parts import SourcesRecord

SHOWN, ON_PAGE = 70, 140  # characters of a text in a terminal, and on the page
MOST_PAIRS = 15  # pairs of sources that are listed, those that disagree most


def source_tables(record: ClassRecord) -> list[tuple[list[str], list[list[str]]]]:
    """Headings and rows for a terminal: the sources, and what each class name caught."""
    found = record.sources
    if found is None:
        return []
    tables = [_sources(record, found)]
    if found.caught:
        headings, rows = caught_table(found)
        tables.append((headings, [[row[0], shortened(row[1]), *row[2:]] for row in rows]))
    return tables


def source_sections(record: ClassRecord) -> list[Section]:
    """Sections of the page: the sources, where they disagree, and what each class name caught."""
    found = record.sources
    if found is None:
        return []
    text = [
        f"Labels of {len(found.sources)} sources are combined by {found.combined}."
        " The estimated accuracy comes from how sources agree; it needs no gold label."
        if len(found.sources) > 1
        else f"The only source is {found.sources[0].name}."
    ]
    if any(each.accuracy.of for each in found.sources):
        text.append("Accuracy is measured on texts with a gold label. Nothing was selected by it.")
    if record.source_changes:
        text.append(
            "Start and result: how often the model agrees with the votes of a source, before and after self-training."
        )
    headings, rows = _sources(record, found)
    headings, *rows = ([row[0], *row[2:], row[1]] for row in (headings, *rows))  # the long cells last
    tables = [Table(headings, rows)]
    if len(found.agreement) > 1:
        pairs = sorted(found.agreement, key=lambda pair: pair.agree.rate if pair.agree.of else 2.0)[:MOST_PAIRS]
        rows = [[pair.first, pair.second, str(pair.agree)] for pair in pairs]
        tables.append(Table(["source", "other source", "they agree on"], rows, "Agreement, the least first"))
    if found.disagreements:
        rows = [
            [each.text, "; ".join(f"{name}: {vote}" for name, vote in each.votes.items()), each.label or "none"]
            for each in found.disagreements
        ]
        tables.append(Table(["text", "votes", "combined"], rows, "Texts on which sources disagree most"))
    sections = [Section("Sources of the labels", text, tables)]
    if found.caught:
        sections.append(_caught_section(found))
    return sections


def caught_table(found: SourcesRecord) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: what each class name caught, with the text it is most certain of."""
    rows = [
        [each.name, each.examples[0] if each.examples else "-", f"{each.texts:,}", f"{each.labeled:,}"]
        for each in found.caught
    ]
    return ["class name", "nearest text", "texts", "labelled"], rows


def _caught_section(found: SourcesRecord) -> Section:
    text = [
        "Texts are compared with the names of the classes, and the most certain half of each class gets a label."
        " A class whose nearest texts are of another class needs a better name or a description."
    ]
    if found.mixture is not None:
        text.append(
            "The texts form groups that fit the names, and the groups decided which class a text is nearest to."
            if found.mixture
            else "The texts form no groups that fit the names, so that only their similarity to the names counts."
        )
    rows = [
        [*([each.name, f"{each.texts:,}", f"{each.labeled:,}"] if place == 0 else [""] * 3), shortened(text, ON_PAGE)]
        for each in found.caught
        for place, text in enumerate(each.examples or ["-"])
    ]
    return Section("What the class names caught", text, [Table(["class", "texts", "labelled", "nearest texts"], rows)])


def _sources(record: ClassRecord, found: SourcesRecord) -> tuple[list[str], list[list[str]]]:
    several, judged = len(found.sources) > 1, any(each.accuracy.of for each in found.sources)
    changes = {each.name: each for each in record.source_changes or []}
    headings = ["source", "votes for", "coverage"]
    headings += (["estimated accuracy"] if several else []) + (["accuracy"] if judged else [])
    headings += ["start agrees", "result agrees"] if changes else []
    rows = []
    for each in found.sources:
        counts = [f"{name} {count:,}" for name, count in each.labels.items() if count]
        row = [each.name, ", ".join(counts) or "-", f"{each.coverage.rate:.1%}"]
        row += [_percent(each.estimated_accuracy)] if several else []
        row += [str(each.accuracy)] if judged else []
        if changes:
            change = changes.get(each.name)
            row += ["-", "-"] if change is None else [_percent(change.start.rate), _percent(change.result.rate)]
        rows.append(row)
    return headings, rows


def _percent(share: float | None) -> str:
    return "-" if share is None or share != share else f"{share:.1%}"


def shortened(text: str, most: int = SHOWN) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
