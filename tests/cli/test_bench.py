"""`drift bench`: what it lists, what it refuses, and a table from nothing to a second call that runs nothing."""

import csv
import pickle
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from drift.paper.bench import running
from drift.paper.bench.catalogue import EXHIBITS
from tests.cli.conftest import Call

NODES, TEST = 1600, 4  # enough for 500 dev and 1,000 test nodes
FEW = ("--cells", "cora-10", "--methods", "self-training-lee", "--seeds", "2", "--jobs", "1")


def write_cora(data: Path) -> None:
    """A Cora of two classes in a folder of data: node v has class v % 2, feature v % 4 and a citation of v - 2."""
    folder = data / "planetoid" / "Cora" / "raw"
    folder.mkdir(parents=True)
    features = csr_matrix(np.eye(4, dtype=np.float32)[np.arange(NODES) % 4])
    labels = np.eye(2, dtype=np.int32)[np.arange(NODES) % 2]
    known = NODES - TEST
    parts = {"allx": features[:known], "tx": features[known:], "ally": labels[:known], "ty": labels[known:]}
    graph: dict[int, list[int]] = defaultdict(list, {node: [max(0, node - 2)] for node in range(NODES)})
    for name, content in {**parts, "y": labels[:4], "graph": graph}.items():
        (folder / f"ind.cora.{name}").write_bytes(pickle.dumps(content))
    (folder / "ind.cora.test.index").write_text("\n".join(map(str, range(known, NODES))))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_cora(tmp_path / "data")
    monkeypatch.setenv("DRIFT_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_without_a_name_everything_is_listed(call: Call) -> None:
    code, shown, _ = call("bench")
    assert code == 0
    for exhibit in EXHIBITS.values():
        assert f"{exhibit.reference}" in shown
        assert exhibit.summary in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("wek",), "did you mean 'weak'?"),
        (("table6",), "`drift datasets` prints it"),
        (("graphs", "--profile", "phone"), "no profile 'phone'"),
        (("graphs", "--cells", "cora-11"), "did you mean 'cora-10'?"),
        (("graphs", "--methods", "drfit"), "did you mean 'drift'?"),
        (("moons", "--seeds", "3"), "leave out --cells"),
    ],
)
def test_mistakes_are_one_line(call: Call, data: Path, arguments: tuple[str, ...], said: str) -> None:
    code, _, errors = call("bench", *arguments)
    assert code == 2
    assert said in errors
    assert len(errors.strip().splitlines()) == 1


def test_a_dry_run_writes_nothing(call: Call, data: Path, tmp_path: Path) -> None:
    code, shown, _ = call("bench", "graphs", *FEW, "--dry-run", "-o", str(tmp_path / "bench"))
    assert code == 0
    assert "graph  cora-10  Self-training (Lee)  to run: 1 of 1" in shown
    assert not (tmp_path / "bench").exists()


def test_a_table_is_made_once(call: Call, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "bench"
    code, shown, _ = call("bench", "table5", *FEW, "-o", str(out))
    assert code == 0
    assert "Table 5" in shown
    assert "74.40" in shown  # the paper's
    assert "20 + 500 dev" in shown
    with (out / "graphs-laptop-graph-part.csv").open(encoding="utf-8") as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert rows["Self-training (Lee)"]["seeds"] == "2"
    assert {file.suffix for file in out.glob("graphs-*")} == {".md", ".tex", ".csv", ".html"}

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("nothing should be run")

    monkeypatch.setattr(running, "run", refuse)
    code, again, _ = call("bench", "graphs", *FEW, "-o", str(out))
    assert (code, again) == (0, shown)
    code, listed, _ = call("bench", "graphs", *FEW, "-o", str(out), "--dry-run")
    assert "graph  cora-10  Self-training (Lee)  finished" in listed
    more = ("--cells", "cora-10", "--methods", "self-training-lee,drift", "--seeds", "2")
    code, collected, _ = call("bench", "graphs", *more, "-o", str(out), "--collect")
    assert code == 0
    assert rows["Self-training (Lee)"]["mean"][:4] in collected
    assert "not run (about" in collected


def test_a_failure_is_told_at_the_end_and_the_rest_is_there(call: Call, data: Path, tmp_path: Path) -> None:
    arguments = ("--cells", "cora-10,citeseer-10", "--methods", "self-training-lee", "--seeds", "1", "--jobs", "1")
    code, shown, errors = call("bench", "graphs", *arguments, "-o", str(tmp_path / "bench"))
    assert code == 1
    assert "Self-training" in shown
    assert "citeseer-10 Self-training (Lee) (gcn, seed 0) failed: " in errors
    assert len(errors.strip().splitlines()) == 1
    assert len(list((tmp_path / "bench" / "cells").glob("*/result.json"))) == 1
