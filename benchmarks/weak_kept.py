"""What becomes of weak labels after the start: thrown away, kept, or kept where the start agrees with them.

    DRIFT_DATA=... python benchmarks/weak_kept.py run      # adds to docs/results/weak_kept.jsonl, resumable
    DRIFT_DATA=... python benchmarks/weak_kept.py render   # writes docs/results/weak_kept.md

The paper throws them away. Kept labels stay in the loss of the game, beside the pseudo-labels of the same texts
(`training.keep_weak_labels`). "Weighted" and "where the start agrees" take a first run that only trains the start: the
share of weak labels that it confirms is taken for their accuracy, and becomes their confidence in the second run; or
the second run gets only the labels that it confirms. Class shares and all else are the defaults.
"""

import argparse
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from names import DESCRIPTIONS, OTHER_POOL, texts_of
from recorded import RESULTS, add_line, read_lines, table

LINES, PAGE = RESULTS / "weak_kept.jsonl", RESULTS / "weak_kept.md"
SOURCES = {"rules": 0.0, "annotator, 80 % right": 0.8, "annotator, 60 % right": 0.6, "class names": 0.0}
DATASETS = ("agnews", "imdb", "yelp")
THROWN, KEPT, WEIGHTED = "thrown away", "kept", "kept, weighted by estimated accuracy"
AGREEING = "kept where the start agrees"
WAYS = (THROWN, KEPT, WEIGHTED, AGREEING)


def weak_labels(pool: pd.DataFrame, source: str, rng: np.random.Generator) -> pd.Series | None:
    """The weak label of every text; None if class names give them. A simulated annotator errs at random."""
    if source == "class names":
        return None
    if source == "rules":
        return pool["weak"]
    classes, truth = np.unique(pool["label"], return_inverse=True)
    wrong = rng.random(len(truth)) > SOURCES[source]
    codes = np.where(wrong, (truth + rng.integers(1, len(classes), len(truth))) % len(classes), truth)
    return pd.Series(classes[codes], index=pool.index)


def measure(dataset: str, source: str, number: int, ways: Sequence[str]) -> dict[str, Any]:
    """Test accuracy of the start and of some ways."""
    import drift

    rng = np.random.default_rng([number, 7])
    train, test = texts_of(dataset, "train", ("text", "label", "weak")), texts_of(dataset, "test")
    pool = train.iloc[np.sort(rng.choice(len(train), OTHER_POOL, replace=False))].reset_index(drop=True)
    weak = weak_labels(pool, source, rng)
    named = {"classes": list(DESCRIPTIONS[dataset])} if weak is None else {"weak": "weak"}
    texts = pool[["text"]] if weak is None else pool[["text"]].assign(weak=weak)
    fit = partial(drift.fit, test=test, text="text", quiet=True)
    keep = {"training.keep_weak_labels": True}
    runs = {}
    if THROWN in ways:
        runs[THROWN] = fit(texts, **named)
    if KEPT in ways:
        runs[KEPT] = fit(texts, settings=keep, **named)
    if weak is not None and {WEIGHTED, AGREEING}.intersection(ways):
        start = fit(texts, settings={"training.steps": 0}, **named)
        confirmed = np.array(start.predict(list(pool["text"]))) == weak.to_numpy()
        if AGREEING in ways:
            runs[AGREEING] = fit(texts.assign(weak=weak.where(confirmed)), settings=keep, **named)
        if WEIGHTED in ways:
            sure = float(confirmed[weak.notna()].mean())
            runs[WEIGHTED] = fit(texts.assign(sure=sure), settings=keep, weak="weak=sure")
    begun = {THROWN: runs[THROWN].metrics["test"]["start_model"]["accuracy"]} if THROWN in runs else {}
    scores = {way: run.metrics["test"]["model"]["accuracy"] for way, run in runs.items()}
    return {"dataset": dataset, "source": source, "draw": number, "start": begun.get(THROWN), "scores": scores}


def run(draws: int, sources: str) -> None:
    """Measure what is missing: all cells of the first draw, then of the second. A line has what was missing."""
    for number in range(draws):
        for source in sources.split("|") if sources else SOURCES:
            for dataset in DATASETS:
                found = merged().get((dataset, source, number), {"scores": {}})
                possible = (THROWN, KEPT) if source == "class names" else WAYS  # which texts they label is not known
                if missing := [way for way in possible if way not in found["scores"]]:
                    line = measure(dataset, source, number, missing)
                    add_line(LINES, line)
                    print(*line.values(), flush=True)


def merged() -> dict[tuple[str, str, int], dict[str, Any]]:
    """The measurements of each dataset, source and draw."""
    cells: dict[tuple[str, str, int], dict[str, Any]] = {}
    for line in read_lines(LINES):
        cell = cells.setdefault((line["dataset"], line["source"], line["draw"]), {**line, "scores": {}})
        cell["start"] = cell["start"] if line["start"] is None else line["start"]
        cell["scores"] |= line["scores"]
    return cells


def render() -> None:
    """Write the page."""
    cells = defaultdict(list)
    for line in merged().values():
        cells[line["source"], line["dataset"]].append(line)
    text = [
        "# Weak labels after the start",
        "",
        "Made by `python benchmarks/weak_kept.py run` and `render`; one line per draw in weak_kept.jsonl. Test",
        f"accuracy in %, mean over draws of {OTHER_POOL:,} texts, no gold label; encoder bge-small-en-v1.5, fixed. The",
        "paper throws weak labels away after the start. *Kept*: they stay in the loss of the game",
        "(`training.keep_weak_labels`). *Weighted*: as soft labels, with the share that the start confirms as their",
        "probability of being right. *Where the start agrees*: only those that the start predicts as well. Annotators",
        "are simulated: they label every text and err at random. With class names the start is the result in any case.",
        "*Draws* are those of the first two ways; *weighted* was measured on the first. Empty cells were not measured.",
        "",
        "Weak labels are thrown away by default, as in the paper, because each way to keep them is worse: what the",
        "game gains over the start, it gains by leaving their errors behind.",
        "",
    ]
    ways = list(WAYS)
    rows = [
        [
            *(source, dataset, len(lines), _mean([line["start"] for line in lines])),
            *(_mean([line["scores"][way] for line in lines if way in line["scores"]]) for way in ways),
        ]
        for (source, dataset), lines in cells.items()
    ]
    text += table(["source", "dataset", "draws", "start", *ways], rows)
    text += ["", "Mean difference to thrown away, in points, without class names:", ""]
    for way in WAYS[1:]:
        rows_of = [lines for (source, _), lines in cells.items() if source != "class names"]
        pairs = [line["scores"] for lines in rows_of for line in lines if way in line["scores"]]
        if len(pairs) < 2:
            continue
        gains = 100 * np.array([scores[way] - scores[THROWN] for scores in pairs])
        error = gains.std(ddof=1) / np.sqrt(len(gains))
        text.append(f"- {way}: {gains.mean():+.2f} ± {error:.2f} over {len(gains)} runs, least {gains.min():+.1f}")
    PAGE.write_text("\n".join([*text, ""]), encoding="utf-8")
    print(f"wrote {PAGE}")


def _mean(values: list[float]) -> str:
    return f"{100 * np.mean(values):.1f}" if values else ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "render"])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--sources", default="", help="with |; default: all")
    arguments = parser.parse_args()
    run(arguments.draws, arguments.sources) if arguments.command == "run" else render()
