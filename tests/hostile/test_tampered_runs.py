"""Run folders of strangers: every value may be of another type or missing, and nothing worse than one line happens."""

import json
import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

import drift
from drift.errors import DriftError
from drift.runs.predict import evaluate
from drift.runs.report import write_report
from tests.runs.small import small_encoder, small_fit, small_table, write_csv
from tests.runs.small_graphs import small_graph, small_node_fit

FILES = ("metrics.json", "data.json", "environment.json", "config.yaml", "model/drift.json")
OTHERS: tuple[Any, ...] = (None, "text", -1, 3.5, [], {}, ["a", 1], {"a": {"b": 1}}, True, 10**30, "../../etc/passwd")
TRIES = 25  # per file and task


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the values of a nested value are."""
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, inner in entries:
        yield from paths(inner, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """The value with another one at a path; with `...`, without it."""
    if not path:
        return other
    changed, (first, *rest) = value.copy(), path
    if not rest and other is ...:
        del changed[first]
    else:
        changed[first] = replaced(value[first], tuple(rest), other)
    return changed


def mutations(value: Any, seed: int) -> Iterator[Any]:
    """Values that differ at one path, drawn at random."""
    generator, places = random.Random(seed), list(paths(value))
    for _ in range(TRIES):
        path = generator.choice(places)
        yield replaced(value, path, generator.choice((*OTHERS, ...) if path else OTHERS))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Any]]:
    """A run on texts and one on nodes, each with data to use it on."""
    folder = tmp_path_factory.mktemp("runs")
    graph = small_graph()
    table = write_csv(folder / "table.csv", small_table(24, labeled=12))
    encoder = small_encoder(folder / "encoder")
    small_fit(table, encoder, text="body", label="topic", out=folder / "text", test=table)
    small_node_fit(graph, out=folder / "nodes")
    small_node_fit(graph, out=folder / "grand", model="grand")
    return {"text": (folder / "text", table), "nodes": (folder / "nodes", graph), "grand": (folder / "grand", graph)}


def uses(folder: Path, data: Any) -> list[Callable[[], Any]]:
    return [
        lambda: drift.predict(folder, data),
        lambda: evaluate(folder, data),
        lambda: write_report(folder),
        lambda: drift.compare([folder]),
    ]


def tried(folder: Path, data: Any) -> None:
    """Use a folder in every way. Only errors of this package may come, each of one line."""
    for use in uses(folder, data):
        try:
            use()
        except DriftError as error:
            message = str(error)
        else:
            continue
        assert "\n" not in message, message
        assert len(message) < 2000


@pytest.mark.parametrize("task", ["text", "nodes", "grand"])
@pytest.mark.parametrize("file", FILES)
def test_a_value_of_another_type_is_one_line(
    runs: dict[str, tuple[Path, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str, file: str
) -> None:
    original, data = runs[task]
    monkeypatch.setattr("drift.report.figures.training_curves", _no_figure)  # drawing takes most of the time
    folder = tmp_path / "run"
    shutil.copytree(original, folder)
    text = (original / file).read_text()
    content = yaml.safe_load(text) if file.endswith("yaml") else json.loads(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for changed in mutations(content, seed=len(file)):
            (folder / file).write_text(yaml.safe_dump(changed) if file.endswith("yaml") else json.dumps(changed))
            tried(folder, data)


def _no_figure(*_: Any, **__: Any) -> Any:
    import matplotlib.figure

    return matplotlib.figure.Figure((1, 1))


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b"\xff\xfe", b"null", b"3", b"[]", b"{}", b"\0" * 10])
@pytest.mark.parametrize("file", [*FILES, "trace.jsonl", "model/head.safetensors", "model/encoder/tokenizer.json"])
def test_a_damaged_file_is_one_line(
    runs: dict[str, tuple[Path, Any]], tmp_path: Path, file: str, content: bytes
) -> None:
    original, data = runs["text"]
    folder = tmp_path / "run"
    shutil.copytree(original, folder)
    if not (folder / file).exists():
        pytest.skip("this run has no such file")
    (folder / file).write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tried(folder, data)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "encoder/../../secret", "", "a\0b", "..\\secret"])
def test_a_description_cannot_name_files_outside(runs: dict[str, tuple[Path, Any]], tmp_path: Path, name: str) -> None:
    folder = tmp_path / "run"
    shutil.copytree(runs["text"][0], folder)
    (tmp_path / "secret").write_text("mine")
    description = json.loads((folder / "model" / "drift.json").read_text())
    (folder / "model" / "drift.json").write_text(json.dumps({**description, "files": [name]}))
    with pytest.raises(DriftError, match="is not a file inside the folder"):
        drift.load(folder)


@pytest.mark.parametrize("link", ["model/head.safetensors", "model/encoder", "model/more"])
def test_a_link_that_leads_out_of_the_model_is_refused(
    runs: dict[str, tuple[Path, Any]], tmp_path: Path, link: str
) -> None:
    folder, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    shutil.copytree(runs["text"][0], folder)
    path = folder / link
    with suppress(FileNotFoundError):
        shutil.move(path, elsewhere)
    elsewhere.touch()
    path.symlink_to(elsewhere)
    with pytest.raises(DriftError, match="is a link that leads out of"):
        drift.load(folder)


def test_a_header_that_promises_too_much_is_refused(runs: dict[str, tuple[Path, Any]], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(runs["nodes"][0], folder)
    weights = folder / "model" / "weights.safetensors"
    sound = weights.read_bytes()
    for size in (2**62, 2**31, len(sound), 0):
        weights.write_bytes(size.to_bytes(8, "little") + sound[8:])
        with pytest.raises(DriftError, match="cannot be opened as a trained model"):
            drift.load(folder)
    header = {"first_weight": {"dtype": "F32", "shape": [2**40, 2**20], "data_offsets": [0, 4]}}
    text = json.dumps(header).encode()
    weights.write_bytes(len(text).to_bytes(8, "little") + text + b"\0" * 4)
    with pytest.raises(DriftError, match="cannot be opened as a trained model"):
        drift.load(folder)
