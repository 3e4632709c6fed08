"""Rules that vote in a trained tagger: each of their tags multiplies the probability of that tag by a constant.

p'(tag) ∝ p(tag) exp(w [the rules say tag]), with the weight w. Words on which no rule votes keep their probabilities.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from drift.data.labels import UNLABELED
from drift.data.tags import split_tag
from drift.weak.token_labeling import label_tokens
from drift.weak.token_rules import TokenRuleSet

WEIGHTS = (0.0, 1.0, 2.0, 4.0, 8.0)  # that are tried on dev
WITHOUT_DEV = 8.0  # weak tags cannot tell how good their rules are: only a tagger that is very sure overrules them


@dataclass(frozen=True)
class Votes:
    """The rules of a tagger, and how much they count. rules: without Python code."""

    rules: TokenRuleSet
    weight: float

    def added(self, probabilities: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Probabilities with the votes. probabilities: `(..., words, C)`. codes: see `voted`."""
        return add_votes(probabilities, codes, self.weight)


def votes_of(rules: Any, setting: float | str) -> Votes | None:
    """How rules vote in the tagger that learns from them; None if there are none, or if all of them are Python code.

    rules: a TokenRuleSet, or None. setting: the weight, or "auto".
    """
    declarative = rules.declarative() if isinstance(rules, TokenRuleSet) and setting != 0 else None
    weight = WITHOUT_DEV if isinstance(setting, str) else setting
    return None if declarative is None else Votes(declarative, weight)


def voted(
    rules: TokenRuleSet, sentences: Sequence[Sequence[str]], classes: Sequence[str], *, entities: bool
) -> np.ndarray:
    """The tags of the rules as codes, `(words,)`, sentence after sentence; -1 where they have none.

    Tags that the tagger does not know are left out. Ties abstain, so that a sentence has the same votes in any table.
    """
    ties = "abstain" if rules.ties == "random" else rules.ties
    tags = label_tokens([list(words) for words in sentences], rules, ties=ties).tags
    if not entities:
        tags = [[split_tag(tag, "IOB2")[1] or tag for tag in sentence] for sentence in tags]
    code_of = {tag: code for code, tag in enumerate(classes)}
    codes = [code_of.get(str(tag), UNLABELED) for sentence in tags for tag in sentence]
    return np.array(codes, dtype=np.int64)


def add_votes(probabilities: np.ndarray, codes: np.ndarray, weight: float) -> np.ndarray:
    """Probabilities with votes, `(..., words, C)`. codes: the tag that is voted for, -1 for none, `(words,)`."""
    words = np.flatnonzero(codes != UNLABELED)
    log_p = np.log(np.maximum(probabilities[..., words, :], np.finfo(np.float32).tiny))
    log_p[..., np.arange(len(words)), codes[words]] += weight
    combined = np.array(probabilities)
    combined[..., words, :] = softmax(log_p, axis=-1)
    return combined


def best_weight(
    probabilities: np.ndarray, codes: np.ndarray, score: Callable[[np.ndarray], Mapping[str, float]]
) -> tuple[float, dict[float, float]]:
    """The weight with the highest mean F1 of all seeds, the smallest of equals, and the F1 of each weight.

    probabilities: `(seeds, words, C)`. codes: see `voted`. score: of the probabilities of one seed.
    """
    scores = {
        weight: float(np.mean([score(each)["f1"] for each in add_votes(probabilities, codes, weight)]))
        for weight in WEIGHTS
    }
    return max(scores, key=lambda weight: scores[weight]), scores
