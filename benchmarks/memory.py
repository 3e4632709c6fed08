"""Private memory while training on few and on many texts. The texts are on disk, so it should not grow with them.

Each number of rows is measured in its own process with an empty cache. Random short texts are streamed to disk and
tokenized, and an encoder with a linear head is trained by the game on batches drawn from all rows. Private memory is
RssAnon, which does not include the pages of mapped files; a thread reads it every 20 ms. Prints JSON: peak memory in MB
while tokenizing and while training, and the ratio of the last number of rows to the first. Linux only: it reads /proc.

    DRIFT_MODELS=~/models python benchmarks/memory.py --out docs/results/memory.json
    DRIFT_MODELS=~/models python benchmarks/memory.py --rows 1000,100000 --steps 20

The encoder is the folder paraphrase-MiniLM-L3-v2 in $DRIFT_MODELS.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch

import drift
from drift.data.batches import EndlessBatches
from drift.data.texts import store_texts
from drift.data.tokenized import TokenizedTexts, tokenize

ALPHA, TAU, LEARNING_RATE, BATCH, CLASSES, WORDS, MAX_LENGTH = 0.9, 0.5, 1e-5, 16, 4, 8, 32
TARGET = 1.10  # upper bound of the ratio
VOCABULARY = ["bank", "border", "budget", "coach", "court", "film", "game", "law", "market", "music", "oil", "plan"]


class PeakMemory(AbstractContextManager["PeakMemory"]):
    """Peak private memory of this process during the block, in MB."""

    def __enter__(self) -> "PeakMemory":
        self.megabytes = private_memory()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *fault: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            self.megabytes = max(self.megabytes, private_memory())


def private_memory() -> float:
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) / 1000  # type: ignore[index]


def texts(rows: int) -> Iterator[str]:
    rng = random.Random(0)
    for row in range(rows):
        yield " ".join([*rng.choices(VOCABULARY, k=WORDS), str(row)])


def train(student: torch.nn.Module, tokens: TokenizedTexts, steps: int) -> None:
    game = drift.Game(student, alpha=ALPHA, tau=TAU)
    optimizer = torch.optim.AdamW(student.parameters(), lr=LEARNING_RATE)
    batches = EndlessBatches(len(tokens), BATCH, torch.Generator().manual_seed(0))
    for _ in range(steps):
        game.backward(game.loss(unlabeled=tokens.inputs(next(batches))))
        optimizer.step()
        optimizer.zero_grad()
        game.follow()


def measure(rows: int, steps: int) -> dict[str, Any]:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = Path(os.environ.get("DRIFT_MODELS", "")).expanduser() / "paraphrase-MiniLM-L3-v2"
    if not folder.is_dir():
        sys.exit(f"no folder {folder.name} found; set DRIFT_MODELS to the folder that holds it")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with PeakMemory() as tokenizing:
        tokens = tokenize(store_texts(texts(rows)), tokenizer, max_length=MAX_LENGTH)
    torch.manual_seed(0)
    student = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32, num_labels=CLASSES)
    with PeakMemory() as training:
        train(student.train(), tokens, steps)
    return {"rows": rows, "tokenizing MB": round(tokenizing.megabytes), "training MB": round(training.megabytes)}


def in_a_new_process(rows: int, steps: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, __file__, "--rows", str(rows), "--steps", str(steps)]
        child = subprocess.run(command, env=os.environ | {"DRIFT_CACHE": cache}, stdout=subprocess.PIPE, check=True)
    return json.loads(child.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="10000,1000000", help="numbers of texts, in increasing order")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--out", type=Path, help="also write the JSON to this file")
    options = parser.parse_args()
    rows = [int(number) for number in options.rows.split(",")]
    if len(rows) == 1:
        print(json.dumps(measure(rows[0], options.steps)))
        return
    runs = [in_a_new_process(number, options.steps) for number in rows]
    ratio = runs[-1]["training MB"] / runs[0]["training MB"]
    result = {
        "command": "python " + " ".join(sys.argv),
        "steps": options.steps,
        "runs": runs,
        "ratio": round(ratio, 3),
        "target": TARGET,
        "met": ratio <= TARGET,
    }
    print(json.dumps(result, indent=2))
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
