"""Class names as a source of noisy labels: which class each text is nearest to, from vectors of texts and names.

Three steps, none of which needs a label:

1. s_c(x), the cosine of a text and the vector of a class, which is the mean over templates such as "This text is about
   sports." and over the description of the class.
2. Classes are compared after centring, s_c(x) - b_c, because some names are near to every text. b_c is the mean over
   classes of the mean of s_c within a class, not the mean over texts: that would assume equally common classes.
3. Texts form groups that similarities to a few words see only roughly. A Gaussian mixture with one component per class
   and a common covariance is fitted to the principal components of the texts, from the classes of step 2.

The most certain half of the texts of each class gets a label; the others abstain.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import softmax

from drift.weak.class_names import Phrases

TEMPLATES = (
    "{}",
    "This text is about {}.",
    "The topic of this text is {}.",
    "A {} text.",
    "This is {}.",
    "It is {}.",
    "Category: {}",
    "An example of {}.",
)
CERTAIN = 0.5  # part of the texts of each class that gets a label
BALANCING_ROUNDS = 20
COMPONENTS, ROWS_PER_COMPONENT = 64, 20  # of the mixture: at most, and texts that each one needs
MIXTURE_ROUNDS = 50
MOST_FITTED = 20_000  # texts that the mixture is fitted to
RIDGE = 1e-3  # added to the covariance, relative to its mean variance
AGREES = 0.55  # part of the texts a mixture is most certain of that step 2 must put in the same class, for each class
ALIKE = 0.95  # cosine of the vectors of two names that mean the same
FAR = 0.1  # of an equal share: hardly any text is near a name if fewer are nearest to it, before centring
LEAST_JUDGED = 100  # texts


@dataclass(frozen=True)
class NameVotes:
    """What class names say about N texts.

    votes: `(N, C)`, probabilities; a row of zeros is too uncertain. likely: the nearest class of each text, `(N,)`.
    certainty: `(N,)`, to sort texts of a class by. mixture: whether step 3 was used. faults: warnings for the user.
    """

    votes: np.ndarray
    likely: np.ndarray
    certainty: np.ndarray
    mixture: bool
    faults: list[str]


def class_vectors(phrases: Phrases, embed: Callable[[Sequence[str]], np.ndarray]) -> np.ndarray:
    """One vector of length 1 per class, `(C, D)`.

    A class with phrases has the mean of the directions of its name and of its phrases; a name without letters, such as
    a number, says nothing and is left out. embed: vectors of texts, `(n, D)`.
    """
    rows = []
    for name, described in phrases.items():
        spoken = name.replace("_", " ")
        has_letters = any(character.isalpha() for character in name)
        parts = [[template.format(spoken) for template in TEMPLATES]] if has_letters or not described else []
        parts += [list(described)] if described else []
        directions = [_unit(_unit(np.asarray(embed(part), dtype=np.float64)).mean(0)) for part in parts]
        rows.append(_unit(np.mean(directions, axis=0)))
    return np.stack(rows)


def name_votes(x: np.ndarray, vectors: np.ndarray, classes: Sequence[str]) -> NameVotes:
    """The votes of class names. x: vectors of texts, `(N, D)`. vectors: of the classes, `(C, D)`."""
    texts = _unit(np.asarray(x, dtype=np.float32))
    similarity = texts @ vectors.T.astype(np.float32)
    faults = [*_alike(vectors, classes), *_far(similarity, classes)]
    score = balanced(similarity.astype(np.float64))
    fitted = _mixture(texts, score)
    if fitted is not None:
        agreement = agreements(score, fitted)
        faults += [] if faults else _ungrouped(agreement, classes)
        score = fitted if agreement.min() >= AGREES else score
    likely, certainty = score.argmax(-1), margin(score)
    kept = most_certain(likely, certainty, len(classes))
    probabilities = softmax(score, axis=-1) if score is fitted else np.eye(len(classes))[likely]
    return NameVotes((probabilities * kept[:, None]).astype(np.float32), likely, certainty, score is fitted, faults)


def balanced(similarity: np.ndarray) -> np.ndarray:
    """Similarities s_c(x) - b_c, `(N, C)`, with b_c = mean_k mean_{x in class k} s_c(x), found by iteration."""
    C = similarity.shape[-1]
    offset = similarity.mean(0)
    for _ in range(BALANCING_ROUNDS):
        likely = (similarity - offset).argmax(-1)
        present = np.flatnonzero(np.bincount(likely, minlength=C))
        before, offset = offset, np.mean([similarity[likely == k].mean(0) for k in present], axis=0)
        if np.allclose(before, offset, atol=1e-7):
            break
    return np.asarray(similarity - offset)


def _mixture(texts: np.ndarray, score: np.ndarray) -> np.ndarray | None:
    """Log probabilities of the classes up to a constant per text, `(N, C)`; None if there are too few texts."""
    N, C = score.shape
    d = min(COMPONENTS, N // ROWS_PER_COMPONENT, texts.shape[1])
    chosen = np.linspace(0, N - 1, min(N, MOST_FITTED)).astype(int)
    likely = score[chosen].argmax(-1)
    if d < C or np.bincount(likely, minlength=C).min() < 2:
        return None
    mean = texts[chosen].mean(0)
    sample = (texts[chosen] - mean).astype(np.float64)
    _, directions = np.linalg.eigh(sample.T @ sample)
    directions = directions[:, ::-1][:, :d]  # the largest variances first
    z = sample @ directions
    total = z.T @ z / len(z)
    r = np.eye(C)[likely]
    for _ in range(MIXTURE_ROUNDS):
        n = r.sum(0) + 1e-6
        means = (r.T @ z) / n[:, None]
        within = total - (means.T * (n / n.sum())) @ means
        within += RIDGE * np.trace(total) / d * np.eye(d)
        weights = np.linalg.solve(within, means.T)  # (d, C)
        bias = np.log(n / n.sum()) - 0.5 * np.einsum("cd,dc->c", means, weights)
        before, r = r, softmax(z @ weights + bias, axis=-1)
        if np.abs(r - before).max() < 1e-3:
            break
    return np.asarray((texts - mean) @ (directions @ weights).astype(np.float32) + bias, dtype=np.float64)


def agreements(score: np.ndarray, fitted: np.ndarray) -> np.ndarray:
    """How far each component of the mixture still means the class that it began with, `(C,)`; 0 if it has vanished.

    It is the part of its texts that are in the class by name, too. Only texts that the mixture is certain of count:
    where classes are skewed, names put many texts of common classes into rare ones, and the mixture is right to move
    them.
    """
    nearest, likely = score.argmax(-1), fitted.argmax(-1)
    kept = most_certain(likely, margin(fitted), score.shape[-1])
    own = [kept & (likely == code) for code in range(score.shape[-1])]
    return np.array([(nearest == code)[rows].mean() if rows.any() else 0.0 for code, rows in enumerate(own)])


def most_certain(likely: np.ndarray, certainty: np.ndarray, C: int) -> np.ndarray:
    """Which texts are in the most certain part of their class, `(N,)`. At least one text of each class is."""
    kept = np.zeros(len(likely), dtype=bool)
    for code in range(C):
        rows = np.flatnonzero(likely == code)
        if len(rows):
            kept[rows[np.argsort(-certainty[rows], kind="stable")][: max(1, round(CERTAIN * len(rows)))]] = True
    return kept


def margin(score: np.ndarray) -> np.ndarray:
    """How far the best class of each row is ahead of the second, `(N,)`."""
    two = np.partition(score, -2, axis=-1)[:, -2:]
    return np.asarray(two[:, 1] - two[:, 0])


def caught(names: NameVotes, classes: Sequence[str], texts: Sequence[str], examples: int) -> Mapping[str, list[str]]:
    """The texts that each class is most certain of. examples: how many at most."""
    found: dict[str, list[str]] = {}
    for code, name in enumerate(classes):
        rows = np.flatnonzero(names.likely == code)
        best = rows[np.argsort(-names.certainty[rows], kind="stable")][:examples]
        found[name] = [texts[int(row)] for row in best]
    return found


def _alike(vectors: np.ndarray, classes: Sequence[str]) -> list[str]:
    cosine = vectors @ vectors.T
    return [
        f"warning: classes {classes[a]!r} and {classes[b]!r} mean nearly the same to the encoder (cosine"
        f" {cosine[a, b]:.2f}); merge them, or describe each in a few words"
        for a, b in combinations(range(len(classes)), 2)
        if cosine[a, b] > ALIKE
    ]


def _far(similarity: np.ndarray, classes: Sequence[str]) -> list[str]:
    """Warnings about classes that no text is near."""
    N, C = similarity.shape
    nearest = np.bincount(similarity.argmax(-1), minlength=C)
    return [
        f"warning: hardly any text is near the class {name!r} ({nearest[code]:,} of {N:,}); describe it in the words"
        " of the texts, or leave it out"
        for code, name in enumerate(classes)
        if nearest[code] < FAR * N / C and N >= LEAST_JUDGED
    ]


def _ungrouped(agreement: np.ndarray, classes: Sequence[str]) -> list[str]:
    """A warning about the class whose name fits the groups of texts least, if it does not fit."""
    worst = int(agreement.argmin())
    if agreement[worst] >= AGREES:
        return []
    return [
        f"warning: the texts form groups that do not fit the names, {classes[worst]!r} least of all: only"
        f" {agreement[worst]:.0%} of the texts in its group are nearest to it; describe it in the words of the texts,"
        " or leave it out"
    ]


def _unit(v: np.ndarray) -> np.ndarray:
    return np.asarray(v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-12))
