"""Texts that a spreadsheet program would take for a formula: marked on writing, restored on reading.

A cell that begins with `=`, `+`, `-` or `@` is a formula for Excel, LibreOffice and Google Sheets, and a formula can
send data away or start a program. A word joiner before it, a character without width, makes it a text. An apostrophe is
more usual, but texts that begin with one exist, and reading would have to guess.
"""

import re
from typing import Any

JOINER = "\u2060"
# The wide forms are formulas too, in Chinese and Japanese versions. Spaces before the sign may be dropped.
FORMULA = re.compile(rf"{JOINER}*(?:\s*[=+\-@＝＋－＠]|[\t\r\n])")


def marked(value: Any) -> Any:
    """A value for a cell: a text that could be a formula has a joiner before it. Numbers stay as they are."""
    if not isinstance(value, str) or FORMULA.match(value) is None or _is_number(value):
        return value
    return JOINER + value


def restored(cell: str) -> str:
    """The text that `marked` was given."""
    return cell[1:] if cell.startswith(JOINER) and FORMULA.match(cell) is not None else cell


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
