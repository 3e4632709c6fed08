"""Write a self-contained HTML page: text, tables and pictures in one file that opens from disk without a network.

All text goes through a template that escapes it, so that text from data cannot become markup.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

import drift
from drift.data.files import atomic_file

COLORS = 10  # number of mark colours in page.html
LONG = 40  # cells with more characters may wrap


@dataclass(frozen=True)
class Table:
    """A table on the page: rows of cells under headings. The first cell of a row is its heading."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""

    @property
    def of_texts(self) -> list[bool]:
        """For each column, whether it holds long texts, which may wrap."""
        return [any(len(cell) > LONG for cell in column) for column in zip(*self.rows, strict=True)]


@dataclass(frozen=True)
class Picture:
    """An image. path: a PNG file. alt: its description for screen readers. caption: the text below it."""

    path: Path
    alt: str
    caption: str = ""

    @property
    def data(self) -> str:
        """The file in base64."""
        return base64.b64encode(self.path.read_bytes()).decode("ascii")


@dataclass(frozen=True)
class Marked:
    """A sentence with marked entities.

    whose: the source of the marks, written before the sentence. pieces: pairs of text and entity type; None: not
    marked. colors: a colour number per type, from 0.
    """

    whose: str
    pieces: Sequence[tuple[str, str | None]]
    colors: Mapping[str, int]

    def color(self, entity_type: str) -> int:
        """The colour of an entity type, as a class number of page.html."""
        return self.colors[entity_type] % COLORS


@dataclass(frozen=True)
class Bar:
    """A share as a bar from 0 to 1. interval: its ends, if they are known. strong: the one that matters."""

    name: str
    share: float
    interval: tuple[float, float] | None = None
    strong: bool = False

    @property
    def text(self) -> str:
        """The share in percent, with its interval."""
        ends = "" if self.interval is None else " ({:.1f} to {:.1f})".format(*(100 * end for end in self.interval))
        return f"{100 * self.share:.1f} %{ends}"


@dataclass(frozen=True)
class Section:
    """A heading, followed by the other fields in this order.

    lead: the sentence that matters most. warnings: shown in boxes. bars: shares to compare, under `bars_title`.
    advice: a list of what to try. marked: groups of sentences that belong together, for example one sentence marked by
    several sources. folded: everything below the heading is shown when it is opened; the text says what is there.
    """

    heading: str
    paragraphs: Sequence[str] = ()
    lead: str = field(default="", kw_only=True)
    warnings: Sequence[str] = field(default=(), kw_only=True)
    bars: Sequence[Bar] = field(default=(), kw_only=True)
    bars_title: str = field(default="", kw_only=True)
    advice: Sequence[str] = field(default=(), kw_only=True)
    folded: str = field(default="", kw_only=True)
    marked: Sequence[Sequence[Marked]] = field(default=(), kw_only=True)
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    commands: Sequence[str] = field(default=())


def write_page(path: Path, title: str, sections: Sequence[Section]) -> Path:
    """Write a page and return its path. Pictures are embedded, so that the file can be shared alone."""
    page = _template().render(title=title, sections=sections, version=drift.__version__)
    with atomic_file(path) as aside:
        aside.write_text(page, encoding="utf-8", errors="replace")  # a file name in the text may not be valid Unicode
    return path


@cache
def _template() -> Template:
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("page.html")
