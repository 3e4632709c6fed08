"""Two processes with parts of the batch train exactly the same as one process with the whole batch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from tests.core.spread import CASES, train

pytest.importorskip("transformers", reason="the small encoder comes from transformers: pip install 'drift-ssl[text]'")


@pytest.fixture(scope="module")
def spread(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tensor]:
    """Results of all cases with two real processes over gloo, started as a user starts them."""
    out = tmp_path_factory.mktemp("spread") / "result.safetensors"
    script = Path(__file__).with_name("spread.py")
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    finished = subprocess.run(
        [*launch, str(script), str(out)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    return load_file(out)


def furthest(spread: dict[str, Tensor], name: str, alone: dict[str, Tensor]) -> float:
    """The largest difference in any parameter of either player."""
    of_case = {key.removeprefix(f"{name}/"): tensor for key, tensor in spread.items() if key.startswith(f"{name}/")}
    assert of_case.keys() == alone.keys()
    return max(float((of_case[key] - alone[key]).abs().max()) for key in alone)


EXACT = {
    "mlp": 1e-9,
    "mlp-uneven": 1e-9,
    "mlp-detached": 1e-9,
    "mlp-sharded": 1e-9,
    "mlp-sharded-detached": 1e-9,
    "mlp-shared": 1e-9,
    "mlp-sharded-shared": 1e-9,
    "encoder": 1e-9,
    "encoder-sharded-shared": 1e-9,
    "encoder-sharded": 1e-9,
    # Adam divides by a running size of the gradient, which magnifies rounding where the true gradient is near 0. An
    # encoder's key biases have no true gradient at all (softmax ignores a shift), so Adam is compared on the MLP only.
    "mlp-adam": 1e-6,
}


@pytest.mark.parametrize("name", EXACT)
def test_two_processes_equal_one(name: str, spread: dict[str, Tensor]) -> None:
    assert furthest(spread, name, train(CASES[name])) < EXACT[name]


@pytest.mark.parametrize("name", ["mlp-naive", "encoder-naive"])
def test_class_masses_per_process_would_give_another_result(name: str, spread: dict[str, Tensor]) -> None:
    exact = CASES[name.removesuffix("-naive")]
    assert furthest(spread, name, train(exact)) > 1e-4


def test_gathering_leaves_the_incoming_gradient_unchanged(spread: dict[str, Tensor]) -> None:
    """Of the first process, whose gradient is 1 everywhere; that of the second is 2."""
    assert torch.equal(spread["gather/incoming"], torch.ones(4, 3))
    assert torch.equal(spread["gather/result"], torch.full((2, 3), 3.0))
