"""kill -9 at random moments: nothing half-written is ever seen, and a second start ends with the same bits.

One harness for every verb that writes. DRIFT_KILLS sets the number of kills per verb (`make crashes`: 20).
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

import drift
from drift.data.vector_store import VectorStore, text_keys
from drift.runs.predict import predict_file
from drift.weak import RuleSet, label_table
from tests.runs.small import write_csv
from tests.runs.small_graphs import same_weights, small_graph, small_node_fit, write_tables

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="children are forked")
KILLS = int(os.environ.get("DRIFT_KILLS", "4"))
RULES = [{"name": "a", "label": "x", "has": ["7"]}, {"name": "b", "label": "y", "has": ["3"]}]


def forked(action: Callable[[], object]) -> int:
    """Start an action in a child; its process id. The child ends with 0 if the action returns."""
    if pid := os.fork():
        return pid
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        action()
        code = 0
    finally:
        os._exit(code)


def ended(pid: int, seconds: float = 60.0) -> int | None:
    """The exit code of a child if it ends in this time; otherwise it is killed, and None returned."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def survives(action: Callable[[], object], check: Callable[[], object], undo: Callable[[], object]) -> int:
    """Kill an action `KILLS` times and let it end. Returns how many times it was killed.

    check: called after every kill, and at the end. undo: called before the action is timed, and before the kills.
    """
    begin = time.monotonic()
    assert ended(forked(action)) == 0
    duration = time.monotonic() - begin
    undo()
    generator, killed = random.Random(0), 0
    for _ in range(KILLS):
        code = ended(forked(action), generator.uniform(0, duration))
        assert code in (None, 0)
        killed += code is None
        check()
        if code == 0:  # it ended before the kill
            undo()
    assert ended(forked(action)) == 0
    check()
    return killed


def removed(path: Path) -> None:
    import shutil

    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def check_run(folder: Path) -> None:
    """Every file under its final name is whole."""
    for file in folder.rglob("*"):
        if any(part.startswith(".") for part in file.relative_to(folder).parts):
            continue
        if file.suffix == ".json":
            json.loads(file.read_text())
        if file.suffix == ".yaml":
            assert isinstance(yaml.safe_load(file.read_text()), dict)
    if (folder / "metrics.json").exists():
        drift.load(folder)


def test_fit_ends_with_the_same_bits(tmp_path: Path) -> None:
    out, graph = tmp_path / "run", small_graph()
    training = {"steps": 60, "initial_steps": 20, "checkpoint_every": 1, "evaluate_every": 20}

    def action() -> None:
        resume = (out / "config.yaml").exists()
        small_node_fit(graph, out=out, resume=resume, training=training)

    killed = survives(action, lambda: check_run(out), lambda: removed(out))
    assert killed
    whole = small_node_fit(graph, training=training)
    assert same_weights(drift.load(out), whole)


def test_predict_writes_a_whole_table_or_none(tmp_path: Path) -> None:
    graph = small_graph(3000)
    small_node_fit(graph, out=tmp_path / "run")
    nodes, edges = write_tables(tmp_path, graph)
    out, expected = tmp_path / "out.csv", tmp_path / "expected.csv"
    predict_file(tmp_path / "run", nodes, expected, edges=edges)

    def check() -> None:
        assert not out.exists() or out.read_bytes() == expected.read_bytes()

    survives(lambda: predict_file(tmp_path / "run", nodes, out, edges=edges), check, lambda: removed(out))
    assert out.exists()


@pytest.mark.parametrize("ending", ["csv", "jsonl.gz", "parquet"])
def test_label_writes_a_whole_table_or_none(tmp_path: Path, ending: str) -> None:
    table = write_csv(tmp_path / "table.csv", {"text": [f"row {row}" for row in range(20_000)]})
    out, rules = tmp_path / f"out.{ending}", RuleSet(RULES)

    def check() -> None:
        if out.exists():
            assert rows_of(out) == 20_000

    survives(lambda: label_table(table, rules, out), check, lambda: removed(out))
    assert out.exists()


def rows_of(path: Path) -> int:
    from drift.data.tables import read_chunks

    return sum(len(chunk.columns["text"]) for chunk in read_chunks(path))


def test_the_cache_of_vectors_has_whole_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path))
    keys = text_keys(str(row) for row in range(4000))
    vectors = np.random.default_rng(0).random((len(keys), 64), dtype=np.float32)

    def action() -> None:
        for start in range(0, len(keys), 500):
            part = slice(start, start + 500)
            store = VectorStore(["test"], 64)
            store.write(keys[part], np.zeros(500, dtype=bool), [vectors[part]])

    def check() -> None:
        store = VectorStore(["test"], 64)
        found = store.find(keys)
        np.testing.assert_array_equal(store.read(found[found >= 0]), vectors[found >= 0])

    survives(action, check, lambda: removed(tmp_path / "embeddings"))
    assert (VectorStore(["test"], 64).find(keys) >= 0).all()


def test_two_processes_share_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path))
    keys = text_keys(str(row) for row in range(2000))
    vectors = np.random.default_rng(0).random((len(keys), 64), dtype=np.float32)

    def action() -> None:
        for start in range(0, len(keys), 100):
            part = slice(start, start + 100)
            VectorStore(["test"], 64).write(keys[part], np.zeros(100, dtype=bool), [vectors[part]])

    children = [forked(action) for _ in range(2)]
    assert [ended(child) for child in children] == [0, 0]
    store = VectorStore(["test"], 64)
    np.testing.assert_array_equal(store.read(store.find(keys)), vectors)
