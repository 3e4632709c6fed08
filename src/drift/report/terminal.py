"""Tables for a terminal: numbers are never cut or wrapped; what does not fit goes below, under the names again."""

import re
from collections.abc import Sequence

GAP = 2  # blanks between columns
NAME_SHARE = 0.3  # of the width, that names may take if the table does not fit
LEAST_NAME = 14
SHARE = re.compile(r"^(\d+\.\d+ ?%) of [\d,]+$")
ELLIPSIS = "…"


def fitted(
    headings: Sequence[str], rows: Sequence[Sequence[str]], width: int, *, names: int = 1
) -> list[tuple[list[str], list[list[str]]]]:
    """Headings and rows of one table, or of several below each other, that fit into `width` columns of text.

    names: number of columns at the left that hold names, which may be shortened; the others are numbers.

    A table that is too wide first loses the counts behind shares ("85.3% of 1,234") and the ends of long names and
    lists. If that is not enough its columns are split, and each part begins with the first column.
    """
    cells = [list(row) for row in rows]
    if _total(_widths(headings, cells)) <= width:
        return [(list(headings), cells)]
    cells = [[SHARE.sub(r"\1", cell) for cell in row] for row in cells]
    if _total(_widths(headings, cells)) > width:
        most = max(LEAST_NAME, int(NAME_SHARE * width))
        cells = [[*(shortened(cell, most) for cell in row[:names]), *row[names:]] for row in cells]
    first, *others = column_blocks(_widths(headings, cells), width)
    parts = [([headings[column] for column in first], [[row[column] for column in first] for row in cells])]
    for block in others:
        # A row without a first name is known by its second one.
        rest = [[next(filter(None, row[:names]), ""), *(row[column] for column in block[1:])] for row in cells]
        parts.append(([headings[column] for column in block], rest))
    return parts


def column_blocks(widths: Sequence[int], width: int) -> list[list[int]]:
    """Which columns are shown together. Every block begins with column 0, and has at least one more if there is any."""
    blocks = [[0]]
    for column in range(1, len(widths)):
        used = _total([widths[each] for each in blocks[-1]])
        if used + GAP + widths[column] > width and len(blocks[-1]) > 1:
            blocks.append([0])
        blocks[-1].append(column)
    return blocks


def shortened(text: str, most: int) -> str:
    """A name of at most so many characters. A list keeps its first names and says how many there are."""
    if len(text) <= most:
        return text
    parts = text.split(", ")
    if len(parts) > 2:
        count = f", {ELLIPSIS} ({len(parts)})"
        kept = [parts[0]]
        while len(", ".join([*kept, parts[len(kept)]])) + len(count) <= most:
            kept.append(parts[len(kept)])
        return shortened(", ".join(kept), most - len(count)) + count
    half = (most - 1) // 2  # the end often differs where the beginning does not
    return f"{text[: most - 1 - half]}{ELLIPSIS}{text[-half:]}"


def _widths(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(headings, *rows, strict=True)]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)
