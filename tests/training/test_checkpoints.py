"""A run that dies goes on as if it had not; a damaged checkpoint is never taken for a whole one."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from drift.errors import FileError, StateError
from drift.training.checkpoints import CONTENT, TENSORS, Checkpoints
from drift.training.run_folder import TRACE
from tests.training import crashing
from tests.training.runs import final_state, same_bits

STATE = {"weights": torch.arange(4.0), "best": -float("inf"), "rows": (1, 2)}


def saved(folder: Path, *steps: int, **options: object) -> Checkpoints:
    checkpoints = Checkpoints(folder, keep=3, fingerprint="a", **options)
    for step in steps:
        checkpoints.save(step, {**STATE, "step": step}, {"random": torch.arange(step)})
    return checkpoints


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_twenty_kills_do_not_change_a_bit(tmp_path: Path) -> None:
    """SIGKILL at random moments and inside the writing of checkpoints; then one run that is left alone."""
    finished = subprocess.run(
        [sys.executable, crashing.__file__, str(tmp_path / "run"), "20", "0"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert finished.stdout.count("killed") == 20
    assert not list((tmp_path / "run" / "checkpoints").glob(".*"))

    survivor = crashing.prepared(tmp_path / "run")
    survivor.run(resume=True)  # at the end already: nothing is left but to read it back
    whole = crashing.prepared(tmp_path / "whole")
    whole.run()
    assert same_bits(final_state(survivor), final_state(whole))
    assert (tmp_path / "run" / TRACE).read_bytes() == (tmp_path / "whole" / TRACE).read_bytes()


def test_the_newest_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    for step in range(1, 7):
        checkpoints.save(step, STATE)
    assert names(tmp_path) == ["step-000000005", "step-000000006"]


def test_what_all_share_and_what_is_a_processs_own_come_back_apart(tmp_path: Path) -> None:
    found = saved(tmp_path, 1, 3).newest()
    assert same_bits(found.state, {**STATE, "step": 3})
    assert same_bits(found.own, {"random": torch.arange(3)})
    assert names(tmp_path / "step-000000003") == [
        f"process-0-{CONTENT}",
        f"process-0-{TENSORS}",
        CONTENT,
        TENSORS,
    ]


def test_none_is_no_checkpoint(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path / "nowhere").newest() is None


def test_steps_are_ordered_as_numbers(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 9, 10, 100)
    assert checkpoints.newest().step == 100


@pytest.mark.parametrize("file", [TENSORS, CONTENT, f"process-0-{TENSORS}", f"process-0-{CONTENT}"])
@pytest.mark.parametrize("damage", ["cut", "flip", "gone", "empty"])
def test_a_damaged_one_is_passed_over_for_the_one_before(tmp_path: Path, file: str, damage: str) -> None:
    checkpoints = saved(tmp_path, 1, 2)
    path = tmp_path / "step-000000002" / file
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 0x80]) + content[middle + 1 :]
        path.write_bytes({"cut": content[:middle], "flip": flipped, "empty": b""}[damage])
    with pytest.warns(UserWarning, match="step-000000002.*continuing from step-000000001"):
        found = checkpoints.newest()
    assert found.step == 1
    assert torch.equal(found.state["weights"], STATE["weights"])


def test_all_damaged_is_an_error_that_names_them(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 1)
    (tmp_path / "step-000000001" / TENSORS).write_bytes(b"")
    with pytest.raises(FileError, match=r"no complete checkpoint.*step-000000001"):
        checkpoints.newest()


def test_another_runs_checkpoint_is_refused(tmp_path: Path) -> None:
    saved(tmp_path, 1)
    with pytest.raises(StateError, match="other settings"):
        Checkpoints(tmp_path, fingerprint="b").newest()


def test_another_programs_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "step-000000001"
    folder.mkdir()
    (folder / CONTENT).write_text('{"format": "other/1"}')
    with pytest.raises(FileError, match="other/1"):
        Checkpoints(tmp_path).newest()


def test_a_number_changed_by_hand_is_noticed(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 1)
    path = tmp_path / "step-000000001" / CONTENT
    path.write_text(path.read_text().replace("[1, 2]", "[1, 3]"))
    with pytest.raises(FileError, match="checksum"):
        checkpoints.newest()


def test_a_full_disk_keeps_the_one_before_and_says_so(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # the kernel refuses to write further
    try:
        with pytest.raises(FileError, match=r"step-000000002 could not be written.*step-000000001 is kept"):
            checkpoints.save(2, {"weights": torch.zeros(10_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names(tmp_path) == ["step-000000001"]
    assert checkpoints.newest().step == 1


def test_a_save_that_fails_keeps_the_one_before_and_says_so(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 1)
    (tmp_path / "step-000000002").write_text("a file is in the way")
    with pytest.raises(FileError, match=r"step-000000002 could not be written.*is kept"):
        checkpoints.save(2, STATE)
    (tmp_path / "step-000000002").unlink()
    assert checkpoints.newest().step == 1
