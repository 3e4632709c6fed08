"""What a record says about sources of noisy labels: coverage, accuracy, disagreement, and what class names caught."""

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.data.labels import UNLABELED
from drift.tasks.judging import excerpt
from drift.tasks.text.sources import Sources
from drift.training.flips import Flips
from drift.weak.ballots import exclusions, hard, leaders, spoken
from drift.weak.diagnostics import Share
from drift.weak.names import caught

if TYPE_CHECKING:
    import datasets

EXAMPLES = 3  # texts per class, and rows on which sources disagree


def source_facts(sources: Sources, gold: np.ndarray, texts: "datasets.Dataset") -> dict[str, Any]:
    """The fields `rules` and `sources` of a record. gold: class indices, `(N,)`, -1 where unknown."""
    facts: dict[str, Any] = {} if sources.rules is None else {"rules": sources.rules}
    if sources.combined is None or (len(sources.sources) == 1 and sources.sources[0].origin == "rules"):
        return facts  # one set of rules has a table of its own
    favoured = [leaders(each.votes) for each in sources.sources]
    pairs = list(combinations(range(len(favoured)), 2))
    together = [favoured[a].any(-1) & favoured[b].any(-1) for a, b in pairs]
    facts["sources"] = {
        "combined": sources.combined.method,
        "sources": [_source(sources, place, favoured[place], gold) for place in range(len(favoured))],
        "agreement": [
            {
                "first": sources.sources[a].name,
                "second": sources.sources[b].name,
                "agree": Share(int((favoured[a] & favoured[b]).any(-1)[both].sum()), int(both.sum())),
            }
            for (a, b), both in zip(pairs, together, strict=True)
        ],
        "disagreements": _disagreements(sources, favoured, texts),
        "caught": _caught(sources, texts),
        "mixture": None if sources.names is None else sources.names.mixture,
    }
    return facts


def change_facts(sources: Sources, flips: Flips) -> list[dict[str, Any]]:
    """How many votes of each source start and result agree with, on the rows that are watched. flips: of one trial."""
    found = []
    for each in sources.sources:
        favoured = leaders(each.votes[flips.targets])
        voted = int(favoured.any(-1).sum())
        ends = {"start": flips.before, "result": flips.after}
        agree = {name: Share(int(_favours(favoured, np.asarray(codes)).sum()), voted) for name, codes in ends.items()}
        found.append({"name": each.name, **agree})
    return found


def _source(sources: Sources, place: int, favoured: np.ndarray, gold: np.ndarray) -> dict[str, Any]:
    """The facts of one source. favoured: classes that its votes favour, `(N, C)`."""
    source = sources.sources[place]
    assert sources.combined is not None
    judged = favoured.any(-1) & (gold != UNLABELED)
    estimate = float(sources.combined.accuracies[place])
    return {
        "name": source.name,
        "source": source.origin,
        "coverage": Share(int(source.covered.sum()), len(favoured)),
        "estimated_accuracy": None if np.isnan(estimate) else estimate,
        "accuracy": Share(int(_favours(favoured[judged], gold[judged]).sum()), int(judged.sum())),
        "labels": _counts(source.votes, sources.classes),
    }


def _counts(votes: np.ndarray, classes: list[str]) -> dict[str, int]:
    """How many votes are for each class, and how many against it. Votes that favour several classes are left out."""
    ways = {"": hard(votes), "not ": exclusions(votes)}
    counts = {way: np.bincount(codes[codes != UNLABELED], minlength=len(classes)) for way, codes in ways.items()}
    named = dict(zip(classes, counts[""].tolist(), strict=True))
    return named | {f"not {name}": count for name, count in zip(classes, counts["not "].tolist(), strict=True) if count}


def _favours(favoured: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Whether each vote favours a class, among others if it excludes one, `(n,)`. codes: of the classes."""
    return np.asarray(favoured[np.arange(len(codes)), codes])


def _disagreements(sources: Sources, favoured: list[np.ndarray], texts: "datasets.Dataset") -> list[dict[str, Any]]:
    """Rows on which most pairs of sources disagree."""
    if len(favoured) < 2:
        return []
    assert sources.combined is not None
    against = np.zeros(len(favoured[0]), dtype=int)
    for one, other in combinations(favoured, 2):
        against += ~(one & other).any(-1) & one.any(-1) & other.any(-1)
    rows = [row for row in np.argsort(-against, kind="stable")[:EXAMPLES] if against[row]]
    codes = sources.codes
    names = [*sources.classes, ""]  # code -1 is the last
    return [
        {
            "text": excerpt(texts[int(row)]["text"]),
            "votes": {
                each.name: spoken(each.votes[row], sources.classes)
                for each, own in zip(sources.sources, favoured, strict=True)
                if own[row].any()
            },
            "label": names[codes[row]],
        }
        for row in rows
    ]


def _caught(sources: Sources, texts: "datasets.Dataset") -> list[dict[str, Any]]:
    """The texts nearest to each class name."""
    names = sources.names
    if names is None:
        return []
    examples = caught(names, sources.classes, texts["text"], EXAMPLES)
    likely = np.bincount(names.likely, minlength=len(sources.classes))
    labeled = np.bincount(names.likely[names.votes.any(-1)], minlength=len(sources.classes))
    return [
        {
            "name": name,
            "texts": int(likely[code]),
            "labeled": int(labeled[code]),
            "examples": [excerpt(text) for text in examples[name]],
        }
        for code, name in enumerate(sources.classes)
    ]
