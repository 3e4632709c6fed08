"""Two processes on one folder, one table, one cache: one of them is told to wait, or both end with whole files."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import drift
from drift.data.locks import FolderLock
from drift.errors import StateError
from drift.runs.predict import predict_file
from drift.weak import RuleSet, label_table
from tests.hostile.table_writers import RULES
from tests.hostile.test_crashes import ended, forked
from tests.hostile.writers import rows_of
from tests.runs.small import small_encoder, small_fit, small_table, write_csv
from tests.runs.small_graphs import same_weights, small_graph, small_node_fit, write_tables

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="children are forked"),
    pytest.mark.filterwarnings("ignore"),
]
LONG = {"steps": 3000, "initial_steps": 20, "checkpoint_every": 5, "evaluate_every": 1000}


def wait_for(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.005)


def test_the_folder_of_a_running_fit_is_refused_until_it_is_killed(tmp_path: Path) -> None:
    graph, out = small_graph(), tmp_path / "run"
    child = forked(lambda: small_node_fit(graph, out=out, training=LONG))
    try:
        wait_for(out / "checkpoints")
        for resume in (False, True):
            with pytest.raises(StateError, match=r"another process is writing to .*; wait until it has ended"):
                small_node_fit(graph, out=out, resume=resume, training=LONG)
        assert (out / "config.yaml").exists()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with FolderLock(out) as lock:
        lock.take()  # the system has released it


def test_of_two_fits_that_begin_at_once_one_ends(tmp_path: Path) -> None:
    graph, out = small_graph(), tmp_path / "run"
    training = {"steps": 40, "initial_steps": 10, "checkpoint_every": 5}
    children = [forked(lambda: small_node_fit(graph, out=out, training=training)) for _ in range(4)]
    assert sorted(ended(child) for child in children) == [0, 2, 2, 2]  # type: ignore[type-var]
    assert same_weights(drift.load(out), small_node_fit(graph, training=training))


def test_a_lock_is_taken_again_in_the_same_process_and_leaves_no_file(tmp_path: Path) -> None:
    with FolderLock(tmp_path) as outer, FolderLock(tmp_path) as inner:
        outer.take()
        inner.take()
    with FolderLock(None) as nothing:
        nothing.take(create=True)
    assert list(tmp_path.iterdir()) == []


def test_two_processes_that_write_the_same_table(tmp_path: Path) -> None:
    graph = small_graph(1000)
    small_node_fit(graph, out=tmp_path / "run")
    nodes, edges = write_tables(tmp_path, graph)
    predicted, labeled, expected = tmp_path / "p.csv", tmp_path / "l.csv", tmp_path / "expected.csv"
    predict_file(tmp_path / "run", nodes, expected, edges=edges)
    table = write_csv(tmp_path / "table.csv", {"text": [f"row {row}" for row in range(5000)]})
    children = [
        forked(lambda: predict_file(tmp_path / "run", nodes, predicted, edges=edges)),
        forked(lambda: predict_file(tmp_path / "run", nodes, predicted, edges=edges)),
        forked(lambda: label_table(table, RuleSet(RULES), labeled)),
        forked(lambda: label_table(table, RuleSet(RULES), labeled)),
    ]
    assert [ended(child) for child in children] == [0] * 4
    assert predicted.read_bytes() == expected.read_bytes()
    assert rows_of(labeled) == 5000
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_two_fits_fill_the_same_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts, tokens and vectors, by the whole path of a command."""
    encoder = small_encoder(tmp_path / "encoder")
    table = write_csv(tmp_path / "table.csv", small_table(200, labeled=20))
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "alone"))
    alone = small_fit(table, encoder, text="body", label="topic")
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "shared"))
    outs = [tmp_path / name for name in ("one", "two", "three")]
    children = [
        forked(lambda out=out: small_fit(table, encoder, text="body", label="topic", out=out))  # type: ignore[misc]
        for out in outs
    ]
    assert [ended(child) for child in children] == [0, 0, 0]
    texts = small_table(200)["body"]
    expected = alone.model.predict_proba(texts)
    for out in outs:
        np.testing.assert_array_equal(drift.load(out).model.predict_proba(texts), expected)
    assert not list((tmp_path / "shared").rglob(".*"))
