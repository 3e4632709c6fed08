"""Where the seconds of a plain `drift fit` go: AG News with 40 labels, 15,000 texts and 2,000 test texts.

    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/fit_profile.py warm [--repeats 3] [--rows 15000]
    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/fit_profile.py cold

Each repeat is the command in a new process, with one thread. CPU time of the parts, without what they call of other
parts; medians over repeats. Cold: nothing is cached but the files of the packages. Warm: all vectors are cached, by a
run that is not counted if need be. Prints JSON, and writes docs/results/fit_profile.json.
"""

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from recorded import RESULTS

FILE = RESULTS / "fit_profile.json"
TARGETS = {"warm": 10.0, "cold": 15.0}  # seconds in all; seconds beside the computation of vectors
TEST_ROWS, LABELS = 2000, 10  # per class


def tables(folder: Path, rows: int) -> None:
    """Write train.csv, of which ten texts per class have a label, and test.csv."""
    import pandas as pd

    from cached_texts import texts_of

    for part, size in (("train", rows), ("test", TEST_ROWS)):
        texts, labels = texts_of("agnews", part, size)
        table = pd.DataFrame({"text": texts, "label": labels})
        if part == "train":
            table["label"] = table["label"].where(table.groupby("label").cumcount() < LABELS, "")
        table.to_csv(folder / f"{part}.csv", index=False)


def child(arguments: list[str]) -> None:
    """Run the command in this process and print the CPU time of its parts as the last line."""
    own: dict[str, float] = {}
    inner: list[float] = []  # time of nested parts, for each part that is running

    def timed(home: Any, name: str, part: str) -> None:
        function: Callable[..., Any] = getattr(home, name)

        @functools.wraps(function)
        def wrapper(*args: Any, **options: Any) -> Any:
            began = time.process_time()
            inner.append(0.0)
            try:
                return function(*args, **options)
            finally:
                took = time.process_time() - began
                own[part] = own.get(part, 0.0) + took - inner.pop()
                if inner:
                    inner[-1] += took

        setattr(home, name, wrapper)

    import drift.models.embedding as embedding
    import drift.models.encoders as encoders
    import drift.runs.fit  # noqa: F401, what the command imports before anything else
    import drift.runs.report as report
    import drift.tasks.text.students as students
    from drift.cli.main import app
    from drift.tasks.text.task import TextTask
    from drift.training.trainer import Trainer

    own["imports"] = time.process_time()
    timed(TextTask, "read", "reading the tables")
    timed(students, "late_encoder", "configuration and tokenizer")
    timed(encoders, "_load", "weights of the encoder")
    timed(embedding.Embedder, "embed", "looking up vectors")
    timed(embedding.Embedder, "_forward", "computing vectors")
    timed(Trainer, "_play", "training ten heads")
    timed(report, "write_report", "the page and its figures")
    app(prog_name="drift", standalone_mode=False, args=arguments)
    own["the rest"] = time.process_time() - sum(own.values())
    print("\n" + json.dumps(own))


def measure(folder: Path, cache: Path | None, number: int) -> dict[str, float]:
    options = [str(folder / "train.csv"), "--test", str(folder / "test.csv"), "-o", str(folder / f"run{number}")]
    command = [sys.executable, __file__, "child", "fit", *options, "--quiet"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | ({} if cache is None else {"DRIFT_CACHE": str(cache)})
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    parts: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return parts


def run(state: str, repeats: int, rows: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables(folder, rows)
        if state == "warm":
            measure(folder, None, 0)
        lines = [measure(folder, None if state == "warm" else folder / f"c{n}", n + 1) for n in range(repeats)]
    parts = {part: round(float(np.median([line[part] for line in lines if part in line])), 2) for part in lines[0]}
    total = float(np.median([sum(line.values()) for line in lines]))
    counted = total - parts.get("computing vectors", 0.0)
    result = {
        "command": "python benchmarks/" + " ".join([Path(__file__).name, *sys.argv[1:]]),
        "rows": rows,
        "repeats": repeats,
        "parts": parts,
        "total": round(total, 2),
        "target": TARGETS[state],
        "met": counted <= TARGETS[state],
    }
    known = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    text = json.dumps({**known, state: result}, indent=2)
    FILE.write_text(text + "\n", encoding="utf-8")
    print(text)


def main() -> None:
    if sys.argv[1:2] == ["child"]:
        child(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("state", choices=["warm", "cold"])
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--rows", type=int, default=15000)
    options = parser.parse_args()
    run(options.state, options.repeats or (3 if options.state == "warm" else 1), options.rows)


if __name__ == "__main__":
    main()
