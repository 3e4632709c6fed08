"""Linear heads on fixed vectors of words, fitted again in a moment whenever sentences were labelled.

A head is multinomial logistic regression from the vector of a word to its type, or to none. Every head leaves out a
fifth of the sentences, so that each is predicted by a head that was not trained on it. The final run of a session is a
fine-tuned tagger, which is better, but takes minutes.
"""

import numpy as np
import torch
from torch import Tensor

from drift.annotate.heads import Lesson, Outcome, spread
from drift.annotate.learner import HEADS
from drift.annotate.policy import margin_doubt
from drift.data.batches import ranges
from drift.data.folds import FOLDS
from drift.data.labels import UNLABELED
from drift.tasks.heads import scaling
from drift.training.threads import threads

STRENGTH = 0.1  # C of the regression, on features of variance 1
ITERATIONS = 60  # of L-BFGS
MOST_WORDS = 20_000  # that are trained on
MOST_SCALED = 20_000  # words from which mean and deviation of the features are taken
WORDS_AT_ONCE = 16_384
DOUBTFUL = 5  # words of a sentence whose mean doubt is its own: long sentences are not favoured for their length


class WordHeads:
    """Heads on the vectors of all words. vectors: `(words, D)`, sentence after sentence. sizes: words per sentence."""

    def __init__(self, vectors: np.ndarray, sizes: np.ndarray, *, heads: int = HEADS) -> None:
        self.vectors, self.sizes, self.heads = vectors, sizes, heads
        self.first = np.cumsum(sizes) - sizes
        sample = np.linspace(0, len(vectors) - 1, min(len(vectors), MOST_SCALED)).astype(int)
        self.mean, self.scale = scaling(np.asarray(vectors[sample]))
        self.items = self._means()

    def teach(self, lesson: Lesson, classes: int) -> Outcome:
        """Train on the words of these sentences, and predict every word. Class 0 is no entity.

        lesson: its codes are those of the words of its rows, one after the other.
        """
        words, sizes = ranges(self.first[lesson.rows], self.sizes[lesson.rows]), self.sizes[lesson.rows]
        sentence = np.repeat(np.arange(len(lesson.rows)), sizes)
        used = np.flatnonzero(lesson.codes != UNLABELED)
        generator = np.random.default_rng(lesson.seed)
        if len(used) > MOST_WORDS:
            used = np.sort(generator.permutation(used)[:MOST_WORDS])
        present, codes = np.unique(lesson.codes[used], return_inverse=True)
        fold_of = generator.permutation(len(lesson.rows)) % min(FOLDS, self.heads)
        kept = fold_of[sentence[used]] != np.arange(self.heads)[:, None] % FOLDS  # (heads, m)
        if len(lesson.rows) < 2 or not kept.any(1).all():
            kept[:] = True
        with threads(1):
            x = torch.from_numpy(self._scaled(words[used]))
            weight, bias = _fitted(x, torch.from_numpy(codes), torch.from_numpy(kept), len(present))
            p, between = self._predict(weight, bias)
            held = self._left_out(weight, bias, words, fold_of[sentence])
        if kept.all():
            held[:] = np.nan
        probabilities, left_out = spread(p, present, classes), spread(held, present, classes)
        return Outcome(probabilities, most_doubtful(between, self.sizes), left_out)

    def doubt(self, probabilities: np.ndarray) -> np.ndarray:
        """The doubt about each sentence, `(n,)`. probabilities: of all words, `(words, C)`."""
        return most_doubtful(margin_doubt(probabilities), self.sizes)

    def predicted(self, probabilities: np.ndarray) -> np.ndarray | None:
        """None: a sentence has no class by which it could be chosen."""
        return None

    def _scaled(self, words: np.ndarray) -> np.ndarray:
        return np.asarray((np.asarray(self.vectors[words], dtype=np.float32) - self.mean) / self.scale)

    def _means(self) -> np.ndarray:
        """The mean vector of each sentence, `(n, D)`; 0 for one without words."""
        means = np.zeros((len(self.sizes), self.vectors.shape[1]), dtype=np.float32)
        for rows in np.array_split(np.flatnonzero(self.sizes), max(1, len(self.vectors) // WORDS_AT_ONCE)):
            if len(rows):
                start, end = self.first[rows[0]], self.first[rows[-1]] + self.sizes[rows[-1]]
                total = np.add.reduceat(self._scaled(np.arange(start, end)), self.first[rows] - start)
                means[rows] = total / self.sizes[rows, None]
        return means

    def _predict(self, weight: Tensor, bias: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Mean probabilities `(words, C)`, and the part of the uncertainty that is between the heads, `(words,)`."""
        means, between = [], []
        for start in range(0, len(self.vectors), WORDS_AT_ONCE):
            x = torch.from_numpy(self._scaled(np.arange(start, min(start + WORDS_AT_ONCE, len(self.vectors)))))
            p = (x @ weight + bias).softmax(-1)  # (heads, N, C)
            mean = p.mean(0)
            inside = torch.special.entr(p).sum(-1).mean(0)
            means.append(mean.numpy())
            between.append((torch.special.entr(mean).sum(-1) - inside).clamp(min=0).numpy())
        return np.concatenate(means), np.concatenate(between) / np.log(max(2, means[0].shape[-1]))

    def _left_out(self, weight: Tensor, bias: Tensor, words: np.ndarray, folds: np.ndarray) -> np.ndarray:
        """Probabilities of the words by the heads that left their sentence out, `(m, C)`. folds: of each word."""
        p = (torch.from_numpy(self._scaled(words)) @ weight + bias).softmax(-1).numpy()
        judges = np.arange(self.heads)[:, None] % FOLDS == folds  # (heads, m)
        return np.asarray((p * judges[..., None]).sum(0) / judges.sum(0)[:, None])


def _fitted(x: Tensor, codes: Tensor, kept: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Weights `(heads, D, C)` and biases `(heads, 1, C)` of one regression per head, on the rows that it keeps.

    x: `(m, D)`. codes: `(m,)`. kept: `(heads, m)`.
    """
    heads = len(kept)
    weight = torch.zeros(heads, x.shape[1], classes, requires_grad=True)
    bias = torch.zeros(heads, 1, classes, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=ITERATIONS, history_size=10, line_search_fn="strong_wolfe")
    target = codes.expand(heads, -1)
    part = kept / kept.sum(1, keepdim=True)  # (heads, m)
    penalty = 0.5 / (STRENGTH * kept.sum(1))

    def loss() -> Tensor:
        optimizer.zero_grad()
        log_p = (x @ weight + bias).log_softmax(-1)
        fit = -(log_p.gather(-1, target[..., None])[..., 0] * part).sum(1)
        total: Tensor = (fit + penalty * weight.square().sum((1, 2))).sum()
        total.backward()  # type: ignore[no-untyped-call]
        return total

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    return weight.detach(), bias.detach()


def most_doubtful(values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The mean of the `DOUBTFUL` largest values of each sentence, `(n,)`; 0 for one without words. values: by word."""
    sentence = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((-values, sentence))
    place = np.arange(len(values)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # within the sentence, largest first
    top = order[place < DOUBTFUL]
    total = np.bincount(sentence[top], values[top], minlength=len(sizes))
    return np.asarray(total / np.maximum(np.minimum(sizes, DOUBTFUL), 1))
