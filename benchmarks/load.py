"""Large inputs: seconds, rows per second, and memory over time. `python benchmarks/load.py CASE --rows 1000000`.

Each case makes its data, then runs the commands as a user does, in a terminal of their own, so that bars are drawn. The
memory is that of the process: its peak as the system counts it, and a curve, read from /proc twice per second. Every
command adds a line to docs/results/load.jsonl.
"""

import argparse
import json
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from recorded import RESULTS, add_line

WORDS = {
    "money": ["stock", "market", "profit", "bank", "shares", "price", "trade", "investor", "economy", "fund"],
    "sport": ["team", "game", "match", "player", "goal", "coach", "league", "score", "win", "season"],
}
OTHER = "the a of and to in on with for from this that we they today new old good large".split()  # noqa: SIM905
RULES = "rules:\n" + "".join(
    f"- {{name: {name}, label: {name}, has: [{', '.join(words[:5])}]}}\n" for name, words in WORDS.items()
)
MOMENTS = 10  # of the curve of memory


def write_table(path: Path, rows: int, labeled: int = 0, seed: int = 0) -> None:
    """Texts of two classes, twelve words with a number, so that all differ."""
    generator = np.random.default_rng(seed)
    texts = [
        (" ".join([*generator.choice(WORDS[topic], 3), *generator.choice(OTHER, 8)]), topic)
        for topic in ("money", "sport") * 2500
    ]
    with path.open("w") as file:
        file.write("text,label\n")
        for row in range(rows):
            text, topic = texts[row % len(texts)]
            file.write(f"{text} {row},{topic if row < labeled else ''}\n")


def memory(pid: int) -> float:
    """The memory of a process, in MB."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"VmRSS:\s+(\d+)", status)
    return int(found[1]) / 1024 if found else 0.0


def measured(folder: Path, *arguments: str, rows: int) -> dict[str, object]:
    """Run a command in a terminal; seconds, rows per second, peak and curve of memory, and the end of its bar."""
    primary, secondary = pty.openpty()
    begin, curve, shown = time.monotonic(), [], b""
    command = [sys.executable, "-m", "drift", *arguments]
    process = subprocess.Popen(command, cwd=folder, stdout=secondary, stderr=secondary, stdin=subprocess.DEVNULL)
    os.close(secondary)
    while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
        if not curve or time.monotonic() - begin > 0.5 * len(curve):
            curve.append(memory(process.pid))
        if select.select([primary], [], [], 0.5)[0]:
            with suppress(OSError):  # the other end is closed
                shown = (shown + os.read(primary, 65536))[-200_000:]
    seconds, (_, status, usage) = time.monotonic() - begin, ended
    process.returncode = os.waitstatus_to_exitcode(status)
    plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", shown).decode(errors="replace")
    bars = [
        line.strip()
        for line in re.split(r"[\r\n]", plain)
        if re.match(r"(Predicting|Labelling|Embedding)", line.strip())
    ]
    if process.returncode:
        print(plain[-2000:], file=sys.stderr)
    places = [round(position * (len(curve) - 1) / MOMENTS) for position in range(1, MOMENTS + 1)]
    processor = usage.ru_utime + usage.ru_stime
    return {
        "command": "drift " + " ".join(arguments),
        "exit": process.returncode,
        "rows": rows,
        "seconds": round(seconds, 1),
        "processor_seconds": round(processor, 1),
        "rows_per_second": round(rows / seconds),
        "rows_per_processor_second": round(rows / processor),
        "peak_mb": round(usage.ru_maxrss / 1024),
        "curve_mb": [round(curve[place]) for place in places],
        "bar": " ".join(bars[-1].split()) if bars else "",
        "last_line": plain.strip().splitlines()[-1][:200] if plain.strip() else "",
    }


def predict(folder: Path, rows: int):
    """A TextCNN, and a table of different texts."""
    write_table(folder / "train.csv", 400, labeled=60, seed=1)
    steps = ("--set", "training.steps=30", "--set", "training.initial_steps=60")
    yield measured(folder, "fit", "train.csv", "--model", "textcnn", *steps, "-o", "run", rows=400)
    for count in (rows // 10, rows):
        write_table(folder / f"{count}.csv", count)
        yield measured(folder, "predict", "run", f"{count}.csv", "-o", f"out-{count}.csv", rows=count)


def label(folder: Path, rows: int):
    (folder / "rules.yaml").write_text(RULES)
    for count in (rows // 10, rows):
        write_table(folder / f"{count}.csv", count)
        yield measured(folder, "label", f"{count}.csv", "--rules", "rules.yaml", "-o", f"l-{count}.csv", rows=count)


def classes(folder: Path, rows: int):
    """1,000 classes, each with words of its own; 5 labels per class."""
    generator = np.random.default_rng(0)
    number = 1000
    with (folder / "train.csv").open("w") as file:
        file.write("text,label\n")
        for row in range(rows):
            own = row % number
            words = [f"w{own // 32}", f"v{own % 32}", *generator.choice(OTHER, 4)]
            file.write(f"{' '.join(words)} {row},{f'class {own}' if row < 5 * number else ''}\n")
    yield measured(folder, "fit", "train.csv", "--model", "paraphrase-MiniLM-L3-v2", "-o", "run", rows=rows)
    yield measured(folder, "predict", "run", "train.csv", "-o", "out.csv", rows=rows)


def megabytes(folder: Path, rows: int):
    """Texts of a megabyte; the encoder reads their beginning."""
    generator = np.random.default_rng(0)
    with (folder / "train.csv").open("w") as file:
        file.write("text,label\n")
        for row in range(rows):
            topic = ("money", "sport")[row % 2]
            words = generator.choice([*WORDS[topic], *OTHER], 220_000)
            file.write(f"{' '.join(words)[: 2**20]},{topic if row < rows // 2 else ''}\n")
    (folder / "rules.yaml").write_text(RULES)
    yield measured(folder, "label", "train.csv", "--rules", "rules.yaml", "-o", "l.csv", rows=rows)
    yield measured(folder, "fit", "train.csv", "--model", "paraphrase-MiniLM-L3-v2", "-o", "run", rows=rows)
    yield measured(folder, "predict", "run", "train.csv", "-o", "out.csv", rows=rows)


def nodes(folder: Path, rows: int):
    """A graph of ten classes with 20 labels per class; all other nodes have none."""
    generator = np.random.default_rng(0)
    labels = np.arange(rows) % 10
    order = generator.permutation(rows // 10)
    edges = []
    for _ in range(4):  # within the class of a node, and one edge in five anywhere
        shift = generator.integers(1, rows // 10, rows)
        other = (np.arange(rows) // 10 + shift) % (rows // 10) * 10 + labels
        anywhere = generator.random(rows) < 0.2
        edges.append(np.stack([np.arange(rows), np.where(anywhere, generator.integers(0, rows, rows), other)]))
    features = generator.random((rows, 50), dtype=np.float32) + np.eye(50, dtype=np.float32)[labels] / 2
    known = np.where(np.isin(np.arange(rows) // 10, order[:20]), labels, -1)
    names = np.array([f"c{code}" if code >= 0 else "" for code in known])
    np.savez(folder / "graph.npz", x=features, edge_index=np.concatenate(edges, 1), y=names)
    yield measured(folder, "fit", "--task", "nodes", "--graph", "graph.npz", "-o", "run", rows=rows)
    yield measured(folder, "predict", "run", "graph.npz", "-o", "out.csv", rows=rows)


CASES = {"predict": predict, "label": label, "classes": classes, "megabytes": megabytes, "nodes": nodes}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--rows", type=int, required=True)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["DRIFT_CACHE"] = str(Path(scratch) / "cache")
        for done in CASES[chosen.case](Path(scratch), chosen.rows):
            print(json.dumps(done), flush=True)
            add_line(RESULTS / "load.jsonl", {"case": chosen.case, **done})
