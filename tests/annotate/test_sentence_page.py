"""Entities in headless Chromium: words are marked with the mouse and with keys, predictions accepted and fixed."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import drift
from drift.data.sentences import read_sentences
from tests.annotate.page import LEAST_CONTRAST, Page
from tests.annotate.serving import served
from tests.annotate.test_sentences import NAMES, PLACES, TYPES, made
from tests.report.browser import CHROMIUM

pytest.importorskip("starlette", reason="needs starlette: pip install 'drift-ssl[annotate]'")
pytest.importorskip("uvicorn", reason="needs uvicorn: pip install 'drift-ssl[annotate]'")
pytestmark = pytest.mark.skipif(CHROMIUM is None or os.name == "nt", reason="needs Chromium")

ROWS, HOSTILE = 40, 7


@pytest.fixture(scope="module")
def session() -> drift.Annotation:
    sentences, vectors, _ = made(ROWS)
    sentences[HOSTILE][0] = "<b>"
    return drift.Annotation(sentences, TYPES, task="tokens", vectors=vectors)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sentences")


@pytest.fixture(scope="module")
def url(session: drift.Annotation, folder: Path) -> Iterator[str]:
    with served(session, folder, "out.jsonl") as address:
        yield address


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    opened = Page(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


def marked(page: Page) -> list[list[object]]:
    """The words that are marked, each with its type."""
    read = "e => [Number(e.dataset.word), e.getAttribute('aria-label')]"
    return list(page.run(f"[...document.querySelectorAll('.word.entity')].map({read})"))


def saved(page: Page) -> None:
    """Save the sentence with Enter, and wait for the next one."""
    before = page.text(".where")
    page.key("Enter")
    page.until(lambda: page.text(".where") != before)


def mark_by_keys(page: Page) -> None:
    """Mark every name and place with the keys, word by word, after what was marked has been removed."""
    words = page.run("[...document.querySelectorAll('.word')].map(e => e.firstChild.data)")
    for at, word in enumerate(words):
        page.key("ArrowRight")
        assert page.run("document.querySelector('#text').getAttribute('aria-activedescendant')") == f"word-{at}"
        page.key("Backspace")
        if word in NAMES + PLACES:
            page.key("1" if word in NAMES else "2")


def labelled(page: Page, count: int) -> None:
    page.until(lambda: f"{count} of {ROWS} labelled" in page.text("#aside"))


def test_words_are_marked_with_the_mouse_and_with_keys(url: str, page: Page) -> None:
    page.visit(url)
    page.until(lambda: page.there(".word"))
    assert page.text("#tab-list") == "All sentences"
    page.drag("#word-0", "#word-2")
    assert page.run("document.querySelectorAll('.word.chosen').length") == 3
    page.key("2")
    assert [at for at, _ in marked(page)] == [0, 1, 2]
    assert all(str(said).endswith(", place") for _, said in marked(page))
    page.key("1")  # the same words again: another type
    assert all(str(said).endswith(", person") for _, said in marked(page))
    page.click("#word-1")  # a cursor inside stands for the entity
    page.key("2")
    assert [at for at, _ in marked(page)] == [0, 1, 2]
    page.key("Backspace")
    assert marked(page) == []
    page.click("#word-0")
    page.key("ArrowRight", shift=True)
    assert page.run("document.querySelectorAll('.word.chosen').length") == 2
    page.click('.class[data-name="person"]')
    assert [at for at, _ in marked(page)] == [0, 1]
    page.key("ArrowRight")  # moves on in the sentence, and does not skip it
    saved(page)
    labelled(page, 1)
    page.key("u")  # the sentence comes back, without its label
    labelled(page, 0)
    assert page.errors == []


def test_predictions_are_accepted_and_fixed(url: str, page: Page, session: drift.Annotation, folder: Path) -> None:
    page.visit(url)
    page.until(lambda: page.there(".word"))
    page.key("h")  # what the model thinks is not shown
    for _ in range(10):
        mark_by_keys(page)
        saved(page)
    labelled(page, 10)
    page.key("h")
    page.until(lambda: page.text(".guess").startswith("Model: "))
    assert page.text(".tool.save").endswith("Accept")
    before = marked(page)
    page.key("Enter")  # accepted as it is marked
    labelled(page, 11)
    page.key("u")
    labelled(page, 10)
    page.until(lambda: marked(page) == before)
    page.key("ArrowRight")
    page.key("1")
    assert page.text(".tool.save").endswith("Save")  # it is the person's now
    saved(page)
    labelled(page, 11)

    page.click("#tab-list")
    page.click(".row .accept")
    labelled(page, 12)
    page.choose(".field select", "unlabelled")
    page.until(lambda: "28 sentences" in page.text(".pages"))
    page.click("#select-page")
    page.click("#accept-all")
    labelled(page, ROWS)
    page.click("#tab-check")
    page.until(lambda: "Labels to check" in page.text("#view-check"))
    assert page.errors == []
    assert page.dialogs == []

    page.click("#finish")
    page.click(".finish .tool")  # only write: the final run is tested with texts
    page.until(lambda: "The labels are written" in page.text("dialog"))
    lines = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    tagged = [(word, tag) for line in lines for word, tag in zip(line["tokens"], line["labels"], strict=True)]
    right = [(tag != "O") == (word in NAMES + PLACES) for word, tag in tagged]
    assert sum(right) > 0.8 * len(right)
    assert None not in read_sentences(folder / "out.jsonl", label="labels").labels
    assert all(label is not None for label in session.labels())


def test_words_are_never_read_as_html(url: str, page: Page) -> None:
    page.visit(url)
    page.click("#tab-list")
    page.click(f".row[data-row='{HOSTILE}'] .row-text")
    page.until(lambda: page.text(".where") == f"Sentence {HOSTILE + 1}")
    assert page.text("#word-0").startswith("<b>")


@pytest.mark.parametrize("width", [1200, 375])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_and_can_be_read(url: str, page: Page, width: int, dark: bool) -> None:
    page.visit(url, width=width, dark=dark)
    page.click("#tab-list")
    page.until(lambda: page.there(".row"))
    assert page.run("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.run(LEAST_CONTRAST) >= 4.5
    page.click(f".row[data-row='{HOSTILE}'] .row-text")
    page.until(lambda: page.there(".word"))
    assert page.run("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.run(LEAST_CONTRAST) >= 4.5
    assert page.run("document.querySelector('#text').getAttribute('role')") == "listbox"
    assert page.run("document.querySelectorAll('#text [role=option]').length") >= 3
