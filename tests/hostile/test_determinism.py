"""The same command gives the same bits; another number of threads gives the same up to rounding."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

KINDS = ("texts", "texts, fine-tuned", "nodes", "tokens", "feature vectors")
# Probabilities after a few steps. Sums in another order differ in their last bits, and training enlarges that.
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def predictions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, np.ndarray]]:
    """What models predict that were trained in fresh processes: twice with one thread, once with two."""
    found = {}
    for name, threads, hashes in (("once", 1, "1"), ("again", 1, "2"), ("two threads", 2, "3")):
        folder: Path = tmp_path_factory.mktemp("run")
        # Sets and dictionaries of strings have another order with another seed of hashes.
        environment = {**os.environ, "PYTHONHASHSEED": hashes, "OMP_NUM_THREADS": str(threads)}
        command = [sys.executable, "-W", "ignore", "-m", "tests.hostile.everything", str(folder), str(threads)]
        done = subprocess.run(command, env=environment, cwd=Path(__file__).parents[2], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        with np.load(folder / "predictions.npz") as arrays:
            found[name] = dict(arrays)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_command_gives_the_same_bits(predictions: dict[str, dict[str, np.ndarray]], kind: str) -> None:
    np.testing.assert_array_equal(predictions["once"][kind], predictions["again"][kind])
    assert np.ptp(predictions["once"][kind]) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_another_number_of_threads_changes_rounding_only(
    predictions: dict[str, dict[str, np.ndarray]], kind: str
) -> None:
    np.testing.assert_allclose(predictions["once"][kind], predictions["two threads"][kind], atol=TOLERANCE)
