"""The process that trains: it reads jobs from standard input and writes results to standard output.

A process of its own, so that training never holds up a click, and a plain subprocess, so that a notebook or a script
without a main guard can start one. When the parent ends, however it ends, standard input closes, and the worker ends
too.
"""

import os
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from drift.annotate.heads import Heads, Lesson, Outcome, can_learn
from drift.annotate.messages import receive, send
from drift.annotate.policy import choose
from drift.annotate.word_heads import WordHeads

QUEUE = 30  # texts to ask about until the next round has been trained
NICE = 10  # a page, or anything else the person does, goes first


def work(heads: Heads | WordHeads, job: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Train on the labels of a job if they are enough, and choose what to ask next. Returns the arrays of the reply."""
    outcome: Outcome | None = None
    if can_learn(arrays["codes"]):
        lesson = Lesson(arrays["rows"], arrays["codes"], arrays["free"], bool(job["weak"]), int(job["seed"]))
        outcome = heads.teach(lesson, int(job["classes"]))
    reply: dict[str, Any] = {}
    probabilities, disagreement = arrays.get("initial"), None
    if outcome is not None:
        probabilities, disagreement = outcome.probabilities, outcome.disagreement
        reply = {name: getattr(outcome, name) for name in ("probabilities", "disagreement", "left_out", "shares")}
    ranked = choose(
        heads.items,
        arrays["free"],
        arrays["seen"],
        QUEUE,
        uncertainty=None if probabilities is None else heads.doubt(probabilities),
        disagreement=disagreement,
        predicted=None if probabilities is None else heads.predicted(probabilities),
        seed=int(job["number"]),
    )
    return {**reply, "queue": ranked.rows, "reasons": np.array(ranked.reasons, dtype="U12")}


def make_heads(vectors: np.ndarray, sizes: np.ndarray | None, heads: int) -> Heads | WordHeads:
    """Heads for texts, or for the words of sentences. sizes: words per sentence; None for texts."""
    return Heads(vectors, heads=heads) if sizes is None else WordHeads(vectors, sizes, heads=heads)


def main() -> None:
    """Serve the parent until it closes the pipe. The first message holds the vectors, or the name of their file."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not get into the messages
    if hasattr(os, "nice"):
        os.nice(NICE)
    first = receive(incoming)
    if first is None:
        return
    setup, arrays = first
    vectors = np.load(setup["file"], mmap_mode="r") if setup.get("file") else arrays["vectors"]
    heads = make_heads(vectors, arrays.get("sizes"), setup["heads"])
    while (message := receive(incoming)) is not None:
        job, given = message
        try:
            send(outgoing, {"number": job["number"]}, **work(heads, job, given))
        except BrokenPipeError:
            return
        except Exception as error:  # one failed round must not end the session
            print(f"drift annotate: a round of training failed ({error!r})", file=sys.stderr)
            send(outgoing, {"number": job["number"], "error": repr(error)})


if __name__ == "__main__":
    main()
