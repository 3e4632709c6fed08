"""Pseudo-documents (Meng et al., 2018): random texts of words typical of a class, to pretrain a classifier on.

Words are unit vectors. A von Mises-Fisher distribution is fitted to the words of a class. A document is a point d drawn
from it, and the words of the document are drawn near d or from the whole corpus:

    p(w | d) = α p_B(w) + (1 - α) exp(d · v_w) / Σ_{w' in V_d} exp(d · v_w')   the second term only for w in V_d

where V_d are the words nearest to d, and p_B is the word frequency in the corpus.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from drift.data.word_counts import WordCounts
from drift.errors import DataError

AT_ONCE = 100  # documents whose similarity to every word is in memory at a time


def words_of_labels(
    corpus: WordCounts, rows: np.ndarray, labels: np.ndarray, classes: Sequence[str], most: int
) -> list[np.ndarray]:
    """Typical words of each class, the most typical first.

    A word is ranked by its mean TF-IDF in the class minus the largest mean in another class, which must be positive.
    rows, labels: row numbers and class indices of the labelled texts, `(n,)`. classes: their names. most: maximum
    number of words per class.
    """
    from sklearn.feature_extraction.text import TfidfTransformer

    weights = TfidfTransformer(sublinear_tf=True).fit(corpus.counts).transform(corpus.counts[rows])
    means = np.stack([_mean(weights[np.flatnonzero(labels == index)]) for index in range(len(classes))])
    words_of_classes, telling = [], corpus.telling()
    for index, name in enumerate(classes):
        lead = means[index] - np.delete(means, index, axis=0).max(0)
        lead[~telling] = 0
        words = np.argsort(-lead, kind="stable")[:most]
        words = words[lead[words] > 0]
        if len(words) < 2:
            raise DataError(f"the labelled texts of class {name!r} have no words of their own; give method.seed_words")
        words_of_classes.append(words)
    return words_of_classes


def _mean(weights: Any) -> np.ndarray:
    mean: np.ndarray = np.asarray(weights.sum(0)).ravel() / max(weights.shape[0], 1)
    return mean


def nearest_words(vectors: np.ndarray, seeds: Sequence[np.ndarray], allowed: np.ndarray) -> list[np.ndarray]:
    """The seed words of each class and the words nearest to their mean: as many as possible without overlap.

    vectors: unit vectors of the vocabulary, `(V, D)`. seeds: words of each class; no word is in two classes. allowed:
    which words may be added, `(V,)`.
    """
    ranked = []
    for words in seeds:
        near = vectors @ vectors[words].mean(0)
        near[words] = np.inf  # seed words come first
        order = np.argsort(-near, kind="stable")
        ranked.append(order[allowed[order] | np.isin(order, words)])
    chosen = list(seeds)
    for count in range(1, len(vectors) + 1):
        longer = [words[: max(count, len(seed))] for words, seed in zip(ranked, seeds, strict=True)]
        if len(np.unique(np.concatenate(longer))) < sum(map(len, longer)):
            break
        chosen = longer
    return chosen


def fitted(points: np.ndarray) -> tuple[np.ndarray, float]:
    """μ and κ of the von Mises-Fisher distribution of unit vectors `(n, D)`: κ = r (D - r²) / (1 - r²), r = |mean|.

    This is the estimate of Banerjee et al. (2005). scipy's fails in many dimensions, where Bessel functions underflow.
    """
    mean = points.astype(np.float64).mean(0)
    length = float(np.linalg.norm(mean))
    r = min(length, 1 - 1e-6)  # for a single word κ would be infinite
    return mean / length, r * (points.shape[1] - r**2) / (1 - r**2)


def pseudo_documents(
    corpus: WordCounts,
    vectors: np.ndarray,
    class_words: np.ndarray,
    *,
    documents: int,
    nearest: int,
    background: float,
    seed: np.random.SeedSequence,
) -> Iterator[str]:
    """Pseudo-documents of one class.

    corpus: word frequencies and text lengths to draw from. vectors: unit vectors of its vocabulary, `(V, D)`.
    class_words: words of the class, as rows of `vectors`. documents: how many to make. nearest: size of V_d.
    background: α. seed: of the random draws.
    """
    from scipy.stats import vonmises_fisher  # imported late: it takes half a second

    random = np.random.default_rng(seed)
    of_class = vonmises_fisher(*fitted(vectors[class_words]))
    frequency = np.cumsum(corpus.totals())
    nearest = min(nearest, len(vectors))
    words = np.array(corpus.words, dtype=object)
    for start in range(0, documents, AT_ONCE):
        count = min(AT_ONCE, documents - start)
        points = of_class.rvs(count, random_state=random).reshape(count, -1)
        near = points @ vectors.T
        around = np.argpartition(-near, nearest - 1, axis=1)[:, :nearest]  # (count, nearest), V_d
        shares = np.exp(np.take_along_axis(near, around, 1)).cumsum(1)
        lengths = random.choice(corpus.lengths, count)
        document = np.repeat(np.arange(count), lengths)
        drawn = random.random(len(document)) * shares[document, -1]
        of_point = around[document, (shares[document] <= drawn[:, None]).sum(1)]
        of_corpus = np.searchsorted(frequency, random.random(len(document)) * frequency[-1], side="right")
        chosen = np.where(random.random(len(document)) < background, of_corpus, of_point)
        for part in np.split(words[chosen], np.cumsum(lengths)[:-1]):
            yield " ".join(part)
