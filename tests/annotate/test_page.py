"""The page in headless Chromium, with real keys and clicks, against the command as people start it."""

import csv
import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.annotate.command import Command
from tests.annotate.page import LEAST_CONTRAST, Page
from tests.report.browser import CHROMIUM
from tests.runs.small import WORDS, small_encoder, small_table, write_csv

pytest.importorskip("starlette", reason="needs starlette: pip install 'drift-ssl[annotate]'")
pytest.importorskip("uvicorn", reason="needs uvicorn: pip install 'drift-ssl[annotate]'")
pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
pytestmark = pytest.mark.skipif(CHROMIUM is None or os.name == "nt", reason="needs Chromium")

HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script> team goal <b>match</b>'


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    folder = tmp_path_factory.mktemp("annotate")
    small_encoder(folder / "encoder")
    table = small_table(60)
    table["body"][7] = HOSTILE
    write_csv(folder / "t.csv", {"id": table["id"], "body": table["body"]})
    options = ["t.csv", "--text", "body", "--label", "", "--classes", "money, sport", "-o", "labels.csv"]
    started = Command(folder, options)
    yield started
    started.process.kill()
    started.process.wait()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    opened = Page(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


def answer_by_keys(page: Page, count: int) -> None:
    for _ in range(count):
        before = page.text(".where")
        words = page.text("#text").split()
        page.key("1" if words[0] in WORDS["money"] else "2")
        page.until(lambda before=before: page.text(".where") != before)


def labelled(page: Page) -> int:
    found = re.search(r"(\d+) of [\d,]+ labelled", page.text("#aside"))
    assert found is not None
    return int(found[1])


def test_a_person_labels_corrects_finishes_and_predicts(command: Command, page: Page) -> None:
    page.visit(command.url)
    page.until(lambda: page.there("#text"))
    answer_by_keys(page, 12)
    assert labelled(page) == 12
    assert page.text("#saved") == "Saved"

    before = page.text(".where")
    page.key("1")
    page.until(lambda: page.text(".where") != before)
    page.key("u")  # undo: the text comes back, without its label
    page.until(lambda: page.text(".where") == before)
    assert labelled(page) == 12

    page.key("f")
    page.until(lambda: page.there(".tool.on"))
    page.key("n")
    page.until(lambda: page.there("dialog textarea"))
    page.write("<i>odd</i>")
    page.click("dialog .primary")
    page.until(lambda: "<i>odd</i>" in page.text(".card .note"))
    page.key("s")
    page.until(lambda: page.text(".where") != before)

    page.key("a")
    page.until(lambda: page.there("#class-name"))
    page.write("other")
    page.key("Enter")
    page.until(lambda: page.there('.class[data-name="other"]'))
    before = page.text(".where")
    page.key("ArrowDown")
    page.key("ArrowDown")
    page.key("ArrowDown")
    assert page.run("document.activeElement.dataset.name") == "other"
    page.key("Enter")  # arrows and Enter label as number keys do
    page.until(lambda: page.text(".where") != before)
    assert labelled(page) == 13

    command.kill()  # in between; whatever the page has called saved is there again
    page.key("1")
    page.until(lambda: not page.run("document.getElementById('banner').hidden"))
    assert page.run("document.getElementById('saved').dataset.state") == "lost"
    command.start()
    page.visit(command.url)
    page.until(lambda: page.there("#text"))
    assert labelled(page) == 13
    assert page.there('.class[data-name="other"]')

    page.click("#tab-list")
    page.until(lambda: page.there(".row[data-row='7']"))
    assert "<script>alert(2)</script>" in page.text(".row[data-row='7']")
    page.choose(".row[data-row='7'] .corrector", "sport")
    page.until(lambda: page.there(".row[data-row='7'] .tag.solid"))
    page.choose(".field select", "labelled")
    page.until(
        lambda: len(rows := page.run("[...document.querySelectorAll('.row')].map(r => r.dataset.row)")) == 14 and rows
    )
    page.click("#select-page")
    page.until(lambda: "14 selected" in page.text("#bulk"))

    page.click("#tab-check")
    page.until(lambda: "Labels to check" in page.text("#view-check"))
    page.click("#tab-label")
    page.click("#finish")
    page.click("#train")
    page.until(lambda: page.there("a[href=report]"), 240)
    assert not [each for each in page.errors if "Failed to load" not in each]  # those are of the killed server
    assert page.dialogs == []
    assert not [url for url in page.requests if not url.startswith("http://127.0.0.1:")]

    with (command.folder / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(row["label"] != "" for row in rows) == 14
    assert sum(row["label"] == "other" for row in rows) == 1
    assert [row["note"] for row in rows if row["flag"]] == ["<i>odd</i>"]
    assert rows[7]["label"] == "sport"
    assert rows[7]["body"] == HOSTILE
    commands = page.run("[...document.querySelectorAll('.command')].map(e => e.textContent)")
    assert commands[0] == "drift predict labels-run new.csv -o predicted.csv"
    write_csv(command.folder / "new.csv", {"body": ["bank stock fund", "team goal coach"]})
    done = subprocess.run(
        [sys.executable, "-m", *commands[0].split()],
        cwd=command.folder,
        env={**os.environ, "DRIFT_CACHE": str(command.folder / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    with (command.folder / "predicted.csv").open(newline="") as file:
        assert {row["predicted"] for row in csv.DictReader(file)} <= {"money", "sport", "other"}


def test_a_text_is_never_read_as_html(command: Command, page: Page) -> None:
    page.visit(command.url)
    page.click("#tab-list")
    page.click(".row[data-row='7'] .row-text")
    page.until(lambda: page.text(".where") == "Text 8")
    assert page.text("#text") == HOSTILE
    assert page.run("document.querySelector('#text').children.length") == 0
    assert page.run("document.images.length") == 0
    assert page.dialogs == []
    blocked = page.run(
        "(() => { try { document.body.innerHTML = '<b>x</b>'; return false; } catch { return true; } })()"
    )
    assert blocked  # the policy stops it even if a module tried


@pytest.mark.parametrize("width", [1200, 375])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_and_can_be_read(command: Command, page: Page, width: int, dark: bool) -> None:
    page.visit(command.url, width=width, dark=dark)
    page.until(lambda: page.there("#text"))
    for tab in ("label", "list", "check"):
        page.click(f"#tab-{tab}")
        assert page.run("document.documentElement.scrollWidth <= window.innerWidth")  # nothing to scroll sideways
    page.click("#tab-label")
    unnamed = "[...document.querySelectorAll('button, input, select, textarea')].filter(e => !e.hidden &&"
    unnamed += " !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length)).length"
    assert page.run(unnamed) == 0
    assert page.run(LEAST_CONTRAST) >= 4.5  # WCAG AA for text
