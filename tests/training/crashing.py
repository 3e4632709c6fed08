"""A small run with checkpoints that is killed again and again; started by test_checkpoints.py, not a test itself.

    python tests/training/crashing.py FOLDER KILLS SEED

trains in child processes: each goes on from the newest checkpoint and is killed without warning, at a random moment or
inside the writing of a checkpoint; a last one is left alone, and the final state is written to FOLDER/final.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch

from drift import Game
from drift.core.randomness import random_state, set_random_state
from drift.data.batches import EndlessBatches
from drift.models.mlp import mlp
from drift.training.checkpoints import Checkpoints
from drift.training.loop import Batch, self_train

STEPS, EVERY = 120, 3


def train(folder: Path | None) -> dict[str, Any]:
    """Go on from the newest checkpoint, if there is one; without a folder, train in one go and save nothing."""
    torch.manual_seed(0)
    data = torch.Generator().manual_seed(1)
    X, y = torch.randn(64, 4, generator=data), torch.randint(0, 3, (64,), generator=data)
    student = mlp(4, 3, hidden=(16,), dropout=0.3)
    game = Game(student, alpha=0.9)
    optimizer = torch.optim.AdamW(student.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    rows = EndlessBatches(len(X), 10, torch.Generator().manual_seed(2))

    def state() -> dict[str, Any]:
        return {
            "student": dict(student.state_dict()),
            "game": game.state_dict(),
            "optimizer": optimizer.state_dict(),
            "schedule": schedule.state_dict(),
            "rows": rows.state_dict(),
            "random": random_state(),
        }

    checkpoints = Checkpoints(folder, fingerprint="crashing") if folder else None
    found = checkpoints.newest() if checkpoints else None
    if found:
        student.load_state_dict(found.state["student"])
        game.load_state_dict(found.state["game"])
        optimizer.load_state_dict(found.state["optimizer"])
        schedule.load_state_dict(found.state["schedule"])
        rows.load_state_dict(found.state["rows"])
        set_random_state(found.state["random"])
    for step in range(found.step + 1 if found else 1, STEPS + 1):
        chosen = next(rows)
        self_train(game, [Batch((X[chosen], y[chosen]), X[chosen.flip(0)])], optimizer)
        schedule.step()
        if checkpoints and step % EVERY == 0:
            checkpoints.save(step, state(), best=EVERY)
    return state()


def die_while_writing(chance: random.Random) -> None:
    """Be killed at one of the system calls that make a checkpoint whole."""
    name = chance.choice(["fsync", "replace", "mkdir"])
    real, countdown = getattr(os, name), chance.randint(1, 12)

    def deadly(*arguments: Any, **options: Any) -> Any:
        nonlocal countdown
        countdown -= 1
        if countdown == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)

    setattr(os, name, deadly)


def main(folder: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    for attempt in range(kills + 1):
        child = os.fork()
        if child == 0:
            if attempt % 2 and attempt < kills:
                die_while_writing(chance)
            train(folder)
            os._exit(0)
        if attempt < kills:
            time.sleep(chance.uniform(0.005, 0.12))
            os.kill(child, signal.SIGKILL)
        chance.random()  # the child drew from a copy
        _, status = os.waitpid(child, 0)
        print(attempt, "killed" if os.WIFSIGNALED(status) else f"ended with {os.WEXITSTATUS(status)}")
        if attempt == kills and status:
            sys.exit("the run left alone failed")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
