"""Large dictionaries: entries read per second, sentences searched per second, and peak memory.

    DRIFT_DATA=... python benchmarks/dictionaries.py
    DRIFT_DATA=... python benchmarks/dictionaries.py --entries 10000,1000000 --repeats 3

A dictionary has phrases of 1 to 4 words that are drawn from the words of the training sentences of BC5CDR, so that most
words of a sentence begin some phrase; they are written as CSV with columns phrase and type. Each size is measured in a
process of its own, and sizes alternate, so that other load on the machine affects all. Adds to
docs/results/dictionaries.jsonl and writes dictionaries.md.
"""

import argparse
import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from drift.weak import TokenRuleSet
from drift.weak.token_matching import Sentence
from recorded import RESULTS, add_line, read_lines, table

LINES, PAGE = RESULTS / "dictionaries.jsonl", RESULTS / "dictionaries.md"
LONGEST, TYPES = 4, ("Chemical", "Disease")
TEXT = """\
# Results: large dictionaries

`drift label` and `drift fit --rules` with dictionaries as CSV (columns phrase and type) of up to a million entries.
Phrases have 1 to 4 words, drawn from the words of the training sentences of BC5CDR; the 4,560 sentences are searched.
Made by `python benchmarks/dictionaries.py`, each size in processes of its own, on one core that other work shared:
medians of at least {repeats} runs. Memory is the peak of the process above that of one with a dictionary of one
entry.

"""


def sentences() -> list[list[str]]:
    with gzip.open(Path(os.environ["DRIFT_DATA"]) / "bc5cdr" / "train.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line)["tokens"] for line in file]


def write_dictionary(path: Path, entries: int, words: list[str], rng: np.random.Generator) -> None:
    """A CSV file of distinct phrases."""
    phrases: dict[str, None] = {}
    while len(phrases) < entries:
        lengths = rng.integers(1, LONGEST + 1, entries)
        drawn = iter(rng.choice(words, lengths.sum()).tolist())
        phrases |= dict.fromkeys(" ".join(next(drawn) for _ in range(length)) for length in lengths)
    with path.open("w", encoding="utf-8") as file:
        file.write("phrase,type\n")
        file.writelines(f"{phrase},{TYPES[row % 2]}\n" for row, phrase in zip(range(entries), phrases, strict=False))


def measure(path: Path) -> dict[str, float]:
    """In this process: read, search, and peak memory in MB."""
    texts = [Sentence(tokens) for tokens in sentences()]
    began = time.perf_counter()
    rules = TokenRuleSet.from_file(path)
    read = time.perf_counter()
    found = sum(len(spans) for sentence in texts for spans in rules.find(sentence))
    done = time.perf_counter()
    # Not getrusage: there a process begins with the peak of the one that started it.
    peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))
    memory = int(peak[1]) / 1024 if peak else 0.0
    return {"read": read - began, "search": done - read, "memory": memory, "found": found, "sentences": len(texts)}


def measured(path: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", str(path)]
    answer: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return answer


def run(sizes: list[int], repeats: int) -> None:
    words = sorted({word for tokens in sentences() for word in tokens if word.isalpha()})
    with TemporaryDirectory() as folder:
        files = {size: Path(folder) / f"{size}.csv" for size in (1, *sizes)}
        for size, file in files.items():
            write_dictionary(file, size, words, np.random.default_rng(0))
        for _ in range(repeats):
            for size, file in files.items():
                add_line(LINES, line := {"entries": size, **measured(file)})
                print(line, flush=True)


def render() -> None:
    lines = read_lines(LINES)

    def median(size: int, name: str) -> float:
        return statistics.median(line[name] for line in lines if line["entries"] == size)

    sizes = sorted({line["entries"] for line in lines})
    empty = median(sizes[0], "memory")
    rows = [
        [
            f"{size:,}",
            f"{median(size, 'read'):.1f}",
            f"{size / median(size, 'read'):,.0f}",
            f"{median(size, 'sentences') / median(size, 'search'):,.0f}",
            f"{median(size, 'memory') - empty:,.0f}",
            f"{median(size, 'found'):,.0f}",
        ]
        for size in sizes[1:]
    ]
    headings = ["entries", "seconds to read", "entries/s", "sentences/s", "memory, MB", "phrases found"]
    repeats = min(sum(line["entries"] == size for line in lines) for size in sizes)
    PAGE.write_text(TEXT.format(repeats=repeats) + "\n".join(table(headings, rows)) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", default="10000,100000,1000000")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    run([int(size) for size in options.entries.split(",")], options.repeats)
    render()


if __name__ == "__main__":
    main()
