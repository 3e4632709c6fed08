"""The notebooks run, and print what is saved in them."""

import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import matplotlib
import pytest

from drift.models.catalogue import DEFAULT, ENCODERS
from drift.models.locating import local_folder

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NUMBER = re.compile(r"\d+(?:\.\d+)?")
CLOSE = 3.0  # percentage points, and as much of any other number: vectors differ a little between processors
WITHOUT_ENCODER = ("loop",)


def cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def saved(cell: dict[str, Any]) -> str:
    return "".join("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_is_saved_in_it(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stem not in WITHOUT_ENCODER:
        for package in ("transformers", "datasets", "starlette", "uvicorn"):
            pytest.importorskip(package, reason="needs pip install 'drift-ssl[text,serve]'")
        if local_folder(ENCODERS[DEFAULT]) is None:
            pytest.skip("the default encoder is not here")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    before, names = matplotlib.get_backend(), {"__name__": "notebook"}
    matplotlib.use("agg")
    try:
        for cell in cells(path):
            output = io.StringIO()
            with redirect_stdout(output):
                exec(compile("".join(cell["source"]), path.name, "exec"), names)
            printed, expected = output.getvalue(), saved(cell)
            assert NUMBER.sub("#", printed) == NUMBER.sub("#", expected)
            numbers = [[float(each) for each in NUMBER.findall(text)] for text in (printed, expected)]
            assert numbers[0] == pytest.approx(numbers[1], abs=CLOSE)
    finally:
        matplotlib.pyplot.close("all")
        matplotlib.use(before)


def test_the_notebooks_are_whole_and_without_errors() -> None:
    assert {path.stem for path in NOTEBOOKS} == {"names", "entities", "loop"}
    for path in NOTEBOOKS:
        outputs = [output for cell in cells(path) for output in cell["outputs"]]
        assert outputs
        assert {output["output_type"] for output in outputs} <= {"stream", "display_data"}, "run it again, and save it"
        assert all(output.get("name") != "stderr" for output in outputs)
        assert [cell["execution_count"] for cell in cells(path)] == list(range(1, len(cells(path)) + 1))
