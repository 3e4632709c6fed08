"""The page: text stays text, and the file is self-contained."""

import base64
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import drift
from drift.report.page import Picture, Section, Table, write_page

VOID = {"meta", "img", "br", "hr", "link", "input"}
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
HOSTILE = [
    "<script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</style></table></pre><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' onmouseover='alert(1)",
    '"><a href="javascript:alert(1)">x</a>',
    "Tom & Jerry &lt;b&gt; &amp;",
    "{{ 7 * 7 }} {% raw %} {# gone #}",
    "<!-- --> <![CDATA[ ]]>",
    "naïve λ 标签 🙂",
]


class Reader(HTMLParser):
    """Parse a page: its elements with attributes and text; all elements must be closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.text = ""
        self.feed(page)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> without a beginning"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts[self.open[-1]][-1] += data

    @property
    def tags(self) -> list[str]:
        return [tag for tag, _ in self.elements]

    def attributes(self, name: str) -> list[str | None]:
        return [values[name] for _, values in self.elements if name in values]


def write(folder: Path, text: str) -> Reader:
    """A page with `text` in every place that takes text."""
    picture = folder / "picture.png"
    picture.write_bytes(PIXEL)
    section = Section(
        heading=text,
        paragraphs=[text],
        tables=[Table([text, "b"], [[text, text], ["x", "y"]], caption=text)],
        pictures=[Picture(picture, alt=text, caption=text)],
        commands=[text],
    )
    return Reader(write_page(folder / "page.html", text, [section]).read_text(encoding="utf-8"))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text_in_every_place(tmp_path: Path, text: str) -> None:
    page, harmless = write(tmp_path, text), write(tmp_path, "x" * len(text))
    assert page.tags == harmless.tags  # no element came in through the text, none went
    names = [sorted(attributes) for _, attributes in page.elements]
    assert names == [sorted(attributes) for _, attributes in harmless.elements]  # nor an attribute
    for tag in ("title", "h1", "h2", "figcaption"):
        assert page.texts[tag] == [text], tag
    assert page.texts["p"] == [text, text]  # a paragraph, and what a table shows
    assert page.texts["pre"] == [f"{text}\n"]
    assert page.texts["th"] == [text, "b", text, "x"]
    assert page.texts["td"] == [text, "y"]
    assert page.attributes("alt") == [text]
    assert page.attributes("aria-label") == ["On this page", text, f"Picture: {text}"]
    assert page.texts["a"] == ["Skip to the content", text]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(text=st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_any_text_is_preserved(tmp_path: Path, text: str) -> None:
    page = write(tmp_path, text)
    assert page.texts["p"] == [text, text]
    assert page.attributes("alt") == [text]


@pytest.mark.parametrize("text", ["harmless", 'x" src="https://example.org/x.png', "https://example.org/"])
def test_the_page_fetches_nothing(tmp_path: Path, text: str) -> None:
    page = write(tmp_path, text)
    sources = page.attributes("src")
    assert len(sources) == 1
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert page.attributes("href") == ["#content", "#s1"]
    assert not {"script", "link", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    assert "url(" not in "".join(page.texts["style"])
    assert "@import" not in "".join(page.texts["style"])


def test_the_content_security_policy_forbids_requests_and_scripts(tmp_path: Path) -> None:
    page = write(tmp_path, "harmless")
    policy = next(values["content"] for _, values in page.elements if "http-equiv" in values)
    assert "default-src 'none'" in policy
    assert "script-src" not in policy


def test_pictures_are_inside_the_file(tmp_path: Path) -> None:
    source = write(tmp_path, "harmless").attributes("src")[0]
    assert base64.b64decode(source.removeprefix("data:image/png;base64,")) == PIXEL


def test_a_page_with_an_empty_section_is_complete(tmp_path: Path) -> None:
    path = write_page(tmp_path / "new" / "folder" / "page.html", "Title", [Section("Empty")])
    page = Reader(path.read_text(encoding="utf-8"))
    assert path == tmp_path / "new" / "folder" / "page.html"
    assert page.texts["h2"] == ["Empty"]
    assert not {"table", "figure", "pre", "p"} & set(page.tags)
    assert page.texts["footer"] == [f"DRIFT {drift.__version__}"]


def test_a_table_without_a_caption_is_named_by_its_section(tmp_path: Path) -> None:
    section = Section("Results", tables=[Table(["a"], [["1"]])])
    page = Reader(write_page(tmp_path / "page.html", "Title", [section]).read_text(encoding="utf-8"))
    assert page.attributes("aria-label") == ["On this page", "Results"]
    assert page.attributes("aria-labelledby") == []


def test_a_column_with_one_long_cell_wraps_in_every_row(tmp_path: Path) -> None:
    rows = [["short", "1"], ["a cell that goes on for more than forty characters", "2"]]
    page = Reader(
        write_page(tmp_path / "page.html", "Title", [Section("Results", tables=[Table(["a", "b"], rows)])]).read_text()
    )
    assert page.attributes("class").count("long") == 2


def test_a_title_that_is_not_valid_unicode_is_accepted(tmp_path: Path) -> None:
    page = Reader(write_page(tmp_path / "page.html", "a\udcffb", []).read_text(encoding="utf-8"))  # of a file's name
    assert page.texts["h1"] == ["a?b"]


def test_sections_keep_their_order(tmp_path: Path) -> None:
    sections = [Section("One", paragraphs=["a", "b"]), Section("Two", paragraphs=["c"])]
    page = Reader(write_page(tmp_path / "page.html", "Title", sections).read_text(encoding="utf-8"))
    assert page.texts["h2"] == ["One", "Two"]
    assert page.texts["p"] == ["a", "b", "c"]
