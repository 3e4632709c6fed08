"""A small run with checkpoints that is killed again and again; started by test_checkpoints.py, not a test itself.

    python tests/training/crashing.py FOLDER KILLS SEED

trains in child processes: each goes on from the newest checkpoint and is killed without warning, at a random moment or
inside the writing of a checkpoint; a last one is left alone.
"""

import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

import torch

from drift.training.trainer import Trainer
from tests.training.runs import small_run, small_student

SETTINGS: dict[str, Any] = dict(initial_steps=30, steps=90, checkpoint_every=3, schedule="cosine", clip=1.0)


def prepared(folder: Path) -> Trainer:
    return small_run(folder, student=small_student(dropout=0.3), **SETTINGS)


def die_anywhere(chance: random.Random) -> None:
    """Be killed after some number of calls and returns, which is a few steps; not after some time, which may be all."""
    countdown = chance.randint(1, 100_000)

    def deadly(*_: Any) -> None:
        nonlocal countdown
        countdown -= 1
        if countdown == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(deadly)


def die_while_writing(chance: random.Random) -> None:
    """Be killed at one of the system calls that make a checkpoint whole."""
    name = chance.choice(["fsync", "replace", "mkdir"])
    real, countdown = getattr(os, name), chance.randint(1, 6)

    def deadly(*arguments: Any, **options: Any) -> Any:
        nonlocal countdown
        countdown -= 1
        if countdown == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)

    setattr(os, name, deadly)


def main(folder: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    prepared(folder).trace.close()  # what is to be done is written down once
    small_run().run()  # imports what is imported late, so that every child starts where it trains
    for attempt in range(kills + 1):
        child = os.fork()
        if child == 0:
            if attempt < kills:
                (die_while_writing if attempt % 2 else die_anywhere)(chance)
            prepared(folder).run(resume=True)
            os._exit(0)
        chance.random()  # the child drew from a copy
        _, status = os.waitpid(child, 0)
        saved = sorted(path.name for path in (folder / "checkpoints").glob("step-*"))
        print(attempt, "killed" if os.WIFSIGNALED(status) else f"ended with {os.WEXITSTATUS(status)}", saved[-1:])
        if attempt == kills and status:
            sys.exit("the run left alone failed")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
