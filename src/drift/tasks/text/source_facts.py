"""What a record says about sources of noisy labels: coverage, accuracy, disagreement, and what class names caught."""

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from drift.data.labels import UNLABELED
from drift.tasks.judging import excerpt
from drift.tasks.text.sources import Sources
from drift.training.flips import Flips
from drift.weak.combining import hard
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
    votes = [hard(each.votes) for each in sources.sources]
    pairs = list(combinations(range(len(votes)), 2))
    together = [(votes[a] != UNLABELED) & (votes[b] != UNLABELED) for a, b in pairs]
    facts["sources"] = {
        "combined": sources.combined.method,
        "sources": [_source(sources, place, votes[place], gold) for place in range(len(votes))],
        "agreement": [
            {
                "first": sources.sources[a].name,
                "second": sources.sources[b].name,
                "agree": Share(int((votes[a] == votes[b])[both].sum()), int(both.sum())),
            }
            for (a, b), both in zip(pairs, together, strict=True)
        ],
        "disagreements": _disagreements(sources, votes, texts),
        "caught": _caught(sources, texts),
        "mixture": None if sources.names is None else sources.names.mixture,
    }
    return facts


def change_facts(sources: Sources, flips: Flips) -> list[dict[str, Any]]:
    """How many votes of each source start and result agree with, on the rows that are watched. flips: of one trial."""
    found = []
    for each in sources.sources:
        votes = hard(each.votes)[flips.targets]
        voted = votes != UNLABELED
        found.append(
            {
                "name": each.name,
                "start": Share(int((votes == flips.before)[voted].sum()), int(voted.sum())),
                "result": Share(int((votes == flips.after)[voted].sum()), int(voted.sum())),
            }
        )
    return found


def _source(sources: Sources, place: int, votes: np.ndarray, gold: np.ndarray) -> dict[str, Any]:
    source = sources.sources[place]
    assert sources.combined is not None
    judged = (votes != UNLABELED) & (gold != UNLABELED)
    counts = np.bincount(votes[votes != UNLABELED], minlength=len(sources.classes))
    estimate = float(sources.combined.accuracies[place])
    return {
        "name": source.name,
        "source": source.origin,
        "coverage": Share(int(source.covered.sum()), len(votes)),
        "estimated_accuracy": None if np.isnan(estimate) else estimate,
        "accuracy": Share(int((votes == gold)[judged].sum()), int(judged.sum())),
        "labels": {name: int(count) for name, count in zip(sources.classes, counts, strict=True)},
    }


def _disagreements(sources: Sources, votes: list[np.ndarray], texts: "datasets.Dataset") -> list[dict[str, Any]]:
    """Rows on which most pairs of sources disagree."""
    if len(votes) < 2:
        return []
    assert sources.combined is not None
    against = np.zeros(len(votes[0]), dtype=int)
    for one, other in combinations(votes, 2):
        against += (one != other) & (one != UNLABELED) & (other != UNLABELED)
    rows = [row for row in np.argsort(-against, kind="stable")[:EXAMPLES] if against[row]]
    codes = sources.codes
    names = [*sources.classes, ""]  # code -1 is the last
    return [
        {
            "text": excerpt(texts[int(row)]["text"]),
            "votes": {
                each.name: names[vote[row]]
                for each, vote in zip(sources.sources, votes, strict=True)
                if vote[row] != UNLABELED
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
