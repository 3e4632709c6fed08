"""How many words a tagger takes for part of an entity, beside the tags that it learned from."""

from collections.abc import Callable, Sequence

import numpy as np

from drift.data.labels import UNLABELED
from drift.data.tags import OUTSIDE
from drift.tasks.tokens.data import TokenData, sizes_of
from drift.tasks.tokens.record import TaggedWords

WATCHED = 200  # training sentences that are predicted: the first
MOST, TIMES = 0.5, 2.0  # a tagger that tags more than half of the words, and twice as many as its labels, is suspect


def tagged_words(data: TokenData, predict: Callable[[Sequence[Sequence[str]]], Sequence[Sequence[str]]]) -> TaggedWords:
    """The share of words with a tag other than O, in the tags that are learned and in the predictions of a tagger.

    Words without a weak tag count as O. With gold tags, only sentences that have some count.
    """
    if data.weak is None:
        sizes = sizes_of(data.sentences)
        known = np.add.reduceat(data.gold != UNLABELED, np.cumsum(sizes) - sizes) > 0
        labels = data.gold[np.repeat(known, sizes)]
    else:
        labels = data.weak[: data.train_words]
    predicted = [tag for tags in predict(data.sentences.tokens[:WATCHED]) for tag in tags]
    return TaggedWords(
        labels=float(np.mean((labels != UNLABELED) & (labels != data.outside))),
        model=sum(tag != OUTSIDE for tag in predicted) / len(predicted),
    )


def faults(shares: TaggedWords) -> list[str]:
    """A warning if the tagger takes nearly every word for part of an entity, and its labels did not."""
    if shares.model <= max(MOST, TIMES * shares.labels):
        return []
    return [
        f"warning: the tagger takes {100 * shares.model:.0f} % of the words for part of an entity, where"
        f" {100 * shares.labels:.0f} % have such a tag in training; tag words as {OUTSIDE}, or try data.uncovered=O"
    ]
