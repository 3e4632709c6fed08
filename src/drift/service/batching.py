"""One thread that computes; requests that wait for it are computed together."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from drift.tasks.service import Rows

MOST_ROWS = 256  # computed at once
Compute = Callable[[str, Sequence[Any]], Rows]


class FullError(Exception):
    """Too many rows are waiting."""


@dataclass
class Job:
    """Rows of one request. name: of their input."""

    name: str
    rows: Sequence[Any]
    future: "Future[Rows]" = field(default_factory=Future)


class Batcher:
    """Computes rows of several requests at once, in the order in which they came.

    While the thread computes, requests wait; then all that wait, up to `most_rows`, are the next batch. So a single
    request is computed at once, and under load the batches grow.

    compute: of rows of one input; called by one thread. most_waiting: more rows than these are refused.
    """

    def __init__(self, compute: Compute, *, most_rows: int = MOST_ROWS, most_waiting: int = 20 * MOST_ROWS) -> None:
        self.compute, self.most_rows, self.most_waiting = compute, most_rows, most_waiting
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """Rows that wait, without those that are computed now."""
        with self._changed:
            return self._rows()

    def submit(self, name: str, rows: Sequence[Any]) -> "Future[Rows]":
        """Results of these rows, later. A request that is cancelled while it waits is not computed."""
        job = Job(name, rows)
        with self._changed:
            if self._closed:
                raise FullError("the service ends")
            if self._jobs and self._rows() + len(rows) > self.most_waiting:
                raise FullError("too many rows are waiting")
            if self._thread is None:  # not earlier: a server may start its processes after this object is made
                self._thread = threading.Thread(target=self._run, name="drift-service", daemon=True)
                self._thread.start()
            self._jobs.append(job)
            self._changed.notify()
        return job.future

    def close(self) -> None:
        """Finish what waits, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _rows(self) -> int:
        return sum(len(job.rows) for job in self._jobs)

    def _run(self) -> None:
        while batch := self._next():
            self._answer(batch)

    def _next(self) -> list[Job]:
        """The jobs to compute now: of one input, the first one whatever its size. Empty when all is done."""
        with self._changed:
            while True:
                batch: list[Job] = []
                while self._jobs and (not batch or self._fits(batch, self._jobs[0])):
                    job = self._jobs.popleft()
                    if job.future.set_running_or_notify_cancel():
                        batch.append(job)
                if batch or self._closed:
                    return batch
                self._changed.wait()

    def _fits(self, batch: list[Job], job: Job) -> bool:
        rows = sum(len(each.rows) for each in batch) + len(job.rows)
        return job.name == batch[0].name and rows <= self.most_rows

    def _answer(self, batch: list[Job]) -> None:
        """Compute a batch. If that fails, each request is computed alone, so that one does not fail the others."""
        try:
            found = self.compute(batch[0].name, [row for job in batch for row in job.rows])
        except Exception as error:  # it belongs to the request: the thread goes on
            if len(batch) == 1:
                batch[0].future.set_exception(error)
                return
            for job in batch:
                self._answer([job])
            return
        start = 0
        for job in batch:
            job.future.set_result(found[start : start + len(job.rows)])
            start += len(job.rows)
