"""`drift fit` started as several processes: one run, one account, and a clean end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runs.small import metrics_of, small_encoder, small_table, write_csv

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
LAUNCH = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "drift"]


def test_two_processes_make_one_run_and_end_well(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "t.csv", small_table(24, labeled=8))
    dev = write_csv(tmp_path / "dev.csv", small_table(12, seed=1))
    settings = ("model.max_length=32", "training.initial_steps=2", "training.steps=2", "training.threads=1")
    steps = [word for setting in settings for word in ("--set", setting)]
    told = ["--text", "body", "--label", "topic", "--model", small_encoder(tmp_path / "encoder"), "--finetune"]
    run = subprocess.run(
        [*LAUNCH, "fit", table, "--dev", dev, *told, *steps, "--no-onnx", "--quiet", "-o", str(tmp_path / "run")],
        env={**os.environ, "OMP_NUM_THREADS": "1", "DRIFT_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert "Try next" in run.stdout  # flushed before the end
    found = metrics_of(tmp_path / "run")
    assert found["steps"] == 2  # a head takes the place of the first phase
    assert len(found["dev"]["scores"]) == 1
    assert (tmp_path / "run" / "report.html").exists()
