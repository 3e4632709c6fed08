"""Ways to combine several sources of noisy labels: votes of published rules, and annotators of known quality.

    DRIFT_DATA=... python benchmarks/sources.py run      # adds to docs/results/sources.jsonl, resumable
    DRIFT_DATA=... python benchmarks/sources.py peers    # adds to sources_peers.jsonl; needs crowd-kit (1.4)
    DRIFT_DATA=... python benchmarks/sources.py render   # writes docs/results/sources.md

Nothing is trained: the accuracy is that of the combined labels, on rows with at least one vote. The peers get the same
votes, each vote as one task, worker and label.
"""

import argparse
import gzip
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from recorded import RESULTS, add_line, read_lines, table

LINES, PEER_LINES, PAGE = (RESULTS / name for name in ("sources.jsonl", "sources_peers.jsonl", "sources.md"))
PEERS = ("DawidSkene", "MACE", "GLAD")  # of crowd-kit, with their default settings
METHODS = ("majority", "weighted", "dawid-skene")
DATASETS = ("agnews", "imdb", "yelp")
ROWS = 4000
Votes = dict[str, np.ndarray]  # class codes by source, -1 for none


def annotators(truth: np.ndarray, C: int, rng: np.random.Generator) -> dict[str, Votes]:
    """Groups of simulated annotators; errors are spread evenly over the wrong classes."""

    def one(accuracy: float, covers: float = 1.0) -> np.ndarray:
        wrong = rng.random(len(truth)) > accuracy
        codes = np.where(wrong, (truth + rng.integers(1, C, len(truth))) % C, truth)
        return np.where(rng.random(len(truth)) < covers, codes, -1)

    first = one(0.65)
    copies = [np.where(rng.random(len(truth)) < 0.9, first, one(0.65)) for _ in range(2)]
    return {
        "three alike": {f"a{n}": one(0.8) for n in range(3)},
        "one good, two poor": {"good": one(0.9), "poor 1": one(0.6), "poor 2": one(0.6)},
        "five, 30 % covered": {f"{a:.2f}": one(a, 0.3) for a in (0.95, 0.85, 0.75, 0.65, 0.55)},
        "three good, one adversary": {**{f"a{n}": one(0.8) for n in range(3)}, "adversary": one(0.1)},
        "three copies, two good": {
            **{f"copy {n}": codes for n, codes in enumerate([first, *copies])},
            **{f"good {n}": one(0.85) for n in range(2)},
        },
    }


def suites(dataset: str, draw: int) -> Iterator[tuple[str, Votes, np.ndarray, int]]:
    """Sources with the true classes of the rows: the column of published rules, alone and with annotators."""
    with gzip.open(Path(os.environ["DRIFT_DATA"], dataset, "train.jsonl.gz"), "rt") as file:
        rows = [row for row in map(json.loads, file) if row["label"]]
    rng = np.random.default_rng(draw)
    rows = [rows[place] for place in rng.choice(len(rows), ROWS, replace=False)]
    classes = sorted({row["label"] for row in rows})
    code_of = {name: code for code, name in enumerate(classes)}
    truth = np.array([code_of[row["label"]] for row in rows])
    rules = np.array([code_of.get(row["weak"], -1) for row in rows])
    for name, votes in annotators(truth, len(classes), rng).items():
        yield name, votes, truth, len(classes)
        yield f"{name}, rules", {**votes, "rules": rules}, truth, len(classes)


def run(draws: int) -> None:
    """Combine every suite in every way."""
    from drift.weak.combining import combine, hard

    done = {(line["dataset"], line["suite"], line["draw"]) for line in read_lines(LINES)}
    for draw in range(draws):
        for dataset in DATASETS:
            for suite, votes, truth, C in suites(dataset, draw):
                if (dataset, suite, draw) in done:
                    continue
                soft = [(codes[:, None] == np.arange(C)).astype(float) for codes in votes.values()]
                covered = np.stack(soft).any((0, 2))
                gold = np.where(np.arange(len(truth)) < 50, truth, -1)
                judged = covered & (np.arange(len(truth)) >= 50)
                line: dict = {"dataset": dataset, "suite": suite, "draw": draw, "accuracy": {}, "sources": {}}
                for method in METHODS:
                    found = combine(soft, method=method)
                    line["accuracy"][method] = float((hard(found.probabilities) == truth)[judged].mean())
                with_gold = combine(soft, gold=gold)
                line["accuracy"]["auto, 50 gold labels"] = float(
                    (hard(with_gold.probabilities) == truth)[judged].mean()
                )
                for place, (name, codes) in enumerate(votes.items()):  # the last method's estimate
                    true = float((codes == truth)[codes >= 0].mean())
                    line["sources"][name] = {"true": true, "estimated": float(found.accuracies[place])}
                add_line(LINES, line)
                print(dataset, suite, draw, line["accuracy"], flush=True)


def run_peers(draws: int) -> None:
    """Combine every suite with the models of crowd-kit."""
    import pandas as pd
    from crowdkit import aggregation

    done = {(line["dataset"], line["suite"], line["draw"]) for line in read_lines(PEER_LINES)}
    for draw in range(draws):
        for dataset in DATASETS:
            for suite, votes, truth, _ in suites(dataset, draw):
                if (dataset, suite, draw) in done:
                    continue
                given = [(row, name, codes[row]) for name, codes in votes.items() for row in np.flatnonzero(codes >= 0)]
                frame = pd.DataFrame(given, columns=["task", "worker", "label"])
                line: dict = {"dataset": dataset, "suite": suite, "draw": draw, "accuracy": {}, "seconds": {}}
                for name in PEERS:
                    began = time.process_time()
                    labels = getattr(aggregation, name)().fit_predict(frame)
                    line["seconds"][name] = time.process_time() - began
                    judged = labels.index.to_numpy() >= 50  # as in the column with gold labels
                    rows = labels.index.to_numpy()[judged]
                    line["accuracy"][name] = float((labels.to_numpy()[judged] == truth[rows]).mean())
                add_line(PEER_LINES, line)
                print(dataset, suite, draw, line["accuracy"], flush=True)


def render() -> None:
    """Write the page."""
    lines = read_lines(LINES)
    peers = defaultdict(list)
    for line in read_lines(PEER_LINES):
        peers[line["dataset"], line["suite"]].append(line["accuracy"])
    cells = defaultdict(list)
    for line in lines:
        cells[line["dataset"], line["suite"]].append(line)
    methods = list(lines[0]["accuracy"])
    text = [
        "# Several noisy sources",
        "",
        "Made by `python benchmarks/sources.py run` and `render`; one line per draw in sources.jsonl. Annotators of",
        f"known quality are simulated on {ROWS:,} texts of each dataset; *rules* is the column of its published rules.",
        "Accuracy of the combined labels in %, mean over draws, on texts with a vote; ties count as errors. The gold",
        "labels of the fourth way are not among the judged texts. Nothing is trained. The last columns are models of",
        "crowd-kit 1.4 with its default settings on the same votes.",
        "",
    ]
    rows = [
        [
            *(dataset, suite, len(found)),
            *(_mean([line["accuracy"][method] for line in found]) for method in methods),
            *(_mean([line[name] for line in peers[dataset, suite]]) for name in PEERS),
        ]
        for (dataset, suite), found in cells.items()
    ]
    text += table(["dataset", "sources", "draws", *methods, *PEERS], rows)
    errors = defaultdict(list)
    for line in lines:
        group = "copies of one source" if "copies" in line["suite"] else "independent sources"
        errors[group] += [abs(each["true"] - each["estimated"]) for each in line["sources"].values()]
    text += [
        "",
        "Estimated accuracy of a source (Dawid-Skene, no gold label) against its true one, mean difference:",
        "",
    ]
    text += [f"- {group}: {100 * np.mean(values):.1f} points" for group, values in errors.items()]
    PAGE.write_text("\n".join([*text, ""]), encoding="utf-8")
    print(f"wrote {PAGE}")


def _mean(values: list[float]) -> str:
    return f"{100 * np.mean(values):.1f}" if values else ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "peers", "render"])
    parser.add_argument("--draws", type=int, default=3)
    arguments = parser.parse_args()
    {"run": partial(run, arguments.draws), "peers": partial(run_peers, arguments.draws), "render": render}[
        arguments.command
    ]()
