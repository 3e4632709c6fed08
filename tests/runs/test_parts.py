"""Folders of tables: the same bytes by one process and by a cluster that loses a worker; nothing is done twice."""

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import drift
from drift.cli.main import app
from drift.data.table_writer import TableWriter
from drift.errors import ConfigError, DataError, FileError, StateError
from drift.runs import parts
from drift.runs.parts import MANIFEST, Parts, label_parts, predict_parts
from drift.weak import label_table
from tests.runs.small import small_encoder, small_fit, small_table, write_csv

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'drift-ssl[text]'")

PARTS, ROWS = 6, 30
RULES = "classes: [money, sport]\nrules:\n  - {name: games, label: sport, has: [team, goal, coach, win]}\n"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, and a folder of Parquet parts."""
    base = tmp_path_factory.mktemp("parts")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRIFT_CACHE", str(base / "cache"))
        table = write_csv(base / "t.csv", small_table(24, labeled=8))
        small_fit(table, small_encoder(base / "encoder"), out=base / "run")
    (base / "parts").mkdir()
    for number in range(PARTS):
        with TableWriter(base / "parts" / f"part-{number}.parquet") as writer:
            writer.write({"body": small_table(ROWS, seed=number)["body"], "n": list(range(ROWS))})
    (base / "rules.yaml").write_text(RULES, encoding="utf-8")
    predict_parts(base / "run", base / "parts", base / "expected", n_jobs=1)
    return base


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != MANIFEST}


def test_every_part_has_its_predictions(base: Path) -> None:
    found = contents(base / "expected")
    assert sorted(found) == sorted(contents(base / "parts"))
    for name in found:
        labels = drift.predict(base / "run", base / "parts" / name)
        rows = [chunk.columns for chunk in drift_chunks(base / "expected" / name)]
        assert [label for columns in rows for label in columns["predicted"]] == labels
        assert [n for columns in rows for n in columns["n"]] == list(range(ROWS))


def drift_chunks(path: Path) -> Any:
    from drift.data.tables import read_chunks

    return read_chunks(path)


def test_what_is_finished_is_skipped_and_what_is_not_is_done(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    predict = parts.predict_file

    def stops(run: Any, source: Path, *args: Any, **options: Any) -> int:
        calls.append(source.name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return predict(run, source, *args, **options)

    monkeypatch.setattr(parts, "predict_file", stops)
    with pytest.raises(Exception, match="finished parts are kept"):
        predict_parts(base / "run", base / "parts", tmp_path / "out", n_jobs=1)
    assert len(contents(tmp_path / "out")) == 2
    done = predict_parts(base / "run", base / "parts", tmp_path / "out", n_jobs=1)
    assert (done.before, done.written, done.tally.rows) == (2, PARTS - 2, (PARTS - 2) * ROWS)
    assert calls[3:] == [f"part-{number}.parquet" for number in range(2, PARTS)]
    assert contents(tmp_path / "out") == contents(base / "expected")
    assert predict_parts(base / "run", base / "parts", tmp_path / "out").written == 0


def test_a_worker_that_dies_is_one_line(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_do", die)
    with pytest.raises(StateError, match=r"the workers stopped .* the same command continues") as error:
        predict_parts(base / "run", base / "parts", tmp_path / "out", n_jobs=2)
    assert "\n" not in str(error.value)


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_dask_worker_that_is_killed_costs_no_row(base: Path, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    done: list[Parts] = []
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        pids = client.run(os.getpid)
        address = cluster.scheduler_address

        def work() -> None:
            done.append(predict_parts(base / "run", base / "parts", tmp_path / "out", cluster=address))

        thread = threading.Thread(target=work)
        thread.start()
        os.kill(pids[busy_worker(client)], signal.SIGKILL)
        thread.join(300)
    assert len(done) == 1
    assert contents(tmp_path / "out") == contents(base / "expected")


def test_a_ray_worker_that_is_killed_costs_no_row(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray", reason="needs Ray: pip install 'drift-ssl[ray]'")
    monkeypatch.setenv("DRIFT_TEST", str(tmp_path))  # in the environment of our workers, and of no other
    done: list[Parts] = []

    def work() -> None:
        done.append(predict_parts(base / "run", base / "parts", tmp_path / "out", cluster="ray"))

    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        os.kill(busy_ray_worker(str(tmp_path)), signal.SIGKILL)
        thread.join(300)
        (tmp_path / "parts").mkdir()
        (tmp_path / "parts" / "part.csv").write_text("wrong\n1\n", encoding="utf-8")
        with pytest.raises(ConfigError, match="has no column"):
            predict_parts(base / "run", tmp_path / "parts", tmp_path / "wrong", cluster="ray")
    finally:
        ray.shutdown()
    assert [each.written for each in done] == [PARTS]
    assert contents(tmp_path / "out") == contents(base / "expected")


def busy_ray_worker(mark: str, seconds: float = 100) -> int:
    """The process of a worker that has begun with a part."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                busy = (process / "cmdline").read_bytes().startswith(b"ray::_do")
                if busy and f"DRIFT_TEST={mark}".encode() in (process / "environ").read_bytes().split(b"\0"):
                    return int(process.name)
        time.sleep(0.01)
    raise AssertionError("no worker was ever given a part")


def busy_worker(client: Any, seconds: float = 100) -> str:
    """The address of a worker that has begun with a part."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if busy := [worker for worker, calls in client.processing().items() if calls]:
            return str(busy[0])
        time.sleep(0.01)
    raise AssertionError("no worker was ever given a part")


def test_another_run_or_other_options_are_refused(base: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="begun with another run or other options"):
        predict_parts(base / "run", base / "parts", base / "expected", abstain_below=0.9)
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(FileError, match="holds other files"):
        predict_parts(base / "run", base / "parts", tmp_path)
    with pytest.raises(ConfigError, match="give another one to write"):
        predict_parts(base / "run", base / "parts", base / "parts")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no tables"):
        predict_parts(base / "run", tmp_path / "empty", tmp_path / "out")
    with pytest.raises(FileError, match="format"):
        predict_parts(base / "run", tmp_path, tmp_path / "out")


def test_rules_label_every_part(base: Path, tmp_path: Path) -> None:
    done = label_parts(base / "rules.yaml", base / "parts", tmp_path / "out", n_jobs=1)
    assert (done.written, done.tally.rows) == (PARTS, PARTS * ROWS)
    for name, content in contents(tmp_path / "out").items():
        label_table(base / "parts" / name, base / "rules.yaml", tmp_path / name)
        assert (tmp_path / name).read_bytes() == content


def test_on_the_command_line(base: Path, tmp_path: Path) -> None:
    command = ["predict", str(base / "run"), str(base / "parts"), "-o", str(tmp_path / "out"), "--jobs", "1", "--quiet"]
    first, again = (CliRunner().invoke(app, command) for _ in range(2))
    assert first.exit_code == again.exit_code == 0, first.output
    assert f"{PARTS} parts written, {PARTS * ROWS} rows\n" in first.output
    assert f"0 parts written, 0 rows, {PARTS} were there before" in again.output
    assert contents(tmp_path / "out") == contents(base / "expected")
    refused = CliRunner().invoke(app, ["predict", str(base / "run"), str(base / "t.csv"), "-o", "x.csv", "--jobs", "2"])
    assert "are for a folder of tables" in str(refused.exception)
    rules = ["label", str(base / "parts"), "--rules", str(base / "rules.yaml"), "-o", str(tmp_path / "weak")]
    assert CliRunner().invoke(app, rules).exit_code == 0
