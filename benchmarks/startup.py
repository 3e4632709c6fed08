"""CPU time of `drift --help` relative to a bare interpreter, in alternation. Prints medians and their ratio as JSON.

python benchmarks/startup.py [--repeats 10]
"""

import argparse
import json
import os
import subprocess
import sys

import numpy as np

COMMANDS = {
    "bare interpreter": [sys.executable, "-c", "pass"],
    "drift --help": [sys.executable, "-c", "from drift.cli.main import run; run()", "--help"],
}
TARGET = 10.0  # upper bound of the ratio


def cpu_seconds(command: list[str]) -> float:
    """User and system time of one process and its children."""
    before = os.times()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=10)
    repeats = parser.parse_args().repeats
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(repeats + 1):
        for name, command in COMMANDS.items():
            seconds[name].append(cpu_seconds(command))
    medians = {name: float(np.median(values[1:])) for name, values in seconds.items()}  # the first reads the disk
    ratio = medians["drift --help"] / medians["bare interpreter"]
    print(json.dumps({"seconds": medians, "ratio": round(ratio, 2), "target": TARGET, "met": ratio <= TARGET}))


if __name__ == "__main__":
    main()
