"""Digits: `DriftClassifier` compared with its ablations and scikit-learn's methods, and self-distillation.

    python benchmarks/digits.py

runs everything and updates the tables in docs/results/digits.md. It takes about 15 minutes on one core.
"""

import argparse

import numpy as np

from drift.paper.demos.digits import OURS, SCIKIT_LEARN, Scores, compare
from drift.runs.comparing.statistics import paired_t
from drift.tasks.scoring import mean_and_spread
from drift.training.progress import progress
from recorded import RESULTS, replace_tables, table

DISTILLATION = {
    "none (labels alone)": OURS["Supervised"],
    "detached teacher": OURS["DRIFT, detached"],
    "differentiable teacher": OURS["DRIFT"],
}


def compared(scores: dict[str, Scores], ours: str) -> list[str]:
    """A table of all methods, each with a paired t-test of our method against it."""
    rows = []
    for name, row in scores.items():
        cells = [name, mean_and_spread(row.accuracy), f"{np.median(row.seconds):.2f}", "", "", ""]
        if name != ours:
            test = paired_t(scores[ours].accuracy, row.accuracy)
            cells[3:] = [test.gap(), test.p_text(), test.verdict()]
        rows.append(cells)
    return table(["", "accuracy (%)", "seconds per fit", "Δ", "p", ""], rows)


def main(seeds: range) -> None:
    tables = []
    methods = {**OURS, **SCIKIT_LEARN}
    with progress("Digits", len(seeds) * (2 * len(methods) + len(DISTILLATION))) as tick:
        for labels in (5, 10):
            tables.append(compared(compare(methods, labels, seeds, tick=tick), "DRIFT"))
        scores = compare(DISTILLATION, None, seeds, tick=tick)
        tables.append(compared(scores, "differentiable teacher"))
    replace_tables(RESULTS / "digits.md", *tables)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds (default: %(default)s)")
    main(range(parser.parse_args().seeds))
