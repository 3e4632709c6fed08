"""What a person does besides labelling, in headless Chromium with real keys and clicks."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import drift
from tests.annotate.page import Page
from tests.annotate.serving import served
from tests.annotate.small import CLASSES, clusters
from tests.report.browser import CHROMIUM

pytest.importorskip("starlette", reason="needs starlette: pip install 'drift-ssl[annotate]'")
pytest.importorskip("uvicorn", reason="needs uvicorn: pip install 'drift-ssl[annotate]'")
pandas = pytest.importorskip("pandas")
pytestmark = pytest.mark.skipif(CHROMIUM is None or os.name == "nt", reason="needs Chromium")

RTL, LONG, CODE = 0, 1, 2  # rows
TEXTS = {RTL: "שלום עולם, זה טקסט", LONG: "word " * 4000, CODE: "def f(x):\n    return x\n\nclass A:\n    pass\n"}


@pytest.fixture(scope="module")
def session() -> drift.Annotation:
    texts, vectors, codes = clusters(120)
    for row, text in TEXTS.items():
        texts[row] = text
    weak = [CLASSES[code] if row % 3 else CLASSES[(code + 1) % 3] for row, code in enumerate(codes)]
    frame = pandas.DataFrame({"text": texts, "weak": weak})
    opened = drift.Annotation(frame, CLASSES, label="", weak=["weak"], vectors=vectors)
    for row in np.flatnonzero(np.arange(120) > 80).tolist():
        opened.label(row, CLASSES[codes[row]])
    opened.label(85, CLASSES[(codes[85] + 1) % 3])
    opened.train()
    return opened


@pytest.fixture(scope="module")
def url(session: drift.Annotation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(session, tmp_path_factory.mktemp("served")) as address:
        yield address


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    opened = Page(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def opened(page: Page, url: str) -> Iterator[None]:
    page.visit(url)
    page.until(lambda: page.there(".class[data-name]") and page.text("#text"))
    yield
    assert page.errors == []
    assert page.dialogs == []


def open_row(page: Page, row: int) -> None:
    page.click("#tab-list")
    page.click(f".row[data-row='{row}'] .row-text")
    page.until(lambda: page.text(".where") == f"Text {row + 1}")


def edit_class(page: Page, place: int) -> None:
    page.click(f".class-list li:nth-child({place}) .class-row")
    page.until(lambda: page.there("#class-name"))


def test_classes_are_renamed_described_and_merged(page: Page, session: drift.Annotation) -> None:
    before = sum(label == "praise" for label in session.labels())
    edit_class(page, 2)
    page.run("document.querySelector('#class-name').select()")
    page.write("thanks")
    page.click("#class-guideline")  # both are saved
    page.write("They are <b>happy</b>.")
    page.click("dialog .primary")
    page.until(lambda: page.there('.class[data-name="thanks"]'))
    assert sum(label == "thanks" for label in session.labels()) == before
    assert any(each.guideline for each in session.state.classes.values())
    page.until(lambda: not page.there("dialog") and page.text("#saved") == "Saved")
    page.key("g")
    page.until(lambda: "They are <b>happy</b>." in page.text("dialog"))
    page.key("Escape")
    page.until(lambda: not page.there("dialog"))
    edit_class(page, 2)
    page.choose("#class-into", "bug")
    page.click("dialog .primary")
    page.until(lambda: not page.there('.class[data-name="thanks"]'))
    assert session.classes == ["bug", "question"]
    for _ in range(3):
        count = session.state.version
        page.key("u")
        page.until(lambda count=count: session.state.version > count and page.text("#saved") == "Saved")
    assert session.classes == CLASSES


def test_the_guess_can_be_hidden(page: Page, session: drift.Annotation) -> None:
    assert page.there(".class .chance")
    page.key("h")
    page.until(lambda: not page.there(".class .chance"))
    labels = session.labels()
    page.key("Enter")  # nothing is accepted that is not seen
    page.key("h")
    page.until(lambda: page.there(".class .chance"))
    assert session.labels() == labels


def test_what_changed_can_be_opened(page: Page, session: drift.Annotation) -> None:
    if not session.flips:
        pytest.skip("no prediction changed")
    page.click(".change")
    page.until(lambda: page.text(".where") == f"Text {session.flips[0][0] + 1}")


def test_the_list_is_filtered_and_corrected(page: Page, session: drift.Annotation) -> None:
    open_row(page, 10)
    page.key("f")
    page.until(lambda: session.state.flags)
    page.click("#tab-list")

    def count(show: str) -> int:
        page.choose(".field select", show)
        page.until(lambda: " texts" in page.text(".pages"))
        seen: list[str] = []
        page.until(lambda: seen.append(page.text(".pages")) or (len(seen) > 5 and len(set(seen[-5:])) == 1))
        return int(page.text(".pages .small").split()[0])

    assert count("flagged") == 1
    assert count("labelled") == 39
    assert count("differs") >= 20
    assert count("all") == 120
    page.click("#search")
    page.write("NUMBER 11")  # whatever the case
    page.until(lambda: page.text(".pages .small").startswith("11 texts"))
    before = session.labels()
    page.click("#select-page")
    page.until(lambda: "11 selected" in page.text("#bulk"))
    page.choose("#bulk select", "question")
    page.until(lambda: session.labels() != before)
    assert sum(old != new for old, new in zip(before, session.labels(), strict=True)) >= 1
    assert all(session.labels()[row] == "question" for row in (11, 110, 119))
    session.undo()
    assert session.labels() == before


def test_a_suspected_error_is_corrected(page: Page, session: drift.Annotation) -> None:
    row, predicted, _ = session.suspects()[0]
    page.click("#tab-check")
    page.click(f".row[data-row='{row}'] .tool")
    page.until(lambda: session.labels()[row] == predicted)


def test_texts_of_every_sort_look_right(page: Page) -> None:
    open_row(page, RTL)
    assert page.run("getComputedStyle(document.querySelector('#text')).direction") == "rtl"
    open_row(page, CODE)
    assert page.there("#text.code")
    open_row(page, LONG)
    assert page.run("(e => e.scrollHeight > e.clientHeight)(document.querySelector('#text'))")
    page.run("document.querySelector('#text').focus()")
    page.key("ArrowDown")  # scrolls, and does not move to a class
    assert page.run("document.activeElement.id") == "text"
    assert page.run("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_text_that_is_opened_can_be_seen(page: Page) -> None:
    """On a phone, the list is longer than the window."""
    page.resize(375, 700)
    page.click("#tab-list")
    page.click(".row[data-row='45'] .row-text")
    page.until(lambda: page.text(".where") == "Text 46")
    page.until(lambda: page.run("document.querySelector('#text').getBoundingClientRect().top > 60"))


def test_the_keyboard_alone_reaches_everything(page: Page) -> None:
    page.run("document.querySelector('#tab-label').focus()")
    page.key("ArrowRight")
    page.until(lambda: not page.run("document.querySelector('#view-list').hidden"))
    assert page.run("document.activeElement.id") == "tab-list"
    page.key("ArrowLeft")
    page.until(lambda: not page.run("document.querySelector('#view-label').hidden"))
    page.key("?")
    page.until(lambda: "Label with this class" in page.text("dialog"))
    page.key("Escape")
    page.until(lambda: not page.there("dialog"))


def test_a_screen_reader_hears_names_and_states(page: Page) -> None:
    page.key("1")
    page.until(lambda: page.text("#live").startswith("Saved as bug."))
    tree = page.ask("Accessibility.getFullAXTree")["nodes"]
    seen = {(node["role"]["value"], node.get("name", {}).get("value", "")) for node in tree if "role" in node}
    roles = {role for role, _ in seen}
    assert {"tablist", "tab", "tabpanel", "article", "group", "toolbar", "complementary"} <= roles
    assert {("tab", "Label"), ("group", "Classes"), ("complementary", "Progress")} <= seen
    assert all(name for role, name in seen if role in ("button", "tab", "checkbox", "combobox", "textbox"))


def test_two_tabs_get_different_texts(page: Page, url: str, tmp_path: Path) -> None:
    other = Page(tmp_path)
    try:
        other.visit(url)
        other.until(lambda: other.there("#text"))
        assert other.text(".where") != page.text(".where")
    finally:
        other.close()
