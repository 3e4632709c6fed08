"""Requests per second of `drift serve` beside a bare onnxruntime loop on the same file.

    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/serve.py run [--hey hey] [--seconds 10] [--rounds 3]
    python benchmarks/serve.py table > docs/results/serve.md

A classifier of AG News on the default encoder is trained and exported once. Every request is the same text of median
length. `hey` sends requests from 1, 8 and 32 clients at once over loopback; the bare loop tokenises and runs the text
in this process, alone and as batches of 32, without HTTP. Server and loop take turns. One line of JSON per measurement;
processor time is that of the server, or of the loop, so that it depends less on what else the machine does.
"""

import argparse
import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import drift
from cached_texts import texts_of
from drift.runs.result import INT8, MODEL, ONNX

CLIENTS, BATCHES, PORT = (1, 8, 32), (1, 32), 8765
FEWEST = 20  # answers of which a 99th percentile is shown
TITLE = {ONNX: "float32", INT8: "int8"}


def trained(folder: Path) -> str:
    """Train and export a classifier into the folder; return a text of median length."""
    import pandas as pd

    texts, labels = texts_of("agnews", "train", 400)
    if not (folder / MODEL).exists():
        drift.fit(pd.DataFrame({"text": texts, "label": labels}), out=folder, onnx=True, seeds=2, quiet=True)
    return sorted(texts, key=len)[len(texts) // 2]


def bare(folder: Path, file: str, text: str, batch: int, seconds: float) -> dict[str, float]:
    """Texts per second and the 99th percentile of the time of a batch, by onnxruntime alone."""
    import onnxruntime
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder / MODEL / "encoder")
    session = onnxruntime.InferenceSession(folder / MODEL / file, providers=["CPUExecutionProvider"])
    times: list[float] = []
    processor = time.process_time()
    while sum(times) < seconds:
        began = time.perf_counter()
        tokens = tokenizer([text] * batch, truncation=True, max_length=128, padding=True, return_tensors="np")
        session.run(None, {name: tokens[name].astype("int64") for name in ("input_ids", "attention_mask")})
        times.append(time.perf_counter() - began)
    return measured(times, sum(times), time.process_time() - processor, batch)


def measured(times: list[float], seconds: float, processor: float, batch: int = 1) -> dict[str, float]:
    """times: of each answer. seconds, processor: for all of them."""
    texts = batch * len(times)
    return {
        "answers": len(times),
        "per_second": texts / seconds,
        "p99_ms": 1000 * float(np.quantile(times, 0.99)),
        "cpu_ms": 1000 * processor / texts,
    }


def processor_time(process: int) -> float:
    """Seconds of processor time of a process so far (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def served(hey: str, text: str, clients: int, seconds: float, server: int) -> dict[str, float]:
    """Requests per second and the 99th percentile of the latency, by hey. server: its process."""
    body = json.dumps({"texts": [text]})
    command = [hey, "-z", f"{seconds}s", "-c", str(clients), "-m", "POST", "-T", "application/json", "-d", body]
    before, began = processor_time(server), time.perf_counter()
    out = subprocess.run(
        [*command, "-o", "csv", f"http://127.0.0.1:{PORT}/predict"], capture_output=True, text=True, check=True
    ).stdout
    spent, processor = time.perf_counter() - began, processor_time(server) - before
    rows = list(csv.DictReader(io.StringIO(out)))
    if not rows or {row["status-code"] for row in rows} != {"200"}:
        raise RuntimeError(out)
    return measured([float(row["response-time"]) for row in rows], spent, processor)


def start(folder: Path, file: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "drift", "serve", str(folder), "--port", str(PORT)]
    server = subprocess.Popen([*command, *(["--int8"] if file == INT8 else [])], stdout=subprocess.DEVNULL)
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=1)
            return server
        except OSError:
            time.sleep(0.2)
    server.terminate()
    raise RuntimeError("the server did not start")


def run(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as place, options.out.open("a", encoding="utf-8") as out:
        folder = options.folder or Path(place, "run")
        text = trained(folder)
        files = [file for file in (ONNX, INT8) if (folder / MODEL / file).exists()]

        def write(file: str, way: str, count: int, found: dict[str, float], cycle: int) -> None:
            line = {"file": TITLE[file], "way": way, "count": count, "round": cycle, "characters": len(text), **found}
            out.write(json.dumps({name: round(v, 2) if isinstance(v, float) else v for name, v in line.items()}) + "\n")
            out.flush()

        known = options.out.read_text(encoding="utf-8").splitlines()
        first = 1 + max((json.loads(line)["round"] for line in known), default=-1)
        for cycle in range(first, first + options.rounds):
            for file in files:
                server = start(folder, file)
                try:
                    served(options.hey, text, 8, 1, server.pid)  # warm
                    for clients in CLIENTS:
                        found = served(options.hey, text, clients, options.seconds, server.pid)
                        write(file, "serve", clients, found, cycle)
                finally:
                    server.terminate()
                    server.wait()
                for batch in BATCHES:
                    write(file, "bare", batch, bare(folder, file, text, batch, options.seconds), cycle)


def table(options: argparse.Namespace) -> None:
    rows: dict[tuple[str, str, int], list[dict[str, Any]]] = defaultdict(list)
    lines = [json.loads(line) for line in options.out.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        rows[line["file"], line["way"], line["count"]].append(line)
    rounds = 1 + max(line["round"] for line in lines)

    def median(key: tuple[str, str, int], name: str) -> float:
        return float(np.median([line[name] for line in rows[key]]))

    print("# Serving\n")
    print(
        f"`python benchmarks/serve.py run --rounds {rounds}`: a classifier of AG News on bge-small-en-v1.5, one text of"
        f" {lines[0]['characters']} characters per request, over loopback. Medians of {rounds} rounds. Server, load"
        " generator and other programs shared two cores, so that rates are lower bounds, and times upper bounds."
        " Processor time per text, and the last column, which compares rates within a round, depend less on that. With"
        f" so few answers per measurement, p99 is close to the slowest; with fewer than {FEWEST} it is left out.\n"
    )
    print("| file | way | answers | texts per second | p99, ms | processor, ms per text | rate, of the bare loop |")
    print("|---|---|---|---|---|---|---|")
    for file, way, count in sorted(rows, key=lambda key: (key[0], key[1] == "serve", key[2])):
        key = (file, way, count)
        title = f"`drift serve`, {count} client{'s' if count > 1 else ''}" if way == "serve" else "bare loop, "
        title += "" if way == "serve" else "one text at a time" if count == 1 else f"batches of {count}"
        pairs = zip(rows[key], rows[file, "bare", 1], strict=True)
        ratio = np.median([line["per_second"] / other["per_second"] for line, other in pairs])
        slowest = f"{median(key, 'p99_ms'):.0f}" if median(key, "answers") >= FEWEST else "-"
        answers, rate, processor = (median(key, name) for name in ("answers", "per_second", "cpu_ms"))
        cells = f"{answers:.0f} | {rate:.1f} | {slowest} | {processor:.1f}"
        print(f"| {file} | {title} | {cells} | {ratio:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run", "table"])
    parser.add_argument("out", type=Path, nargs="?", default=Path("docs/results/serve.jsonl"))
    parser.add_argument("--hey", default="hey")
    parser.add_argument("--folder", type=Path, help="keep the trained run here, or use the one that is there")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    (run if options.verb == "run" else table)(options)


if __name__ == "__main__":
    main()
