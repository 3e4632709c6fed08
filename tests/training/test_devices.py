"""Several processes train what one would; precision and trackers that cannot be had are refused in one line."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from drift.data.examples import Labeled, Unlabeled, Vectors
from drift.errors import ConfigError, StateError
from drift.models.gcn import GCN
from drift.training.devices import Accelerated, SingleProcess
from drift.training.feeds import Feed
from drift.training.packing import pack, unpack
from tests.training import spread_training
from tests.training.runs import clouds, small_run, small_student
from tests.training.spread_training import CASES, RESUMED, STOPS, train, trainer

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
ACCELERATE = ["-m", "accelerate.commands.accelerate_cli", "launch"]
TWO = [
    *("--num_processes", "2", "--num_machines", "1", "--main_process_port", "0"),
    *("--mixed_precision", "no", "--dynamo_backend", "no"),
]
EXPECTED = {  # pieces must equal the whole; other cases themselves
    "exact": "plain",
    "unbalanced-pieces": "unbalanced",
    "shared-exact": "shared",
    "shared-pieces": "shared-unbalanced",
}
SPREAD = [case for case in CASES if case not in ("unbalanced", "shared-unbalanced")]
LAUNCHED = {
    "torchrun": (TORCHRUN, [*SPREAD, "resumed", "diverged"]),
    "fsdp": ([*ACCELERATE, "--use_fsdp", "--fsdp_version", "2", *TWO], [*SPREAD, "resumed"]),
    "accelerate": ([*ACCELERATE, "--multi_gpu", *TWO], ["plain"]),
}


class Launched:
    """What each launcher's processes came to; started when first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results: dict[str, dict[str, Tensor]] = {}

    def __getitem__(self, launcher: str) -> dict[str, Tensor]:
        if launcher not in self.results:
            options, cases = LAUNCHED[launcher]
            out = self.folder / launcher
            out.mkdir()
            finished = subprocess.run(
                [sys.executable, *options, spread_training.__file__, str(out), *cases],
                env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            assert finished.returncode == 0, finished.stderr[-3000:]
            self.results[launcher] = load_file(out / "result.safetensors")
        return self.results[launcher]


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Launched:
    return Launched(tmp_path_factory.mktemp("launched"))


@pytest.mark.parametrize(
    ("launcher", "case"),
    [(launcher, case) for launcher, (_, cases) in LAUNCHED.items() for case in cases if case in CASES],
)
def test_two_processes_equal_one(launched: Launched, launcher: str, case: str) -> None:
    """Weights of both players, the score and the step chosen, and every traced loss."""
    found = launched[launcher]
    assert int(found["processes"]) == 2
    assert bool(found["sharded"]) == (launcher == "fsdp")
    for name, value in train(EXPECTED.get(case, case), SingleProcess()).items():
        assert torch.allclose(found[f"{case}/{name}"], value, rtol=0, atol=1e-9), name


@pytest.mark.parametrize("phase", STOPS)
@pytest.mark.parametrize("launcher", ["torchrun", "fsdp"])
def test_stopped_and_resumed_over_processes_is_the_whole_run_to_the_bit(
    launched: Launched, launcher: str, phase: str
) -> None:
    found = launched[launcher]
    names = [name.removeprefix("resumed/whole/") for name in found if name.startswith("resumed/whole/")]
    assert len(names) == 8  # weights and biases of two layers of two players
    for name in names:
        assert torch.equal(found[f"resumed/{phase}/{name}"], found[f"resumed/whole/{name}"]), name


@pytest.mark.parametrize("launcher", ["torchrun", "fsdp"])
def test_resuming_with_another_number_of_processes_is_refused(launched: Launched, launcher: str) -> None:
    assert launched[launcher]
    run = trainer(SingleProcess(), launched.folder / launcher / "whole", dropout=0.3, **RESUMED)
    with pytest.raises(StateError, match=r"over 2 processes, this one has 1; resume with as many"):
        run.run(resume=True)


def test_a_fault_of_one_process_is_told_with_the_rows_of_all(launched: Launched) -> None:
    assert launched["torchrun"]
    told = json.loads((launched.folder / "torchrun" / "diverged" / "diverged.json").read_text())
    assert (told["phase"], told["step"]) == ("start", 1)
    assert sorted(told["rows"]["labeled"]) == list(range(24))


@pytest.mark.parametrize("by_length", [True, False])
def test_no_row_comes_twice_in_an_epoch_whichever_process_sees_it(by_length: bool) -> None:
    x, y = clouds(96)
    rows = torch.arange(96)
    examples = Vectors(x, lengths=(rows.numpy() * 7) % 11)
    parts = (Labeled(examples, rows[:32], y[:32]), Unlabeled(examples, rows[32:]))
    feeds = [
        Feed(
            *parts,
            batch_size=8,
            unlabeled_batch_size=16,
            seeds=(0,),
            by_length=by_length,
            process=process,
            processes=2,
            micro_batches=2,
        )
        for process in range(2)
    ]
    for _ in range(3):  # epochs: 4 steps are one of both parts
        seen = [batch for _ in range(4) for feed in feeds for batch in next(feed)]
        assert sorted(torch.cat([batch.labeled_rows for batch in seen]).tolist()) == list(range(32))
        assert sorted(torch.cat([batch.unlabeled_rows for batch in seen]).tolist()) == list(range(32, 96))


def test_a_batch_too_small_to_share_is_refused() -> None:
    x, y = clouds(3)
    with pytest.raises(ConfigError, match="3 labelled rows for 2 processes with 2 micro-batches"):
        Feed(
            Labeled(Vectors(x), torch.arange(3), y),
            None,
            batch_size=8,
            unlabeled_batch_size=8,
            seeds=(0,),
            processes=2,
            micro_batches=2,
        )


def test_bf16_trains_and_keeps_weights_in_float32() -> None:
    run = small_run(machine=Accelerated(precision="bf16"), precision="bf16", initial_steps=40, trace_every=1)
    outcome = run.run()
    assert {parameter.dtype for parameter in run.method.student.parameters()} == {torch.float32}
    losses = [entry["loss"] for entry in outcome.entries if "loss" in entry and entry["phase"] == "start"]
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])
    plain = small_run(initial_steps=40, trace_every=1).run()
    assert losses != [entry["loss"] for entry in plain.entries if "loss" in entry and entry["phase"] == "start"]


def scaling(scale: float) -> Accelerated:
    """A machine whose losses are scaled as for fp16, which only GPUs have."""
    machine = Accelerated()
    machine.accelerator.native_amp, machine.accelerator.state._mixed_precision = True, "fp16"
    machine.accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    return machine


def test_scaled_gradients_are_unscaled_once_in_every_phase() -> None:
    machine, student, x = scaling(1024.0), small_student(), clouds(8)[0]

    def norm() -> float:
        return float(torch.cat([parameter.grad.flatten() for parameter in student.parameters()]).norm())

    student(x).logsumexp(-1).mean().backward()
    expected = norm()
    for _ in ("start", "game"):
        student.zero_grad()
        optimizer = machine.wrap_optimizer(torch.optim.SGD(student.parameters(), lr=0.0))
        machine.backward(student(x).logsumexp(-1).mean())
        machine.clip(student, 1e9)
        assert norm() == pytest.approx(expected)
        optimizer.step()


def test_the_scale_of_losses_goes_on() -> None:
    first, second = scaling(512.0), scaling(65536.0)
    second.load_state_dict(unpack(*pack(first.state_dict())))
    assert second.accelerator.scaler.get_scale() == 512.0
    assert Accelerated().state_dict() == {}


@pytest.mark.parametrize("settings", [{"accumulation": 2}, {"machine": "two"}])
def test_a_model_of_a_whole_graph_is_not_cut_up(settings: dict[str, Any]) -> None:
    machine = SingleProcess()
    if settings.pop("machine", None):
        machine.processes = 2
    nodes = torch.arange(12)
    student = GCN(torch.rand(12, 4), torch.stack([nodes, nodes.roll(1)]), 3, seeds=[0])
    with pytest.raises(ConfigError, match=r"^GCN computes all rows .*; use one process and training.accumulation=1$"):
        small_run(student=student, machine=machine, **settings)


def test_a_machine_of_one_process_is_no_other_than_none_at_all() -> None:
    runs = [small_run(machine=machine) for machine in (SingleProcess(), Accelerated())]
    for run in runs:
        run.run()
    states = [run.machine.whole_state(run.method.student) for run in runs]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


@pytest.mark.parametrize("options", [{"precision": "fp16"}, {"trackers": ("paper",)}])
@pytest.mark.skipif(torch.accelerator.is_available(), reason="fp16 can be had with a GPU")
def test_what_cannot_be_had_is_refused_in_one_line(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"fp16|paper") as told:
        Accelerated(**options)
    assert "\n" not in str(told.value)


def test_curves_go_to_the_tracker_in_the_runs_folder(tmp_path: Path) -> None:
    machine = Accelerated(trackers=("tensorboard",), folder=tmp_path)
    small_run(tmp_path / "run", machine=machine, trackers=("tensorboard",)).run()
    (written,) = (tmp_path / "tracking" / "drift").glob("events.*")
    assert b"game/dev_accuracy" in written.read_bytes()
