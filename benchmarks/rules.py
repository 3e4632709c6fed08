"""Time keyword rules on many texts: the cost of ten times as many keywords, and the time for a million texts.

Texts are 40 words drawn from a vocabulary of 100,000 artificial words with Zipf's frequencies; keywords are drawn
uniformly from the same vocabulary. The ratio is measured on fewer texts; few and many keywords alternate, so that other
load on the machine affects both. Prints JSON.

    python benchmarks/rules.py
    python benchmarks/rules.py --texts 100000 --jobs 2 --out docs/results/rules.json
    DRIFT_DATA=~/data python benchmarks/rules.py --published

The last command measures something else: how many of the weak labels stored with AGNews, IMDB and Yelp the published
rules reproduce, if ties abstain. A rule that needs TextBlob is left out if that is not installed.
"""

import argparse
import gzip
import json
import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from drift.paper.published_rules import convert_published
from drift.training.progress import progress
from drift.weak import ABSTAIN, PythonRule, RuleSet, label
from drift.weak.casting import TEXTS_PER_BATCH

VOCABULARY, WORDS_PER_TEXT, RULES, KEYWORDS = 100_000, 40, 100, 20
CLASSES = ("a", "b", "c", "d")
TARGET = 1.5  # upper bound of the ratio for ten times the keywords


def vocabulary(rng: np.random.Generator) -> np.ndarray:
    """Different words of two to five syllables."""
    consonants = ["b", "c", "ch", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "st", "t", "tr", "v"]
    syllables = np.array([consonant + vowel for consonant in consonants for vowel in "aeiou"])
    words: set[str] = set()
    while len(words) < VOCABULARY:
        words.add("".join(rng.choice(syllables, size=rng.integers(2, 6))))
    return rng.permutation(sorted(words))


def make_texts(words: np.ndarray, count: int, rng: np.random.Generator) -> list[str]:
    frequency = 1 / np.arange(1, len(words) + 1)
    drawn = rng.choice(len(words), size=(count, WORDS_PER_TEXT), p=frequency / frequency.sum())
    return [" ".join(row) for row in words[drawn]]


def make_rules(words: np.ndarray, keywords: int, rng: np.random.Generator) -> RuleSet:
    lists = rng.choice(words, size=(RULES, keywords), replace=False).tolist()
    return RuleSet(
        [
            {"name": f"r{n}", "label": CLASSES[n % len(CLASSES)], "has": keyword_list}
            for n, keyword_list in enumerate(lists)
        ],
        CLASSES,
    )


def seconds(rules: RuleSet, texts: list[str]) -> float:
    start = time.perf_counter()
    rules.votes(texts)
    return time.perf_counter() - start


def ratio(words: np.ndarray, texts: list[str], repeats: int, rng: np.random.Generator) -> dict[str, Any]:
    """The cost of ten times as many keywords, and the votes they add."""
    sets = {many: make_rules(words, KEYWORDS * many, rng) for many in (1, 10)}
    votes = {many: float((rules.votes(texts) != ABSTAIN).sum(axis=1).mean()) for many, rules in sets.items()}
    taken: dict[int, list[float]] = {1: [], 10: []}
    for repeat in range(repeats):
        for many in (1, 10) if repeat % 2 else (10, 1):
            taken[many].append(seconds(sets[many], texts))
    ratios = np.array(taken[10]) / np.array(taken[1])
    median, low, high = np.quantile(ratios, (0.5, 0.25, 0.75)).round(3).tolist()
    return {
        "texts": len(texts),
        "repeats": repeats,
        "seconds": {
            f"{RULES * KEYWORDS * many:,} keywords": round(float(np.median(taken[many])), 3) for many in (1, 10)
        },
        "votes a text": {f"{RULES * KEYWORDS * many:,} keywords": round(votes[many], 2) for many in (1, 10)},
        "ratio": {"median": median, "q1": low, "q3": high},
        "target": TARGET,
        "met": median < TARGET,
    }


def full_run(words: np.ndarray, count: int, jobs: int, rng: np.random.Generator) -> dict[str, Any]:
    texts = make_texts(words, count, rng)
    rules = make_rules(words, KEYWORDS, rng)
    start = time.perf_counter()
    with progress("Voting", -(-count // TEXTS_PER_BATCH)) as tick:
        votes = rules.votes(texts, n_jobs=jobs, tick=lambda _: tick())
    taken = time.perf_counter() - start
    covered = float((votes != ABSTAIN).any(axis=1).mean())
    return {
        "texts": count,
        "jobs": jobs,
        "seconds": round(taken, 1),
        "texts a second": round(count / taken),
        "covered": round(covered, 3),
    }


def agreement(folder: Path) -> dict[str, Any]:
    """The share of training rows that get the weak label stored with them."""
    with gzip.open(folder / "train.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    rules = convert_published(json.loads((folder / "rules.json").read_text(encoding="utf-8")))
    kept = rules.rules
    if find_spec("textblob") is None:
        kept = tuple(rule for rule in kept if not isinstance(rule, PythonRule))
    used = RuleSet(kept, rules.classes, strip_punctuation=rules.strip_punctuation)
    labels = label([row["text"] for row in rows], used).labels
    same = sum(mine == row["weak"] for mine, row in zip(labels, rows, strict=True))
    left_out = [rule.name for rule in rules.rules if rule not in kept]
    return {"rows": len(rows), "equal": same, "share": round(same / len(rows), 5), "left out": left_out}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=1_000_000, help="texts of the full run (default: %(default)s)")
    parser.add_argument("--ratio-texts", type=int, default=50_000, help="texts of the ratio (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=7, help="repeats of the ratio (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="processes of the full run (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="also write the JSON to this file")
    parser.add_argument("--published", action="store_true", help="measure the published rules in $DRIFT_DATA instead")
    args = parser.parse_args()
    if args.published:
        data = Path(os.environ.get("DRIFT_DATA", "")).expanduser()
        print(json.dumps({name: agreement(data / name) for name in ("agnews", "imdb", "yelp")}, indent=2))
        return
    rng = np.random.default_rng(0)
    words = vocabulary(rng)
    result: dict[str, Any] = {
        "setting": {
            "words a text": WORDS_PER_TEXT,
            "rules": RULES,
            "keywords a rule": KEYWORDS,
            "vocabulary": VOCABULARY,
        },
        "cores": os.cpu_count(),
        "load before": round(os.getloadavg()[0], 1),  # from other processes on the same cores
        "ten times the keywords": ratio(words, make_texts(words, args.ratio_texts, rng), args.repeats, rng),
    }
    print(f"ratio {result['ten times the keywords']['ratio']}; now {args.texts:,} texts", file=sys.stderr)
    result["full run"] = full_run(words, args.texts, args.jobs, rng)
    text = json.dumps(result, indent=2)
    print(text)
    if args.out:
        args.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
