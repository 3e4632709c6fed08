"""The Python code of README and guides runs as it stands, and README's table is that of the results."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from drift.models.catalogue import DEFAULT, ENCODERS
from drift.models.locating import local_folder
from drift.paper.demos import topics_demo
from drift.paper.demos.topics import topic_texts

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_LINES = 120

needs_encoder = pytest.mark.skipif(local_folder(ENCODERS[DEFAULT]) is None, reason="the default encoder is not here")


def python_of(page: str) -> str:
    """All Python code of a page, as one program."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE))


def printed_by(code: str) -> list[str]:
    output = io.StringIO()
    with redirect_stdout(output):
        exec(compile(code, "docs", "exec"), {"__name__": "docs"})
    return output.getvalue().splitlines()


@needs_encoder
def test_the_code_of_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datasets", reason="needs datasets: pip install 'drift-ssl[text]'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "drift-demo").mkdir()
    topics_demo._write_files(tmp_path / "drift-demo", *topic_texts(topics_demo.LABELS + 3, 2, seed=0))
    lines = printed_by(python_of(README))
    shown = re.findall(r"^# (.+)$", python_of(README), re.MULTILINE)
    assert len(lines) == len(shown) == 3
    assert re.sub(r"[\d.]+ %.*", "", lines[0]) == re.sub(r"[\d.]+ %.*", "", shown[0])
    assert lines[2] == shown[2]


def test_readme_is_short_and_begins_with_the_two_commands() -> None:
    assert len(README.splitlines()) < MOST_LINES
    beginning = "\n".join(README.splitlines()[:15])
    assert "make demo" in beginning
    assert "make test" in beginning


def rows_of(table: str) -> list[dict[str, str]]:
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")
    ]
    headings, _, *rows = lines
    return [dict(zip(headings, row, strict=True)) for row in rows]


def test_the_table_of_readme_is_in_the_results() -> None:
    page = (ROOT / "docs" / "results" / "default.md").read_text(encoding="utf-8")
    measured = rows_of(page[page.index("## Accuracy") : page.index("## Macro-F1")])
    shown = rows_of(README[README.index("## How good") : README.index("## When to use")])
    for row in shown:
        assert any(row.items() <= each.items() for each in measured), f"not in docs/results/default.md: {row}"


def test_the_code_of_the_guide_to_vectors_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = python_of((ROOT / "docs" / "feature-vectors.md").read_text(encoding="utf-8"))
    said = re.search(r"print.*# (0\.\d+)", code)
    assert said is not None
    assert float(printed_by(code)[0]) == pytest.approx(float(said[1]), abs=0.01)


def test_the_loop_of_the_guide_runs() -> None:
    assert printed_by(python_of((ROOT / "docs" / "own-loop.md").read_text(encoding="utf-8"))) == []
