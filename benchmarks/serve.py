"""Requests per second of `drift serve` beside a bare onnxruntime loop on the same file.

    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/serve.py run [--hey hey] [--seconds 4] [--rounds 3]
    python benchmarks/serve.py table docs/results/serve.jsonl > docs/results/serve.md

A classifier of AG News on the default encoder is trained and exported once. Every request is the same text of median
length. `hey` sends requests from 1, 8 and 32 clients at once over loopback; the bare loop tokenises and runs the text
in this process, alone and as batches of 32, without HTTP. Server and loop take turns. One line of JSON per measurement.
"""

import argparse
import json
import re
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
    while sum(times) < seconds:
        began = time.perf_counter()
        tokens = tokenizer([text] * batch, truncation=True, max_length=128, padding=True, return_tensors="np")
        session.run(None, {name: tokens[name].astype("int64") for name in ("input_ids", "attention_mask")})
        times.append(time.perf_counter() - began)
    return {"per_second": batch * len(times) / sum(times), "p99_ms": 1000 * float(np.quantile(times, 0.99))}


def served(hey: str, text: str, clients: int, seconds: float) -> dict[str, float]:
    """Requests per second and the 99th percentile of the latency, by hey."""
    body = json.dumps({"texts": [text]})
    command = [hey, "-z", f"{seconds}s", "-c", str(clients), "-m", "POST", "-T", "application/json", "-d", body]
    out = subprocess.run(
        [*command, f"http://127.0.0.1:{PORT}/predict"], capture_output=True, text=True, check=True
    ).stdout
    rate, worst = re.search(r"Requests/sec:\s+([\d.]+)", out), re.search(r"99%+ in ([\d.]+) secs", out)
    statuses = re.findall(r"\[(\d+)\]\s+\d+ responses", out)
    if rate is None or statuses != ["200"]:
        raise RuntimeError(out)
    return {"per_second": float(rate[1]), "p99_ms": 1000 * float(worst[1]) if worst else float("nan")}


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
                    served(options.hey, text, 8, 1)  # warm
                    for clients in CLIENTS:
                        write(file, "serve", clients, served(options.hey, text, clients, options.seconds), cycle)
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
        " generator and other programs shared two cores, so that rates are lower bounds; the last column"
        " compares with the bare loop of the same round.\n"
    )
    print("| file | way | texts per second | p99, ms | of the bare loop |\n|---|---|---|---|---|")
    for file, way, count in sorted(rows, key=lambda key: (key[0], key[1] == "serve", key[2])):
        key = (file, way, count)
        title = f"`drift serve`, {count} client{'s' if count > 1 else ''}" if way == "serve" else "bare loop, "
        title += "" if way == "serve" else "one text at a time" if count == 1 else f"batches of {count}"
        pairs = zip(rows[key], rows[file, "bare", 1], strict=True)
        ratio = np.median([line["per_second"] / other["per_second"] for line, other in pairs])
        print(f"| {file} | {title} | {median(key, 'per_second'):.0f} | {median(key, 'p99_ms'):.0f} | {ratio:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run", "table"])
    parser.add_argument("out", type=Path, nargs="?", default=Path("docs/results/serve.jsonl"))
    parser.add_argument("--hey", default="hey")
    parser.add_argument("--folder", type=Path, help="keep the trained run here, or use the one that is there")
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    (run if options.verb == "run" else table)(options)


if __name__ == "__main__":
    main()
