"""`drift annotate --task tokens` as people start it: killed in between, finished in Chromium, and used to predict."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from drift.data.sentences import read_sentences
from tests.annotate.command import Command
from tests.annotate.page import Page
from tests.annotate.test_sentence_page import mark_by_keys, saved
from tests.annotate.test_sentences import NAMES, OTHERS, PLACES, made
from tests.report.browser import CHROMIUM
from tests.runs.small import SPECIAL, save_small_bert

pytest.importorskip("starlette", reason="needs starlette: pip install 'drift-ssl[annotate]'")
pytest.importorskip("uvicorn", reason="needs uvicorn: pip install 'drift-ssl[annotate]'")
tokenizers = pytest.importorskip("tokenizers", reason="needs transformers: pip install 'drift-ssl[text]'")
pytestmark = pytest.mark.skipif(CHROMIUM is None or os.name == "nt", reason="needs Chromium")

ROWS, BEFORE, AFTER = 30, 6, 4  # sentences; labelled before and after the server is killed


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    vocabulary = {word: place for place, word in enumerate([*SPECIAL, *NAMES, *PLACES, *OTHERS])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    save_small_bert(tmp_path / "encoder", tokenizer, max_position_embeddings=128)  # as `drift fit` reads
    lines = [json.dumps({"id": row, "tokens": words}) for row, words in enumerate(made(ROWS)[0])]
    (tmp_path / "sentences.jsonl").write_text("\n".join(lines) + "\n")
    options = ["sentences.jsonl", "--task", "tokens", "--classes", "person, place", "-o", "labels.jsonl"]
    started = Command(tmp_path, options)
    yield started
    started.kill()


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    opened = Page(tmp_path / "profile")
    yield opened
    opened.close()


def visit(page: Page, command: Command, labelled: int) -> None:
    page.visit(command.url)
    page.until(lambda: page.there(".word") and f"{labelled} of {ROWS} labelled" in page.text("#aside"))


def label(page: Page, count: int) -> None:
    for _ in range(count):
        mark_by_keys(page)
        saved(page)


@pytest.mark.slow
def test_sentences_are_marked_finished_and_predicted(command: Command, page: Page) -> None:
    visit(page, command, 0)
    label(page, BEFORE)
    command.kill()
    page.key("Enter")
    page.until(lambda: not page.run("document.getElementById('banner').hidden"))
    command.start()
    visit(page, command, BEFORE)
    label(page, AFTER)

    page.click("#finish")
    page.click("#train")
    page.until(lambda: page.there("a[href=report]") or "failed" in page.text("dialog"), 240)
    assert page.there("a[href=report]"), page.text("dialog")
    assert page.dialogs == []
    predict = page.run("document.querySelector('.command').textContent")
    assert predict == "drift predict labels-run new.jsonl -o predicted.jsonl"
    written = read_sentences(command.folder / "labels.jsonl", label="labels")
    tagged = [(words, tags) for words, tags in zip(written.tokens, written.labels, strict=True) if tags is not None]
    assert len(tagged) == BEFORE + AFTER
    for words, tags in tagged:
        assert [tag != "O" for tag in tags] == [word in NAMES + PLACES for word in words]

    (command.folder / "new.jsonl").write_text(json.dumps({"tokens": ["Ada", "went", "to", "Oslo"]}) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", *predict.split()],
        cwd=command.folder,
        env={**os.environ, "DRIFT_CACHE": str(command.folder / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    row = json.loads((command.folder / "predicted.jsonl").read_text())
    assert len(row["predicted"]) == len(row["tokens"])
