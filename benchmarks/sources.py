"""Ways to combine several sources of noisy labels: votes of published rules, and annotators of known quality.

    DRIFT_DATA=... python benchmarks/sources.py run --draws 10               # adds to docs/results/sources.jsonl
    DRIFT_DATA=... python benchmarks/sources.py peers --draws 10 --only FAST # adds to sources_peers.jsonl
    python benchmarks/sources.py render                                      # writes docs/results/sources.md

Nothing is trained: the accuracy is that of the combined labels, on rows with at least one vote. The peers get the same
votes: crowd-kit (1.4) as tasks, workers and labels, snorkel (0.10) as a matrix. `run` and `peers` can be continued.
"""

import argparse
import gzip
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from recorded import RESULTS, add_line, read_lines, table

LINES, PEER_LINES, PAGE = (RESULTS / name for name in ("sources.jsonl", "sources_peers.jsonl", "sources.md"))
CROWDKIT = ("DawidSkene", "MACE", "GLAD")
SNORKEL = "LabelModel"
PEERS = (*CROWDKIT, SNORKEL)  # with their default settings
FAST = ("DawidSkene", SNORKEL)
SHOWN = "agnews"  # dataset of the table of sources
METHODS = ("majority", "weighted", "dawid-skene")
DATASETS = ("agnews", "imdb", "yelp")
ROWS, GOLD_ROWS = 4000, 50
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


@cache
def labels_of(dataset: str) -> list[tuple[str, str | None]]:
    """Label and weak label of every labelled row."""
    with gzip.open(Path(os.environ["DRIFT_DATA"], dataset, "train.jsonl.gz"), "rt") as file:
        return [(row["label"], row["weak"]) for row in map(json.loads, file) if row["label"]]


def suites(dataset: str, draw: int) -> Iterator[tuple[str, Votes, np.ndarray, int]]:
    """Sources with the true classes of the rows: the column of published rules, alone and with annotators."""
    known, rng = labels_of(dataset), np.random.default_rng(draw)
    rows = [known[place] for place in rng.choice(len(known), ROWS, replace=False)]
    classes = sorted({label for label, _ in rows})
    code_of = {name: code for code, name in enumerate(classes)}
    truth = np.array([code_of[label] for label, _ in rows])
    rules = np.array([code_of.get(weak, -1) for _, weak in rows])
    for name, votes in annotators(truth, len(classes), rng).items():
        yield name, votes, truth, len(classes)
        yield f"{name}, rules", {**votes, "rules": rules}, truth, len(classes)


def run(draws: int) -> None:
    """Combine every suite in every way."""
    from drift.weak.ballots import hard
    from drift.weak.combining import combine

    done = {(line["dataset"], line["suite"], line["draw"]) for line in read_lines(LINES)}
    for draw in range(draws):
        for dataset in DATASETS:
            for suite, votes, truth, C in suites(dataset, draw):
                if (dataset, suite, draw) in done:
                    continue
                soft = [(codes[:, None] == np.arange(C)).astype(float) for codes in votes.values()]
                covered = np.stack(soft).any((0, 2))
                gold = np.where(np.arange(len(truth)) < GOLD_ROWS, truth, -1)
                judged = covered & (np.arange(len(truth)) >= GOLD_ROWS)
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


def run_peers(draws: int, names: tuple[str, ...]) -> None:
    """Combine every suite with models of other libraries. A line holds those that were missing."""
    found = peer_scores()
    for draw in range(draws):
        for dataset in DATASETS:
            for suite, votes, truth, C in suites(dataset, draw):
                missing = [name for name in names if name not in found[dataset, suite, draw]]
                if not missing:
                    continue
                line: dict = {"dataset": dataset, "suite": suite, "draw": draw, "accuracy": {}, "seconds": {}}
                for name in missing:
                    began = time.process_time()
                    rows, labels = by_peer(name, votes, C)
                    line["seconds"][name] = time.process_time() - began
                    judged = rows >= GOLD_ROWS
                    line["accuracy"][name] = float((labels == truth[rows])[judged].mean())
                add_line(PEER_LINES, line)
                print(dataset, suite, draw, line["accuracy"], flush=True)


def by_peer(name: str, votes: Votes, C: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows with a vote, and the label that a model of another library gives them."""
    matrix = np.stack(list(votes.values()), axis=1)
    if name == SNORKEL:
        from drift.weak.votes import label_model

        rows = np.flatnonzero((matrix >= 0).any(1))
        return rows, label_model(matrix, C)[rows]
    import pandas as pd
    from crowdkit import aggregation

    rows, workers = np.nonzero(matrix >= 0)
    frame = pd.DataFrame({"task": rows, "worker": workers, "label": matrix[rows, workers]})
    found = getattr(aggregation, name)().fit_predict(frame)
    return found.index.to_numpy(), found.to_numpy()


def peer_scores() -> dict[tuple, dict[str, float]]:
    """The accuracy of each model by dataset, suite and draw."""
    found: dict[tuple, dict[str, float]] = defaultdict(dict)
    for line in read_lines(PEER_LINES):
        found[line["dataset"], line["suite"], line["draw"]].update(line["accuracy"])
    return found


def render() -> None:
    """Write the page."""
    lines = read_lines(LINES)
    cells = defaultdict(list)
    for line in lines:
        cells[line["dataset"], line["suite"]].append(line)
    methods = list(lines[0]["accuracy"])
    text = [
        "# Several noisy sources",
        "",
        "Made by `python benchmarks/sources.py run` and `render`; one line per draw in sources.jsonl. Annotators of",
        f"known quality are simulated on {ROWS:,} texts of each dataset; *rules* is the column of its published rules.",
        "Accuracy of the combined labels in %, mean ± standard deviation over draws, on texts with a vote; ties count",
        "as errors. The gold labels of the last column are not among the judged texts. Nothing is trained.",
        "",
    ]
    rows = [
        [*(dataset, suite, len(found)), *(_mean([line["accuracy"][method] for line in found]) for method in methods)]
        for (dataset, suite), found in cells.items()
    ]
    text += table(["dataset", "sources", "draws", *methods], rows)
    text += ["", *_accuracy_section(lines), "", *_peer_section(lines), ""]
    PAGE.write_text("\n".join(text), encoding="utf-8")
    print(f"wrote {PAGE}")


def _accuracy_section(lines: list[dict]) -> list[str]:
    """The estimated accuracy of each source beside the true one."""
    cells, differences = defaultdict(list), defaultdict(list)
    for line in lines:
        group = "copies of one source" if "copies" in line["suite"] else "independent sources"
        for name, each in line["sources"].items():
            if line["dataset"] == SHOWN and line["suite"].endswith(", rules"):
                cells[line["suite"], name].append(each)
            differences[group].append(abs(each["true"] - each["estimated"]))
    rows = [
        [suite, name, *(_mean([each[which] for each in found]) for which in ("true", "estimated"))]
        for (suite, name), found in cells.items()
    ]
    return [
        "## How good each source is",
        "",
        "The accuracy of a source as estimated by Dawid-Skene without a gold label, beside its true one. Mean absolute",
        "difference over all datasets, suites and draws:",
        "",
        *(f"- {group}: {100 * np.mean(values):.1f} points" for group, values in differences.items()),
        "",
        f"On {SHOWN}, with the rules among the sources:",
        "",
        *table(["sources", "source", "true accuracy", "estimated"], rows),
    ]


def _peer_section(lines: list[dict]) -> list[str]:
    """Ways of this package beside models of other libraries, on the draws that all of them have."""
    found = peer_scores()
    own = {(line["dataset"], line["suite"], line["draw"]): line["accuracy"] for line in lines}
    text = [
        "## Beside other libraries",
        "",
        "Made by `python benchmarks/sources.py peers`. The models of crowd-kit 1.4 (DawidSkene, MACE, GLAD) and of",
        "snorkel 0.10 (LabelModel) with their default settings, on the same votes, without gold labels. Mean over AG",
        "News, IMDB and Yelp, and over the draws that all models of a table have.",
    ]
    for names in (FAST, PEERS):
        keys = [key for key in own if all(name in found[key] for name in names)]
        rows = []
        for suite in dict.fromkeys(suite for _, suite, _ in own):
            chosen = [key for key in keys if key[1] == suite]
            if chosen:
                ours = [_percent([own[key][method] for key in chosen]) for method in METHODS]
                rows.append(
                    [suite, len(chosen), *ours, *(_percent([found[key][name] for key in chosen]) for name in names)]
                )
        if rows:
            text += ["", *table(["sources", "draws", *METHODS, *names], rows)]
    return text


def _percent(values: list[float]) -> str:
    return f"{100 * np.mean(values):.1f}"


def _mean(values: list[float]) -> str:
    return f"{_percent(values)} ± {100 * np.std(values, ddof=1):.1f}" if len(values) > 1 else _percent(values)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "peers", "render"])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument(
        "--only", default=",".join(PEERS), help="models of other libraries, with commas; FAST: two of them"
    )
    arguments = parser.parse_args()
    if arguments.command == "run":
        run(arguments.draws)
    elif arguments.command == "peers":
        run_peers(arguments.draws, FAST if arguments.only == "FAST" else tuple(arguments.only.split(",")))
    else:
        render()
