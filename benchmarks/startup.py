"""CPU time of `drift --help` relative to a bare interpreter, in alternation. Prints medians and their ratio as JSON.

python benchmarks/startup.py [--repeats 10] [--out docs/results/startup.json]
"""

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np

COMMANDS = {
    "bare interpreter": [sys.executable, "-c", "pass"],
    "drift --help": [sys.executable, "-c", "from drift.cli.main import run; run()", "--help"],
}
TARGET = 10.0  # upper bound of the ratio


def cpu_seconds(command: list[str]) -> float:
    """User and system time of one process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)  # microseconds; os.times counts hundredths of a second
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    repeats = options.repeats
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(repeats + 1):
        for name, command in COMMANDS.items():
            seconds[name].append(cpu_seconds(command))
    medians = {name: float(np.median(values[1:])) for name, values in seconds.items()}  # the first reads the disk
    ratio = medians["drift --help"] / medians["bare interpreter"]
    text = json.dumps({"seconds": medians, "ratio": round(ratio, 2), "target": TARGET, "met": ratio <= TARGET})
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
