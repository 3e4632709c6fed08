"""`drift annotate` with many texts: time to the first text, time to save a label while training runs, memory.

    DRIFT_MODELS=... python benchmarks/annotate_load.py [--texts 100000] [--labels 200]

Starts the command on a table of generated texts whose vectors (random, as wide as those of the default encoder) are in
the cache, and labels through HTTP as the page does. The command is started twice: the second time it has been there
before, as for everyone who goes on with a session. Writes docs/results/annotate_load.json.
"""

import argparse
import csv
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from recorded import RESULTS

CLASSES = ["world", "sports", "business", "science"]
OUT = RESULTS / "annotate_load.json"
PAUSE = 0.25  # seconds between labels: four times as fast as a person
ROUNDS, MOST = 3, 1000  # label until so many rounds of training have ended, but at most so many texts


def prepare(folder: Path, count: int) -> None:
    """The table, and its vectors in the cache: four overlapping clusters."""
    from drift.annotate.vectors import text_embedder
    from drift.data.vector_store import text_keys

    words = [f"word{n}" for n in range(5000)]
    generator = np.random.default_rng(0)
    codes = generator.integers(len(CLASSES), size=count)
    lines = [
        f"{code} {row} " + " ".join(words[n] for n in generator.integers(5000, size=40))
        for row, code in enumerate(codes)
    ]
    with (folder / "texts.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["text"], *([line] for line in lines)])
    store = text_embedder("default")._vectors_store()
    vectors = generator.normal(size=(count, store.width)).astype(np.float32)
    vectors[:, : len(CLASSES)] += 4 * np.eye(len(CLASSES))[codes]
    store.write(text_keys(lines), np.zeros(count, dtype=bool), [vectors])


class Page:
    """The requests of the page."""

    def __init__(self, url: str) -> None:
        self.host, self.token = re.match(r"http://([^/]+)/([^/]+)/", url).groups()  # type: ignore[union-attr]
        self.connection = http.client.HTTPConnection(self.host)

    def ask(self, method: str, path: str, content: Any = None) -> Any:
        headers = {"Origin": f"http://{self.host}", "Content-Type": "application/json"} if content else {}
        body = json.dumps(content) if content else None
        self.connection.request(method, f"/{self.token}/api/{path}", body, headers)
        answer = self.connection.getresponse()
        return json.loads(answer.read())


def memory(pid: int) -> float:
    """Resident memory in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1000
    return 0.0


def cpu_seconds(pid: int) -> float:
    """Processor time of a process: what its start takes on a machine that does nothing else."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def measure(folder: Path, labels: int, out: str) -> dict[str, Any]:
    """Start the command, and give so many labels. out: where it writes them."""
    command = [sys.executable, "-u", "-m", "drift", "annotate", "texts.csv", "--classes", ", ".join(CLASSES)]
    began = time.monotonic()
    process = subprocess.Popen(
        [*command, "-o", out, "--no-browser", "--quiet"], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        url = next(found[1] for line in process.stdout if (found := re.match(r"Open (\S+)", line)))
        page = Page(url)
        question = page.ask("GET", "next?client=b")
        first, computed = time.monotonic() - began, cpu_seconds(process.pid)
        start = {"seconds_to_first_text": round(first, 2), "cpu_seconds_to_first_text": round(computed, 2)}
        if not labels:
            return start
        saved, training, rounds = [], [], 0
        while len(saved) < labels or (rounds < ROUNDS and len(saved) < MOST):
            name = CLASSES[int(question["text"].split()[0])]
            action = {"do": "label", "row": question["row"], "class": name, "ask": True, "client": "b"}
            sent = time.perf_counter()
            answer = page.ask("POST", "act", action)
            saved.append(1000 * (time.perf_counter() - sent))
            training.append(answer["progress"]["training"])
            rounds = answer["progress"]["rounds"]
            question = answer["question"]
            time.sleep(PAUSE)
        busy = np.array(saved)[np.array(training)]
        progress = page.ask("GET", "progress")
        workers = children(process.pid)
        return {
            "labels": len(saved),
            **start,
            "save_ms": {
                name: round(float(np.percentile(saved, q)), 1) for name, q in (("p50", 50), ("p95", 95), ("p99", 99))
            },
            "labels_while_training": len(busy),
            "save_ms_while_training": {
                name: round(float(np.percentile(busy, q)), 1) for name, q in (("p50", 50), ("p95", 95), ("p99", 99))
            },
            "rounds": progress["rounds"],
            "memory_mb": {"server": round(memory(process.pid)), "training": round(sum(map(memory, workers)))},
        }
    finally:
        process.kill()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--labels", type=int, default=200)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ["DRIFT_CACHE"] = str(Path(name) / "cache")
        prepare(Path(name), arguments.texts)
        load = os.getloadavg()[0]
        found = {"texts": arguments.texts, "load_average": round(load, 1), "cores": os.cpu_count()}
        found["first_start"] = measure(Path(name), 0, "first.csv")
        found |= measure(Path(name), arguments.labels, "labels.csv")
    OUT.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
