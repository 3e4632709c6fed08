"""Texts made up of words that belong to a class: pseudo-documents (Meng et al., 2018), for a classifier to start from.

Words are unit vectors. Those that stand for a class fit a von Mises-Fisher distribution on the sphere; a document is a
point drawn from it, and its words are drawn near the point, or from the whole corpus:

    p(w | d) = α p_B(w) + (1 - α) exp(d · v_w) / Σ_{w' in V_d} exp(d · v_w')   the second term for w in V_d alone

where V_d are the words nearest to d, and p_B is how frequent words are in the corpus.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from drift.data.word_counts import WordCounts
from drift.errors import DataError

AT_ONCE = 100  # documents whose nearness to every word is held in memory


def words_of_labels(
    corpus: WordCounts, rows: np.ndarray, labels: np.ndarray, classes: Sequence[str], most: int
) -> list[np.ndarray]:
    """For each class the words whose mean TF-IDF in its rows exceeds that in any other class's most, the first first.

    rows, labels: labelled texts and their class indices, `(n,)`. most: how many words a class.
    """
    from sklearn.feature_extraction.text import TfidfTransformer

    weights = TfidfTransformer(sublinear_tf=True).fit(corpus.counts).transform(corpus.counts[rows])
    means = np.stack([_mean(weights[np.flatnonzero(labels == place)]) for place in range(len(classes))])
    found, telling = [], corpus.telling()
    for place, name in enumerate(classes):
        lead = means[place] - np.delete(means, place, axis=0).max(0)
        lead[~telling] = 0
        words = np.argsort(-lead, kind="stable")[:most]
        words = words[lead[words] > 0]
        if len(words) < 2:
            raise DataError(f"the labelled texts of class {name!r} have no words of their own; give method.seed_words")
        found.append(words)
    return found


def _mean(weights: Any) -> np.ndarray:
    mean: np.ndarray = np.asarray(weights.sum(0)).ravel() / max(weights.shape[0], 1)
    return mean


def nearest_words(vectors: np.ndarray, seeds: Sequence[np.ndarray], allowed: np.ndarray, most: int) -> list[np.ndarray]:
    """Seed words of each class, and the words nearest to their mean, as many as no two classes share; at most `most`.

    vectors: `(V, D)`, of length 1. seeds: no word is of two classes. allowed: `(V,)`, which words may be added.
    """
    ranked = []
    for words in seeds:
        near = vectors @ vectors[words].mean(0)
        near[~allowed] = -np.inf
        near[words] = np.inf  # they come first
        ranked.append(np.argsort(-near, kind="stable")[: max(most, len(words))])
    for count in range(most, 0, -1):
        chosen = [words[: max(count, len(own))] for words, own in zip(ranked, seeds, strict=True)]
        if len(np.unique(np.concatenate(chosen))) == sum(map(len, chosen)):
            break
    return chosen


def fitted(points: np.ndarray) -> tuple[np.ndarray, float]:
    """μ and κ of the von Mises-Fisher distribution of unit vectors `(n, D)`: κ = r (D - r²) / (1 - r²), r = |mean|.

    This is the estimate of Banerjee et al. (2005); scipy's own finds no κ in many dimensions, where Bessel functions
    underflow.
    """
    mean = points.astype(np.float64).mean(0)
    length = float(np.linalg.norm(mean))
    r = min(length, 1 - 1e-6)  # of a single word κ is infinite
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
    """Documents of one class. class_words: what stands for it. nearest: size of V_d. background: α."""
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
