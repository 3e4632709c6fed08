"""WeSTClass (Meng, Shen, Zhang and Han, 2018): first phase on pseudo-documents, then self-training on sharpened labels.

1. Word vectors are trained on the corpus. A von Mises-Fisher distribution is fitted to the words of each class, which
   the user gives or the labelled rows provide. Pseudo-documents are drawn from it, with a share α of background words
   (see data/pseudo_documents.py).
2. The first phase trains on pseudo-documents, with labels that spread α evenly:
       L = mean KL(l ‖ f(d, θS)),   l_j = (1 - α) [j = class] + α / C
3. Self-training on all texts. Every `update_every` steps the targets are recomputed from predictions for all of them:
       L = mean KL(l ‖ f(x, θS)),   l_ij = (p_ij² / f_j) / Σ_j' (p_ij'² / f_j'),   f_j = Σ_i p_ij

Defaults of the original work: α = 0.2, 500 documents per class from the 50 nearest words, 10 words per class from
labelled texts, new targets every 50 batches. The words of each class, wherever they come from, are extended by those
nearest to their mean, as many as possible without a word in two classes. Texts with gold labels are added to the
pseudo-documents, ten times each; texts with weak labels are not.

Differs from paper: any text classifier can be used, not only a CNN or HAN.
Differs from the official code: the words of a class are those whose mean TF-IDF in its labelled texts exceeds that in
every other class; there they are those with the largest mean, of sentiments only adjectives, which needs a tagger.
Differs from paper: the length of a document is that of a random text, not drawn from a normal distribution.
Differs from paper: the number of steps is fixed and the best student on dev is kept; the original stops when few
predictions change.
Differs from paper: labels of gold-labelled texts are smoothed in the same way as those of pseudo-documents.

Trials with the same words for each class share their pseudo-documents, so that a fixed encoder reads them once. Trials
with different labelled rows have their own words and pseudo-documents, because no trial may see the labels of others.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from drift.core.checks import check_labels, check_pair
from drift.core.forward import log_probabilities
from drift.core.losses import kl_divergence
from drift.core.softmax import log_softmax
from drift.data.examples import Batch, Labeled
from drift.data.pseudo_documents import nearest_words, pseudo_documents, words_of_labels
from drift.data.word_counts import WordCounts
from drift.data.word_tokens import WordTokenizer, split_words
from drift.errors import ConfigError
from drift.methods.materials import Materials, Pool, Texts
from drift.methods.method import TEXTS, Context, Method
from drift.models.word2vec import word_vectors
from drift.settings import Settings


class WestClassSettings(Settings):
    """How pseudo-documents are made, and how often targets are recomputed."""

    seed_words: Literal["labels", "names"] | dict[str, list[str]] = Field(
        "labels",
        description="Source of the words of each class: labels (words of labelled rows), names (the class names), or"
        " {class: [words]}.",
    )
    keywords: int = Field(
        10, ge=2, description="Words per class that are taken from labelled rows, before similar words are added."
    )
    documents: int = Field(500, ge=1, description="Pseudo-documents per class.")
    nearest: int = Field(50, ge=1, description="Vocabulary of a pseudo-document, besides background words.")
    background: float = Field(
        0.2, ge=0, lt=1, description="Share of background words, and of a label that is spread evenly, α."
    )
    copies: int = Field(
        10, ge=0, description="Copies of each gold-labelled text among the pseudo-documents; weak labels: none."
    )
    min_count: int = Field(5, ge=1, description="Minimum count of a word to have a vector.")
    update_every: int = Field(50, ge=1, description="Steps after which targets are recomputed from all texts.")


class WestClass(Method):
    """Pseudo-documents, then self-training. See the module's docstring."""

    name = "westclass"
    summary = "first phase on pseudo-documents from words of each class, then self-training on all texts (WeSTClass)"
    settings_type = WestClassSettings
    needs = frozenset({TEXTS})
    relative_cost = 1  # the second phase has no labelled rows

    def __init__(self, student: nn.Module, settings: WestClassSettings, context: Context = Context()) -> None:
        super().__init__(student, settings, context)
        self.background, self.refresh_every = settings.background, settings.update_every
        self.log_targets: Tensor | None = None  # (..., rows, C), by row number

    @classmethod
    def named_classes(cls, settings: WestClassSettings) -> Collection[str]:
        return settings.seed_words if isinstance(settings.seed_words, dict) else ()

    @classmethod
    def prepare_texts(cls, settings: WestClassSettings, texts: Texts) -> Materials:
        tokenizer = WordTokenizer.from_texts(texts.texts, min_count=settings.min_count)
        # First, so that mistakes in the settings are reported before the slow part.
        user_words = _words_of_settings(settings.seed_words, texts.classes, tokenizer)
        corpus = WordCounts.of(texts.texts, tokenizer)
        vectors = word_vectors(texts.texts, tokenizer, progress=texts.progress)
        rows, labels = (np.atleast_2d(part.numpy()) for part in (texts.labeled.rows, texts.labeled.labels))
        if user_words is None:
            seeds = [
                words_of_labels(corpus, of_trial, classes, texts.classes, settings.keywords)
                for of_trial, classes in zip(rows, labels, strict=True)
            ]
            words = [nearest_words(vectors, of_trial, corpus.telling()) for of_trial in seeds]
        else:
            words = [nearest_words(vectors, user_words, corpus.telling())] * len(rows)
        documents, starts = _pseudo_documents(corpus, vectors, words, settings, texts.seeds)
        # Weak labels only select the words of a class; texts with gold labels are trained on as well.
        copies = 0 if texts.weak else settings.copies
        real = np.unique(rows) if copies else rows[0, :0]
        examples = texts.encode([*documents, *(texts.texts[int(row)] for row in real)])
        made = np.arange(len(texts.classes) * settings.documents)
        example_rows = np.stack(
            [
                np.concatenate([start + made, np.tile(len(documents) + np.searchsorted(real, of_trial), copies)])
                for start, of_trial in zip(starts, rows, strict=True)
            ]
        )
        codes = np.stack(
            [np.concatenate([made // settings.documents, np.tile(of_trial, copies)]) for of_trial in labels]
        )
        shape = (*texts.labeled.rows.shape[:-1], -1)
        labeled = Labeled(examples, torch.from_numpy(example_rows).view(shape), torch.from_numpy(codes).view(shape))
        listing = "; ".join(
            f"{name}: {', '.join(corpus.words[word] for word in of_class)}"
            for name, of_class in zip(texts.classes, words[0], strict=True)
        )
        return Materials(labeled, notes=[f"words of each class, for the first seed: {listing}"])

    def initial_loss(self, batch: Batch) -> Tensor:
        x, y = check_pair(batch.labeled)
        log_q = log_probabilities(self.student, x, stacked=self.stacked)
        y = check_labels(y, log_q)
        spread = torch.full_like(log_q, self.background / log_q.shape[-1])
        smoothed = spread.scatter_add(-1, y.unsqueeze(-1), torch.full_like(log_q, 1 - self.background))
        return self.mean(kl_divergence(smoothed.log(), log_q), batch.labeled_total).sum()

    def loss(self, batch: Batch) -> Tensor:
        losses = [] if batch.labeled is None else [self.initial_loss(batch)]
        if batch.unlabeled is not None:
            log_q = log_probabilities(self.student, batch.unlabeled, stacked=self.stacked)
            divergence = kl_divergence(self._targets_of(batch.unlabeled_rows, log_q), log_q)
            losses.append(self.mean(divergence, batch.unlabeled_total).sum())
        return torch.stack(losses).sum()

    def _targets_of(self, rows: Tensor | None, log_q: Tensor) -> Tensor:
        if self.log_targets is None or rows is None:  # without predictions for all texts, f is uniform
            return sharpened(log_q.detach())
        index = rows.unsqueeze(-1).expand(*rows.shape, log_q.shape[-1])
        return self.log_targets.gather(-2, index).to(log_q.device)

    def start(self, probe: Any = None) -> None:
        self.log_targets = None

    def refresh(self, pool: Pool) -> None:
        self.student.eval()
        log_p = pool.ask(lambda inputs: log_probabilities(self.student, inputs, stacked=self.stacked))
        self.student.train()
        log_y = sharpened(log_p, log_p.logsumexp(-2, keepdim=True))
        table = log_y.new_zeros(*log_y.shape[:-2], int(pool.rows.max()) + 1, log_y.shape[-1])
        self.log_targets = table.scatter_(-2, pool.rows.unsqueeze(-1).expand_as(log_y), log_y)

    def state_dict(self) -> dict[str, Any]:
        return {"log_targets": self.log_targets}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.log_targets = state["log_targets"]


def sharpened(log_p: Tensor, log_f: Tensor | float = 0.0) -> Tensor:
    """Return log l of l_j ∝ p_j² / f_j. log_p: `(..., N, C)`. log_f: `(..., 1, C)`; 0 means a uniform f."""
    return log_softmax(2 * log_p - log_f)


def _pseudo_documents(
    corpus: WordCounts,
    vectors: np.ndarray,
    words: Sequence[list[np.ndarray]],
    settings: WestClassSettings,
    seeds: Sequence[int],
) -> tuple[list[str], list[int]]:
    """Return all pseudo-documents, class by class, and the position of the first document of each trial.

    words: per trial, the words of each class. seeds: one per trial.
    """
    documents: list[str] = []
    first: dict[tuple[bytes, ...], int] = {}
    starts = []
    for seed, of_trial in zip(seeds, words, strict=True):
        key = tuple(map(bytes, of_trial))
        if key not in first:
            first[key] = len(documents)
            for index, of_class in enumerate(of_trial):
                documents += pseudo_documents(
                    corpus,
                    vectors,
                    of_class,
                    documents=settings.documents,
                    nearest=settings.nearest,
                    background=settings.background,
                    seed=np.random.SeedSequence((seed, index)),
                )
        starts.append(first[key])
    return documents, starts


def _words_of_settings(
    seed_words: str | dict[str, list[str]], classes: Sequence[str], tokenizer: WordTokenizer
) -> list[np.ndarray] | None:
    """Return the vocabulary indices of each class's words; None if they come from labelled rows."""
    if seed_words == "labels":
        return None
    by_class = {name: [name] for name in classes} if isinstance(seed_words, str) else seed_words
    if set(by_class) != set(classes):
        raise ConfigError(
            f"method.seed_words has words of {', '.join(by_class)}; give words of each class: {', '.join(classes)}"
        )
    index_of = {word: index for index, word in enumerate(tokenizer.words)}
    indices = []
    for name in classes:
        words = dict.fromkeys(part for word in by_class[name] for part in split_words(word))
        known = [index_of[word] for word in words if word in index_of]
        if not known:
            raise ConfigError(f"no text has any of {', '.join(words)}, for class {name!r}; give method.seed_words")
        indices.append(np.array(known))
    together = np.concatenate(indices)
    if len(twice := together[np.bincount(together)[together] > 1]):
        raise ConfigError(f"{tokenizer.words[twice[0]]!r} stands for two classes; give it to one in method.seed_words")
    return indices
