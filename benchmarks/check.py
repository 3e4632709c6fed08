"""How well `drift check` finds wrong labels: AG News with flipped labels, beside cleanlab.

    DRIFT_DATA=... python benchmarks/check.py run --cleanlab VENV/bin/python
    DRIFT_DATA=... python benchmarks/check.py tokens
    python benchmarks/check.py table

`run` adds one line per share of flipped labels, kind of flip and seed to docs/results/check.jsonl and skips those that
exist. cleanlab needs an environment of its own: `python -m venv VENV`, `VENV/bin/pip install cleanlab`. It is given our
probabilities, and is also run as its documentation shows it, with a logistic regression on the same vectors. `tokens`
takes tags of entities away and counts how many are found. `table` updates the tables in docs/results/check.md.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from cached_texts import embedded
from drift.data.sentences import read_sentences
from drift.data.tags import OUTSIDE, spans_of
from drift.quality.crossfit import chosen_strength, fitted, folds_of, judged
from drift.quality.label_errors import find_label_errors
from drift.quality.mentions import phrases_of, suspicious_mentions
from recorded import RESULTS, add_line, read_lines, replace_tables, table

LINES, PAGE = RESULTS / "check.jsonl", RESULTS / "check.md"
ROWS, TEST_ROWS, SEEDS = 4000, 2000, range(3)
SHARES = (0.05, 0.1, 0.2)
CONFUSABLE = {"Business": "Sci/Tech", "Sci/Tech": "Business", "Sports": "World", "World": "Business"}
FLIPS = ("random", "confusable")
FINDERS = {
    "drift": "drift check",
    "cleanlab-same": "cleanlab, our probabilities",
    "cleanlab": "cleanlab's own pipeline",
}

# Runs in cleanlab's environment: vectors, labels and our probabilities in; row numbers out.
PEER = """
import json, sys, time
import numpy as np
from cleanlab.classification import CleanLearning
from cleanlab.filter import find_label_issues
from sklearn.linear_model import LogisticRegression
data = np.load(sys.argv[1])
same = np.flatnonzero(find_label_issues(data["codes"], data["probabilities"], n_jobs=1))
began = time.process_time()
learner = CleanLearning(LogisticRegression(max_iter=1000), seed=0)
issues = learner.find_label_issues(data["vectors"], data["codes"])
own = np.flatnonzero(issues["is_label_issue"].to_numpy())
print(json.dumps({"same": same.tolist(), "own": own.tolist(), "seconds": time.process_time() - began}))
"""


def flipped(codes: np.ndarray, classes: list[str], flip: str, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels of which a share is wrong, and which: to any other class, or to the one it is most often taken for."""
    rng = np.random.default_rng([seed, int(1000 * share)])
    wrong = np.zeros(len(codes), dtype=bool)
    wrong[rng.permutation(len(codes))[: round(share * len(codes))]] = True
    near = np.array([classes.index(CONFUSABLE[name]) for name in classes])
    other = (codes + rng.integers(1, len(classes), len(codes))) % len(classes)
    return np.where(wrong, near[codes] if flip == "confusable" else other, codes), wrong


def run(python: str) -> None:
    train, test = embedded("agnews", "train", ROWS), embedded("agnews", "test", TEST_ROWS)
    done = {(line["flip"], line["share"], line["seed"]) for line in read_lines(LINES) if line["what"] == "labels"}
    for seed, flip, share in product(SEEDS, FLIPS, SHARES):
        if (flip, share, seed) in done:
            continue
        labels, wrong = flipped(train.codes, train.classes, flip, share, seed)
        began = time.process_time()
        probabilities = judged(train.vectors, labels, len(train.classes), seed=seed)
        errors = find_label_errors(labels, probabilities)
        seconds = {"drift": time.process_time() - began}
        peer = _cleanlab(python, train.vectors, labels, probabilities)
        seconds["cleanlab"] = peer["seconds"]
        found = {"drift": errors.rows, "cleanlab-same": np.array(peer["same"]), "cleanlab": np.array(peer["own"])}
        line: dict[str, Any] = {"what": "labels", "flip": flip, "share": share, "seed": seed, "seconds": seconds}
        line["estimated"] = errors.estimated / len(labels)
        line["accuracy"] = {"all": _accuracies(train.vectors, labels, test), "clean": None}
        line["accuracy"]["clean"] = _accuracies(train.vectors[~wrong], labels[~wrong], test)
        for name, rows in found.items():
            hits = wrong[rows].sum()
            line[name] = {"found": len(rows), "precision": hits / len(rows), "recall": hits / wrong.sum()}
            kept = np.setdiff1d(np.arange(len(labels)), rows)
            line["accuracy"][name] = _accuracies(train.vectors[kept], labels[kept], test)
        first = errors.rows[: int(wrong.sum())]
        line["drift"]["first"] = float(wrong[first].mean())
        line["agreement"] = len(np.intersect1d(errors.rows, peer["same"])) / len(np.union1d(errors.rows, peer["same"]))
        add_line(LINES, json.loads(json.dumps(line, default=float)))
        print(flip, share, seed, {name: line[name] for name in found}, line["accuracy"], flush=True)


def _cleanlab(python: str, vectors: np.ndarray, codes: np.ndarray, probabilities: np.ndarray) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, vectors=vectors, codes=codes, probabilities=probabilities)
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(
            [python, "-W", "ignore", "-c", PEER, str(file)], capture_output=True, text=True, check=True, env=clean
        )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _accuracies(vectors: np.ndarray, codes: np.ndarray, test: Any) -> dict[str, float]:
    """Test accuracy of a logistic regression with a penalty chosen on these labels, and with scikit-learn's default."""
    classes = len(test.classes)
    strength = chosen_strength(vectors, codes, folds_of(vectors, codes, 5, 0), classes, seed=0)
    ours = fitted(vectors, codes, test.vectors, classes, strength).argmax(1)
    plain = LogisticRegression(max_iter=300).fit(vectors, codes).predict(test.vectors)
    return {"chosen": float((ours == test.codes).mean()), "default": float((plain == test.codes).mean())}


def tokens() -> None:
    """Take the tags of some entities of CoNLL-03 away, or give them another type, and count how many are found."""
    read = read_sentences(Path(os.environ["DRIFT_DATA"], "conll03", "train.jsonl.gz"), label="labels", weak="")
    done = {(line["share"], line["seed"]) for line in read_lines(LINES) if line["what"] == "tokens"}
    for seed, share in product(SEEDS, SHARES):
        if (share, seed) in done:
            continue
        rng = np.random.default_rng([seed, int(1000 * share)])
        tags, removed, retyped = _damaged(read.labels, share, rng)
        began = time.process_time()
        mentions = suspicious_mentions(phrases_of(read.tokens, tags, read.scheme))
        seconds = time.process_time() - began
        line = {"what": "tokens", "share": share, "seed": seed, "seconds": round(seconds, 1)}
        for name, wrong, found in (
            ("missing", removed, {(m.sentence, m.word) for m in mentions if m.tagged == OUTSIDE}),
            ("inconsistent", retyped, {(m.sentence, m.word) for m in mentions if m.tagged != OUTSIDE}),
        ):
            hits = len(wrong & found)
            line[name] = {"found": len(found), "precision": hits / max(1, len(found)), "recall": hits / len(wrong)}
        add_line(LINES, line)
        print(line, flush=True)


def _damaged(labels: Any, share: float, rng: np.random.Generator) -> tuple[list[Any], set, set]:
    """Tags without some entities, and with another type for as many; and where these are."""
    types = ["LOC", "MISC", "ORG", "PER"]
    damaged, removed, retyped = [], set(), set()
    for row, tags in enumerate(labels):
        tags = list(tags)
        for span in spans_of(tags):
            draw = rng.random()
            if draw < share:
                tags[span.start : span.end] = [OUTSIDE] * (span.end - span.start)
                removed.add((row, span.start))
            elif draw < 2 * share:
                other = types[(types.index(span.type) + int(rng.integers(1, 4))) % 4]
                tags[span.start : span.end] = [f"{tag[:2]}{other}" for tag in tags[span.start : span.end]]
                retyped.add((row, span.start))
        damaged.append(tags)
    return damaged, removed, retyped


def tables() -> None:
    lines = read_lines(LINES)
    labels = [line for line in lines if line["what"] == "labels"]
    tagged = [line for line in lines if line["what"] == "tokens"]
    replace_tables(
        PAGE,
        table(["flipped", "share", "finder", "found", "precision", "recall", "F1"], _found_rows(labels)),
        table(
            ["flipped", "share", "head", "all labels", "drift check", "cleanlab's own", "no flipped labels"],
            _accuracy_rows(labels),
        ),
        table(["share", "of what", "found", "precision", "recall"], _token_rows(tagged)),
    )


def _cells(lines: list[dict[str, Any]]) -> Iterator[tuple[str, float, list[dict[str, Any]]]]:
    for flip, share in product(FLIPS, SHARES):
        if cell := [line for line in lines if (line["flip"], line["share"]) == (flip, share)]:
            yield flip, share, cell


def _found_rows(lines: list[dict[str, Any]]) -> Iterator[list[str]]:
    for flip, share, cell in _cells(lines):
        for name, title in FINDERS.items():
            precision, recall = (np.array([line[name][key] for line in cell]) for key in ("precision", "recall"))
            f1 = 2 * precision * recall / (precision + recall)
            found = np.mean([line[name]["found"] for line in cell])
            yield [flip, f"{share:.0%}", title, f"{found:.0f}", *(_percent(each) for each in (precision, recall, f1))]


def _accuracy_rows(lines: list[dict[str, Any]]) -> Iterator[list[str]]:
    heads = {"chosen": "penalty chosen on the labels", "default": "scikit-learn's default"}
    for flip, share, cell in _cells(lines):
        for head, title in heads.items():
            kept = ("all", "drift", "cleanlab", "clean")
            scores = [np.array([line["accuracy"][name][head] for line in cell]) for name in kept]
            yield [flip, f"{share:.0%}", title, *map(_percent, scores)]


def _token_rows(lines: list[dict[str, Any]]) -> Iterator[list[str]]:
    for share in SHARES:
        cell = [line for line in lines if line["share"] == share]
        for name, title in (("missing", "tags taken away"), ("inconsistent", "another type")):
            if cell:
                found, *scores = (
                    np.array([line[name][key] for line in cell]) for key in ("found", "precision", "recall")
                )
                yield [f"{share:.0%}", title, f"{found.mean():.0f}", *map(_percent, scores)]


def _percent(values: np.ndarray) -> str:
    return f"{100 * values.mean():.1f} ± {100 * values.std(ddof=1):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("run", "tokens", "table"))
    parser.add_argument("--cleanlab", help="Python of an environment with cleanlab.")
    options = parser.parse_args()
    if options.verb == "run":
        run(options.cleanlab)
    elif options.verb == "tokens":
        tokens()
    else:
        tables()


if __name__ == "__main__":
    main()
