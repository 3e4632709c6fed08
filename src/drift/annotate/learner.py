"""The learner of a session: rounds of training in another process, or in this one."""

import mmap
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from drift.annotate.messages import receive, send
from drift.errors import StateError

HEADS = 5  # one per fold of the labels; more of them predict the same
MOST_STARTS = 4  # of the training process, if it keeps ending


@dataclass(frozen=True)
class Vectors:
    """Vectors of texts, `(n, D)`; or of words, `(words, D)`, with the number of words of each sentence, `(n,)`."""

    array: np.ndarray
    sizes: np.ndarray | None = None


@dataclass(frozen=True)
class Job:
    """A round of training.

    rows, codes: labelled rows and the position of the class of each in `ids`; of each word, for sentences. free: rows
    that may be asked about. seen: rows that were labelled or skipped. ids: class numbers. weak: the labels are noisy.
    initial: probabilities `(n, C)` that exist before there is a model; of all words, for sentences.
    """

    number: int
    ids: list[int]
    rows: np.ndarray
    codes: np.ndarray
    free: np.ndarray
    seen: np.ndarray
    weak: bool = False
    seed: int = 0
    initial: np.ndarray | None = None


@dataclass(frozen=True)
class Result:
    """What a round gave. probabilities, left_out, disagreement: None if there were too few labels to train."""

    job: Job
    queue: list[tuple[int, str]]
    probabilities: np.ndarray | None = None
    disagreement: np.ndarray | None = None
    left_out: np.ndarray | None = None
    error: str = ""
    shares: np.ndarray | None = field(default=None, compare=False)


def _message(job: Job) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    fields = {"number": job.number, "classes": len(job.ids), "weak": job.weak, "seed": job.seed}
    arrays = {name: getattr(job, name) for name in ("rows", "codes", "free", "seen")}
    return fields, arrays if job.initial is None else {**arrays, "initial": job.initial}


def _result(job: Job, arrays: dict[str, np.ndarray], error: str = "") -> Result:
    queue = list(zip(arrays.pop("queue").tolist(), arrays.pop("reasons").tolist(), strict=True)) if arrays else []
    return Result(job, queue, error=error, **arrays)


class InlineLearner:
    """Trains in this process: a call of `submit` returns when the round is done."""

    busy = False

    def __init__(self, vectors: Vectors, done: Callable[[Result], None], *, heads: int = HEADS) -> None:
        self.vectors, self.done = vectors, done
        self._count = heads
        self._heads: Any = None

    def submit(self, job: Job) -> None:
        from drift.annotate.worker import make_heads, work  # late: a page, which trains elsewhere, opens sooner without

        self._heads = self._heads or make_heads(self.vectors.array, self.vectors.sizes, self._count)
        fields, arrays = _message(job)
        self.done(_result(job, work(self._heads, fields, arrays)))

    def wait(self, seconds: float | None = None) -> bool:
        return True

    def close(self) -> None:
        """Nothing to end."""


class Learner:
    """Trains in another process. A job that waits is replaced by a newer one.

    done: called with every result, in a thread of its own.
    """

    def __init__(self, vectors: Vectors, done: Callable[[Result], None], *, heads: int = HEADS) -> None:
        self.done = done
        self._vectors, self._heads = vectors, heads
        self._condition = threading.Condition()
        self._running: Job | None = None
        self._waiting: Job | None = None
        self._closed = self._ready = False
        self._starts = 0
        self._start()

    @property
    def busy(self) -> bool:
        """Whether a round is being trained."""
        with self._condition:
            return self._working

    @property
    def _working(self) -> bool:
        return self._running is not None or self._waiting is not None

    def submit(self, job: Job) -> None:
        """Train on these labels as soon as the current round is done."""
        with self._condition:
            if self._closed:
                raise StateError("the session is closed; open it again")
            self._waiting = job
            self._next()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until all rounds are done; returns whether they are."""
        with self._condition:
            return self._condition.wait_for(lambda: self._closed or not self._working, seconds)

    def close(self) -> None:
        """End the process."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        with suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(0.2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _start(self) -> None:
        self._starts += 1
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "drift.annotate.worker"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
        threading.Thread(target=self._serve, name="drift annotate: training", daemon=True).start()

    def _serve(self) -> None:
        """Send the vectors, then wait for results."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        vectors, sizes = self._vectors.array, self._vectors.sizes
        file = _file_of(vectors)
        arrays = {} if sizes is None else {"sizes": sizes}
        try:
            if file is not None:
                send(process.stdin, {"file": file, "heads": self._heads}, **arrays)
            else:
                send(process.stdin, {"heads": self._heads}, vectors=np.asarray(vectors), **arrays)
            with self._condition:
                self._ready = True
                self._next()
            while (message := receive(process.stdout)) is not None:
                self._finish(*message)
        except (OSError, ValueError):  # the process is gone
            pass
        with self._condition:
            self._running = None
            self._condition.notify_all()
            if self._closed:
                return
            self._ready = False
            if self._starts >= MOST_STARTS:
                self._waiting = None
        again = self._starts < MOST_STARTS
        print(
            "drift annotate: the training process ended;"
            f" {'it is started again' if again else 'labels are saved, but the model no longer learns'}",
            file=sys.stderr,
        )
        if again:
            self._start()

    def _next(self) -> None:
        """Send the job that waits, if the process is free. Called with the lock held."""
        if self._ready and self._running is None and self._waiting is not None and not self._closed:
            self._running, self._waiting = self._waiting, None
            fields, arrays = _message(self._running)
            assert self._process.stdin is not None
            with suppress(OSError):
                send(self._process.stdin, fields, **arrays)

    def _finish(self, message: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        with self._condition:
            job = self._running
        if job is None or message["number"] != job.number:
            return
        self.done(_result(job, arrays, message.get("error", "")))
        with self._condition:
            self._running = None
            self._next()
            if self._running is None:
                self._condition.notify_all()


def _file_of(vectors: np.ndarray) -> str | None:
    """The npy file that holds exactly these vectors, if they are memory-mapped from one and not a part of it."""
    if not (isinstance(vectors, np.memmap) and isinstance(vectors.base, mmap.mmap)):
        return None
    try:
        whole = np.load(str(vectors.filename), mmap_mode="r")
    except (OSError, ValueError):
        return None
    same = whole.shape == vectors.shape and whole.dtype == vectors.dtype and whole.offset == vectors.offset
    return str(vectors.filename) if same else None
