"""A run that was stopped goes on to the bit; one that goes wrong stops before it does harm, and says where."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from drift.errors import Interrupted, StateError
from drift.training import snapshot
from drift.training.callbacks import Callback, TrainingState
from drift.training.run_folder import DIVERGED, TRACE
from drift.training.trainer import Trainer
from tests.training.runs import (
    SETTINGS,
    Seen,
    final_state,
    same_bits,
    small_data,
    small_run,
    small_student,
    stopped_after,
    weights,
)

EXACT = dict(schedule="cosine", warmup_steps=3, clip=1.0, patience=5)


@pytest.mark.parametrize("after", [1, 5, 8, 9, 14, 19])
def test_half_a_run_resumed_is_the_whole_run_to_the_bit(tmp_path: Path, after: int) -> None:
    """Stopped in either phase and at its ends; dropout, schedule, choice and trace included."""
    whole = small_run(tmp_path / "whole", student=small_student(dropout=0.3), **EXACT)
    outcome = whole.run()
    stopped = small_run(tmp_path / "run", student=small_student(dropout=0.3), kind=stopped_after(after), **EXACT)
    with pytest.raises(Interrupted, match=rf"and saved; continue with drift fit --resume -o {tmp_path / 'run'}"):
        stopped.run()
    with pytest.raises(ValueError, match="closed file"):  # it is, however a run ends
        stopped.trace.write({})
    again = small_run(tmp_path / "run", student=small_student(dropout=0.3, seed=9), **EXACT)
    resumed = again.run(resume=True)
    assert same_bits(final_state(again), final_state(whole))
    assert (tmp_path / "run" / TRACE).read_bytes() == (tmp_path / "whole" / TRACE).read_bytes()
    assert (resumed.steps, resumed.start, resumed.best, resumed.best_steps) == (
        outcome.steps,
        outcome.start,
        outcome.best,
        outcome.best_steps,
    )


def test_time_is_that_of_all_stretches(tmp_path: Path) -> None:
    stopped = small_run(tmp_path / "run", kind=stopped_after(5))
    with pytest.raises(Interrupted):
        stopped.run()
    again = small_run(tmp_path / "run")
    began = time.monotonic()
    outcome = again.run(resume=True)
    assert again.seconds_before > 0
    assert again.seconds_before < outcome.seconds <= again.seconds_before + time.monotonic() - began


def test_without_a_folder_a_stopped_run_says_that_nothing_was_saved() -> None:
    with pytest.raises(Interrupted, match="start phase, step 3 of 8; nothing was saved"):
        small_run(kind=stopped_after(3)).run()


CTRL_C = """
import sys
from pathlib import Path
from drift.errors import Interrupted
from tests.training.runs import small_run, small_student
run = small_run(Path(sys.argv[1]), student=small_student(dropout=0.3), steps=100_000, evaluate_every=20_000)
print("training", flush=True)
try:
    run.run()
except Interrupted as stopped:
    sys.exit(str(stopped))
"""


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    running = subprocess.Popen(
        [sys.executable, "-c", CTRL_C, str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout.readline() == "training\n"
    while not any(path.name > "step-000000020" for path in (folder / "checkpoints").glob("step-*")):  # second phase
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=60)
    assert running.returncode == 1
    assert told.strip().count("\n") == 0
    assert "stopped in the game phase, step " in told
    assert f"and saved; continue with drift fit --resume -o {folder}" in told

    reached = int(told.split("step ")[1].split(" of ")[0])
    options = dict(steps=100_000, evaluate_every=20_000)
    again = small_run(folder, student=small_student(dropout=0.3), kind=stopped_after(8 + reached + 5), **options)
    with pytest.raises(Interrupted):
        again.run(resume=True)
    whole = small_run(student=small_student(dropout=0.3), kind=stopped_after(8 + reached + 5), **options)
    with pytest.raises(Interrupted):
        whole.run()
    assert same_bits(final_state(again), final_state(whole))


def test_a_run_without_checkpoints_resumes_from_its_beginning(tmp_path: Path) -> None:
    whole = small_run()
    whole.run()
    small_run(tmp_path / "run").trace.write({"phase": "start", "step": 1, "loss": 1.0})  # all a crash left
    again = small_run(tmp_path / "run")
    again.run(resume=True)
    assert same_bits(final_state(again), final_state(whole))


class StopAfter(Callback):
    """Ends one phase after the first steps."""

    def __init__(self, phase: str, steps: int) -> None:
        self.phase, self.steps = phase, steps

    def on_step_end(self, state: TrainingState) -> None:
        state.stop = state.stop or (state.phase == self.phase and state.step == self.steps)


@pytest.mark.parametrize("phase", ["start", "game"])
def test_a_phase_that_a_callback_ended_does_not_continue_after_a_crash(tmp_path: Path, phase: str) -> None:
    class Crash(Callback):
        def on_phase_end(self, state: TrainingState) -> None:
            if state.phase == phase:
                raise OSError("no space left")

    whole = small_run(callbacks=[StopAfter(phase, 4)])
    outcome = whole.run()
    with pytest.raises(OSError, match="no space left"):
        small_run(tmp_path / "run", callbacks=[StopAfter(phase, 4), Crash()]).run()
    again = small_run(tmp_path / "run")
    assert again.run(resume=True).steps == outcome.steps == (4 + 12 if phase == "start" else 8 + 4)
    assert same_bits(final_state(again), final_state(whole))


@pytest.mark.parametrize("hook", ["on_phase_begin", "on_evaluate"])
def test_a_callback_that_stops_before_the_first_step_ends_the_phase_there(hook: str) -> None:
    class Stop(Callback):
        pass

    def stop(self: Callback, state: TrainingState, *_: Any) -> None:
        state.stop = state.playing

    setattr(Stop, hook, stop)
    assert small_run(callbacks=[Stop()]).run().steps == SETTINGS["initial_steps"]


def test_callbacks_are_restored_by_class_and_order(tmp_path: Path) -> None:
    class Count(Callback):
        def __init__(self) -> None:
            self.steps = 0

        def on_step_end(self, state: TrainingState) -> None:
            self.steps += 1

        def state_dict(self) -> dict[str, Any]:
            return {"steps": self.steps}

        def load_state_dict(self, state: Any) -> None:
            self.steps = state["steps"]

    class Losses(Count):
        def on_step_end(self, state: TrainingState) -> None:
            self.steps += 100

    with pytest.raises(Interrupted):
        small_run(tmp_path / "run", kind=stopped_after(5), callbacks=[Losses(), Count()]).run()
    count, losses, new = Count(), Losses(), Losses()
    small_run(tmp_path / "run", callbacks=[count, losses, new]).run(resume=True)
    assert (count.steps, losses.steps, new.steps) == (20, 2000, 1500)


# What is refused before it does harm.


class Breaks(nn.Module):
    """A student whose answers go wrong at one training step, counted from 1."""

    def __init__(self, at: int, factor: float) -> None:
        super().__init__()
        self.inner, self.at, self.factor, self.calls = small_student(), at, factor, 0

    def forward(self, x: Tensor) -> Tensor:
        logits = self.inner(x)
        if not self.training or not torch.is_grad_enabled():
            return logits
        self.calls += 1
        return logits * (self.factor if self.calls == self.at else 1.0)


@pytest.mark.parametrize(("factor", "fault"), [(float("nan"), "the loss is nan"), (1e6, "the loss has exploded")])
def test_a_bad_step_is_not_taken_and_told_with_its_rows(tmp_path: Path, factor: float, fault: str) -> None:
    """At step 3 of the second phase, in which every step calls the student twice."""
    broken = Breaks(SETTINGS["initial_steps"] + 6, factor)
    run = small_run(tmp_path / "run", student=broken, data=small_data(dev=False), kind=Seen)
    with pytest.raises(StateError, match=rf"^{fault}.* at step 3 of the game phase") as told:
        run.run()
    message = str(told.value)
    assert "\n" not in message
    assert f"the last good checkpoint is {tmp_path}/run/checkpoints/step-000000008" in message
    assert "lower learning_rate, or set clip" in message

    written = json.loads((tmp_path / "run" / DIVERGED).read_text())
    last = run.batches[1][-1]
    assert (written["phase"], written["step"]) == ("game", 3)
    assert written["rows"] == {"labeled": last.labeled_rows.tolist(), "unlabeled": last.unlabeled_rows.tolist()}
    assert f"labeled rows {', '.join(map(str, last.labeled_rows.tolist()))}" in message
    assert "and 8 more" in message  # of 16 unlabelled rows

    good = small_run(data=small_data(dev=False), kind=stopped_after(SETTINGS["initial_steps"] + 2))
    with pytest.raises(Interrupted):
        good.run()
    assert torch.equal(weights(broken.inner), weights(good.method.student))


def test_a_bad_first_step_says_that_there_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"step 1 of the start phase, on labeled rows .*; no checkpoint was written"):
        small_run(tmp_path / "run", student=Breaks(1, float("nan"))).run()


def test_a_checkpoint_of_another_version_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take = snapshot.take

    def older(run: Trainer) -> tuple[dict[str, Any], dict[str, Any]]:
        shared, own = take(run)
        return {name: value for name, value in shared.items() if name != "first_classes"}, own

    monkeypatch.setattr(snapshot, "take", older)
    with pytest.raises(Interrupted):
        small_run(tmp_path / "run", kind=stopped_after(14)).run()
    with pytest.raises(StateError, match="lacks 'first_classes': it was written by another version of drift"):
        small_run(tmp_path / "run").run(resume=True)
