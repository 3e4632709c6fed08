"""One self-contained page: text, tables and pictures in a single HTML file that opens from disk, with no network.

Everything goes through a template that escapes it, so text from data cannot become markup.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

import drift
from drift.data.files import atomic_file

COLORS = 6  # of marks, in page.html
LONG = 40  # characters of a cell that may not stay on one line


@dataclass(frozen=True)
class Table:
    """Rows of cells under headings; the first column names its row."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""

    @property
    def of_texts(self) -> list[bool]:
        """For each column whether it holds texts, which may break over lines."""
        return [any(len(cell) > LONG for cell in column) for column in zip(*self.rows, strict=True)]


@dataclass(frozen=True)
class Picture:
    """An image file and the words for people who cannot see it."""

    path: Path
    alt: str
    caption: str = ""

    @property
    def data(self) -> str:
        return base64.b64encode(self.path.read_bytes()).decode("ascii")


@dataclass(frozen=True)
class Marked:
    """A sentence in pieces, some of them marked with a kind; whose: who marked them."""

    whose: str
    pieces: Sequence[tuple[str, str | None]]
    colors: Mapping[str, int]  # of each kind, from 0

    def color(self, kind: str) -> int:
        return self.colors[kind] % COLORS


@dataclass(frozen=True)
class Section:
    """A heading, and below it paragraphs, marked sentences, tables, pictures and commands, in this order.

    marked: groups of a few that belong together, such as one sentence marked by several.
    """

    heading: str
    paragraphs: Sequence[str] = ()
    marked: Sequence[Sequence[Marked]] = field(default=(), kw_only=True)
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    commands: Sequence[str] = field(default=())


def write_page(path: Path, title: str, sections: Sequence[Section]) -> Path:
    """Write the page; pictures are embedded, so that the file can be sent around alone."""
    page = _template().render(title=title, sections=sections, version=drift.__version__)
    with atomic_file(path) as aside:
        aside.write_text(page, encoding="utf-8", errors="replace")  # a name of a file may be no Unicode
    return path


@cache
def _template() -> Template:
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("page.html")
