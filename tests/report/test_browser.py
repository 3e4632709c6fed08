"""Pages in a real browser: no text runs as code, nothing is requested, and pages are accessible on any screen."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drift.runs.report import write_report
from drift.tasks import TASKS, config_type
from drift.training.run_folder import RunFolder
from tests.report.browser import CHROMIUM, Browser
from tests.report.test_page import HOSTILE
from tests.runs.test_report import TRACE, metrics, node_metrics, write_looks

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")

PHONE = 375  # pixels
NASTY = [
    *HOSTILE,
    '"><img src=x onerror=alert(1)>',
    "<img src=https://example.org/x.png><link rel=stylesheet href=https://example.org/x.css>",
    "<svg onload=alert(1)><style>* { display: none }</style>",
    "</main></body><iframe src='javascript:alert(1)'></iframe>",
    "right to left \u202eoverride, never ended \u2067 and isolated",
    "null \x00 byte, bell \x07, escape \x1b[31m",
    "one_word_" * 60,
    "https://example.org/" + "x" * 400,
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


def written(folder: Path, content: dict[str, Any]) -> Path:
    run = RunFolder(folder)
    config = config_type(TASKS[content["task"]])
    run.begin(config.read({"data": {"train": f"{NASTY[0].replace('/', '')}.csv"}}).model_dump(mode="json"))
    run.write("trace.jsonl", "")
    run.write_json("metrics.json", content | {"notes": [*NASTY, f"warning: {NASTY[-1]}"], "model": NASTY[10]})
    return folder


def text_run(folder: Path) -> Path:
    mistakes = [{"text": text, "label": text, "predicted": text, "confidence": 0.9} for text in NASTY]
    nasty = {"classes": NASTY, "confusion": np.ones((len(NASTY), len(NASTY)), dtype=int).tolist()}
    return written(folder, metrics("dev", "test", mistakes=mistakes) | nasty)


def token_run(folder: Path) -> Path:
    scores = {"true": 3, "precision": 0.5, "recall": 0.5, "f1": 0.5}
    sentence = {"words": NASTY, "spans": {name: [[0, 2, NASTY[1]], [4, 7, NASTY[11]]] for name in ("true", "model")}}
    content = metrics(
        "test",
        task="tokens",
        unit="words",
        measures={"f1": "entity F1"},
        entities=True,
        sentences=9,
        classes=["O", *(f"B-{name}" for name in NASTY)],
        by_type=dict.fromkeys(NASTY, scores),
        errors={name: {"right": 1} for name in NASTY},
        samples=[sentence],
        weak_wrong_model_right={"where": "train", "sentences": [sentence]},
    )
    content["test"]["scores"] = [{"f1": 0.5}, {"f1": 0.7}]
    del content["mistakes"], content["confusion"]
    return written(folder, content)


def node_run(folder: Path) -> Path:
    content = node_metrics(NASTY[:3])
    content["graph"]["name"] = NASTY[12]
    run = written(folder, content)
    (run / "trace.jsonl").write_text("".join(f"{entry}\n".replace("'", '"') for entry in TRACE), encoding="utf-8")
    write_looks(run, {0: [0, 0, 1], 100: [0, 1, 1]}, [0, 1, 1])
    return run


RUNS = {"text": text_run, "tokens": token_run, "nodes": node_run}


@pytest.fixture(scope="module", params=RUNS)
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of each task with hostile text in every place for text, and in the name of its folder."""
    return write_report(RUNS[request.param](tmp_path_factory.mktemp("runs") / "<b onclick=alert(1)> & run"))


def test_the_browser_records_what_a_bad_page_does(browser: Browser, tmp_path: Path) -> None:
    """Otherwise the tests below would prove nothing."""
    bad = tmp_path / "bad.html"
    policy = "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'\">"
    body = "<script>alert('ran')</script><img src='http://localhost:9/x.png'><p style='width: 2000px'>wide</p>"
    bad.write_text(f"<!doctype html>{policy}{body}", encoding="utf-8")
    browser.open(bad, width=PHONE)
    assert browser.dialogs == ["ran"]
    assert browser.requests == ["http://localhost:9/x.png"]
    assert browser.run("document.documentElement.scrollWidth") > PHONE


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, 1200])
def test_text_does_not_run_request_anything_or_break_the_layout(
    browser: Browser, page: Path, width: int, dark: bool
) -> None:
    browser.open(page, width=width, dark=dark)
    assert (
        browser.run("document.querySelectorAll('script, iframe, svg, link, object, form, img[src^=http]').length") == 0
    )
    handlers = "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(n => n.startsWith('on'))"
    assert browser.run(handlers) == []
    assert browser.run("[...document.querySelectorAll('a')].every(a => a.getAttribute('href').startsWith('#'))")
    assert browser.run("document.querySelectorAll('style').length") == 1
    assert browser.run("document.documentElement.scrollWidth") <= width
    inside = "[...document.querySelectorAll('h1, h2, p, pre, figcaption, nav a, .wide, mark')]"
    inside += ".filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.textContent)"
    assert browser.run(inside) == []
    assert (browser.dialogs, browser.requests) == ([], [])


def test_landmarks_headings_tables_and_pictures_have_names(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.run("['header', 'nav', 'main', 'footer'].map(n => document.querySelectorAll(n).length)") == [1] * 4
    assert browser.run("document.documentElement.lang") == "en"
    levels = browser.run("[...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    pictures = "[...document.images].map(i => [i.alt.trim().length > 0, i.complete && i.naturalWidth > 0])"
    loaded = browser.run(pictures)
    assert loaded
    assert all(map(all, loaded))
    assert browser.run("[...document.querySelectorAll('th')].every(th => ['row', 'col'].includes(th.scope))")
    assert browser.run("[...document.querySelectorAll('tbody tr')].every(tr => tr.cells[0].tagName == 'TH')")
    assert browser.run("[...document.querySelectorAll('[tabindex=\"0\"]')].every(e => e.role && e.ariaLabel.trim())")
    targets = "[...document.querySelectorAll('a')].map(a => document.querySelectorAll(a.getAttribute('href')).length)"
    assert set(browser.run(targets)) == {1}


def test_the_keyboard_reaches_everything_that_scrolls_and_focus_is_visible(browser: Browser, page: Path) -> None:
    browser.open(page, width=PHONE)
    browser.press("Tab")
    assert browser.run("document.activeElement.textContent") == "Skip to the content"
    assert browser.run("document.activeElement.getBoundingClientRect().top") >= 0  # out of sight until focused
    scrolling = "[...document.querySelectorAll('body *')].filter(e => e.scrollWidth > e.clientWidth + 1"
    scrolling += " && getComputedStyle(e).overflowX == 'auto')"
    assert browser.run(f"{scrolling}.every(e => e.tabIndex == 0)")
    for _ in range(3):
        style = browser.run("(s => [s.outlineStyle, s.outlineWidth])(getComputedStyle(document.activeElement))")
        assert style == ["solid", "3px"]
        browser.press("Tab")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_has_enough_contrast(browser: Browser, page: Path, dark: bool) -> None:
    browser.open(page, dark=dark)
    ground = luminance(browser.run("getComputedStyle(document.body).backgroundColor"))
    assert (ground < 0.1) is dark
    for element in ("p", "h2", "a", "footer", "td"):
        ink = luminance(browser.run(f"getComputedStyle(document.querySelector('{element}')).color"))
        light, darker = max(ink, ground), min(ink, ground)
        assert (light + 0.05) / (darker + 0.05) >= 4.5, element  # WCAG 2.2, level AA


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it. colour: "rgb(r, g, b)"."""
    parts = np.array([int(part) for part in re.findall(r"\d+", colour)[:3]]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_tables_of_ten_types_fit_a_phone(browser: Browser, tmp_path: Path) -> None:
    types = ["Restaurant_Name", *(f"Type_{number}" for number in range(9))]
    scores = {"true": 1234, "precision": 1.0, "recall": 1.0, "f1": 1.0}
    errors = {"right": 1234, "bounds": 100, "type": 100, "missed": 100, "spurious": 100}
    measures = {"f1": "entity F1", "precision": "precision", "recall": "recall", "accuracy": "token accuracy"}
    content = metrics(
        "test",
        task="tokens",
        unit="words",
        measures=measures,
        entities=True,
        sentences=9,
        classes=["O", *(f"B-{name}" for name in types)],
        by_type=dict.fromkeys(types, scores),
        errors=dict.fromkeys(types, errors),
    )
    content["test"]["scores"] = [dict.fromkeys(measures, 1.0)] * 2
    del content["mistakes"], content["confusion"]
    browser.ask("Emulation.setScrollbarsHidden", hidden=True)  # as on phones
    browser.open(write_report(written(tmp_path / "run", content)), width=PHONE)
    cut = "[...document.querySelectorAll('.wide:has(table)')].filter(e => e.scrollWidth > e.clientWidth)"
    assert browser.run("document.querySelectorAll('.wide table').length") >= 3
    assert browser.run(f"{cut}.map(e => e.getAttribute('aria-label'))") == []
