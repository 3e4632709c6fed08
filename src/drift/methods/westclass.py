"""WeSTClass (Meng, Shen, Zhang and Han, 2018): a start from pseudo-documents, then self-training on sharpened answers.

1. Word vectors are trained on the corpus. The words that stand for a class, given or found, fit a von Mises-Fisher
   distribution; pseudo-documents are drawn from it with a share α of background words (see data/pseudo_documents.py).
2. The start is found on pseudo-documents, with labels that spread α evenly:
       L = mean KL(l ‖ f(d, θS)),   l_j = (1 - α) [j = class] + α / C
3. Self-training on all texts, whose targets are made anew every so many steps from what the student says of them all:
       L = mean KL(l ‖ f(x, θS)),   l_ij = (p_ij² / f_j) / Σ_j' (p_ij'² / f_j'),   f_j = Σ_i p_ij

Its defaults: α = 0.2, 500 documents a class from the 50 words nearest to each, 10 words a class from labelled texts,
targets every 50 batches. Real labelled texts join the pseudo-documents, ten times each; weakly labelled ones do not.

Differs from paper: the model is any classifier of texts here, not only a CNN or HAN.
Differs from paper: words of labelled texts are those whose mean TF-IDF leads that of every other class.
Differs from paper: the length of a document is that of a random text, not normal with the mean and spread of all.
Differs from paper: steps are fixed and the best student on dev is kept; there, it ends when few answers change.
Differs from paper: labels of real labelled texts are smoothed as those of pseudo-documents are.

Trials that have the same words for each class share their pseudo-documents, so that a fixed encoder reads them once;
trials with labelled rows of their own have words and pseudo-documents of their own, as no trial may see others' labels.
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
from drift.methods.method import Method
from drift.models.word2vec import word_vectors
from drift.settings import Settings


class WestClassSettings(Settings):
    """What pseudo-documents are made of, and how often targets are made anew."""

    seed_words: Literal["labels", "names"] | dict[str, list[str]] = Field(
        "labels",
        description="What stands for each class: words of labelled rows, the classes' names, or {class: [words]}.",
    )
    keywords: int = Field(10, ge=2, description="Words a class; near ones are added to names and to words given.")
    documents: int = Field(500, ge=1, description="Pseudo-documents a class.")
    nearest: int = Field(50, ge=1, description="Words that a pseudo-document is made of, beside background words.")
    background: float = Field(
        0.2, ge=0, lt=1, description="Share of background words, and of a label that is spread evenly; α there."
    )
    copies: int = Field(10, ge=0, description="Of each labelled text among the pseudo-documents; of weak ones none.")
    min_count: int = Field(5, ge=1, description="Rarer words have no vector.")
    update_every: int = Field(50, ge=1, description="Steps after which targets are made anew from all texts.")


class WestClass(Method):
    """See the module."""

    name = "westclass"
    summary = "a start from made-up texts of each class's words, then sharpened answers on all texts (WeSTClass)"
    settings_type = WestClassSettings
    tasks = ("text",)
    relative_cost = 1  # there are no labelled rows after the start

    def __init__(
        self,
        student: nn.Module,
        settings: WestClassSettings,
        *,
        teacher: nn.Module | None = None,
        stacked: bool = False,
        single_process: bool = False,
    ) -> None:
        super().__init__(student, settings, stacked=stacked, single_process=single_process)
        self.background, self.refresh_every = settings.background, settings.update_every
        self.log_targets: Tensor | None = None  # (..., rows, C), by row number

    @classmethod
    def named_classes(cls, settings: WestClassSettings) -> Collection[str]:
        return settings.seed_words if isinstance(settings.seed_words, dict) else ()

    @classmethod
    def prepare_texts(cls, settings: WestClassSettings, texts: Texts) -> Materials:
        tokenizer = WordTokenizer.from_texts(texts.texts, min_count=settings.min_count)
        given = _given_words(settings.seed_words, texts.classes, tokenizer)  # first: its faults should show at once
        corpus = WordCounts.of(texts.texts, tokenizer)
        vectors = word_vectors(texts.texts, tokenizer, progress=texts.progress)
        rows, labels = (np.atleast_2d(part.numpy()) for part in (texts.labeled.rows, texts.labeled.labels))
        if given is None:
            words = [
                words_of_labels(corpus, of_trial, classes, texts.classes, settings.keywords)
                for of_trial, classes in zip(rows, labels, strict=True)
            ]
        else:
            words = [nearest_words(vectors, given, corpus.telling(), settings.keywords)] * len(rows)
        written, starts = _written(corpus, vectors, words, settings, texts.seeds)
        # Weak labels only say which words stand for a class; gold ones are learnt from too.
        copies = 0 if texts.weak else settings.copies
        real = np.unique(rows) if copies else rows[0, :0]
        examples = texts.encode([*written, *(texts.texts[int(row)] for row in real)])
        made = np.arange(len(texts.classes) * settings.documents)
        found = np.stack(
            [
                np.concatenate([start + made, np.tile(len(written) + np.searchsorted(real, own), copies)])
                for start, own in zip(starts, rows, strict=True)
            ]
        )
        classes_of = np.stack([np.concatenate([made // settings.documents, np.tile(own, copies)]) for own in labels])
        shape = (*texts.labeled.rows.shape[:-1], -1)
        labeled = Labeled(examples, torch.from_numpy(found).view(shape), torch.from_numpy(classes_of).view(shape))
        shown = "; ".join(
            f"{name}: {', '.join(corpus.words[word] for word in of_class)}"
            for name, of_class in zip(texts.classes, words[0], strict=True)
        )
        return Materials(labeled, notes=[f"words that stand for the classes, of the first seed: {shown}"])

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
        if self.log_targets is None or rows is None:  # all texts were not looked at: f is taken as even
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
    """log l of l_j ∝ p_j² / f_j. log_p: `(..., N, C)`; log_f: `(..., 1, C)`."""
    return log_softmax(2 * log_p - log_f)


def _written(
    corpus: WordCounts,
    vectors: np.ndarray,
    words: Sequence[list[np.ndarray]],
    settings: WestClassSettings,
    seeds: Sequence[int],
) -> tuple[list[str], list[int]]:
    """Pseudo-documents class after class, and where those of each trial begin. words: of each class, a trial."""
    written: list[str] = []
    first: dict[tuple[bytes, ...], int] = {}
    starts = []
    for seed, of_trial in zip(seeds, words, strict=True):
        key = tuple(map(bytes, of_trial))
        if key not in first:
            first[key] = len(written)
            for place, of_class in enumerate(of_trial):
                written += pseudo_documents(
                    corpus,
                    vectors,
                    of_class,
                    documents=settings.documents,
                    nearest=settings.nearest,
                    background=settings.background,
                    seed=np.random.SeedSequence((seed, place)),
                )
        starts.append(first[key])
    return written, starts


def _given_words(
    seed_words: str | dict[str, list[str]], classes: Sequence[str], tokenizer: WordTokenizer
) -> list[np.ndarray] | None:
    """Places in the vocabulary of what the user said stands for each class; None if labelled rows say it."""
    if seed_words == "labels":
        return None
    said = {name: [name] for name in classes} if isinstance(seed_words, str) else seed_words
    if set(said) != set(classes):
        raise ConfigError(f"method.seed_words is of {', '.join(said)}; give words of each class: {', '.join(classes)}")
    places = {word: place for place, word in enumerate(tokenizer.words)}
    found = []
    for name in classes:
        words = dict.fromkeys(part for word in said[name] for part in split_words(word))
        known = [places[word] for word in words if word in places]
        if not known:
            raise ConfigError(f"no text has any of {', '.join(words)}, for class {name!r}; give method.seed_words")
        found.append(np.array(known))
    together = np.concatenate(found)
    if len(twice := together[np.bincount(together)[together] > 1]):
        raise ConfigError(f"{tokenizer.words[twice[0]]!r} stands for two classes; give it to one in method.seed_words")
    return found
