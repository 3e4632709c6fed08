"""The student of a text run for each kind of model, and the trained classifier that comes of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from drift.data.examples import Examples, Vectors
from drift.data.tokenized import Progress, TokenizedTexts, tokenize
from drift.data.word_tokens import WordTokenizer
from drift.data.word_vectors import read_vectors, vectors_for
from drift.models.embedding import check_length, embed
from drift.models.encoders import FrozenClassifier, load_classifier, load_encoder
from drift.models.stacked import Stacked
from drift.models.textcnn import TextCNN
from drift.models.vampire import Vampire, pretrained
from drift.runs.config import TextModelSettings
from drift.tasks.text.model import TextModel, linear_head
from drift.training.seeding import seeded

if TYPE_CHECKING:
    import datasets

SMALLEST_SCALE = 1e-6
RANDOM_WIDTH, RANDOM_RANGE = 300, 0.25  # of word vectors where none are given; Kim (2014)
VAMPIRE_WIDTH = 50  # of those that VAMPIRE averages


@dataclass(frozen=True)
class TextStudent:
    """A student, how texts become its examples, and how a trained one becomes a classifier.

    finished: from the trained student, and the place of a seed in it if several are stacked.
    """

    module: nn.Module
    examples: Callable[["datasets.Dataset"], Examples]
    finished: Callable[[nn.Module, int], TextModel]
    notes: list[str]


def text_student(
    kind: str,
    settings: TextModelSettings,
    texts: "datasets.Dataset",
    classes: list[str],
    *,
    seeds: Sequence[int],
    progress: Progress | None = None,
) -> TextStudent:
    """kind: frozen, finetuned, textcnn or vampire. texts: to train on. seeds: one a student."""
    make = {"frozen": _frozen, "finetuned": _finetuned, "textcnn": _textcnn, "vampire": _vampire}[kind]
    return make(settings, texts, classes, seeds, progress)


def _frozen(
    settings: TextModelSettings, texts: Any, classes: list[str], seeds: Sequence[int], progress: Progress | None
) -> TextStudent:
    def vectors(texts: Any) -> np.ndarray:
        return embed(
            texts["text"], settings.name, max_length=settings.max_length, pool=settings.pool, progress=progress
        )

    encoder, tokenizer = load_encoder(settings.name)
    x = vectors(texts)
    mean, scale = scaling(x)

    def examples(texts: Any) -> Vectors:
        return Vectors(torch.from_numpy((vectors(texts) - mean) / scale))

    def finished(student: nn.Module, place: int) -> TextModel:
        trained = student.trial(place) if isinstance(student, Stacked) else student
        module = FrozenClassifier(
            encoder, torch.from_numpy(mean), torch.from_numpy(scale), trained.cpu(), pool=settings.pool
        )
        return TextModel(module, tokenizer, classes, "frozen", settings.max_length)

    notes = _truncation(tokenize(texts, tokenizer, max_length=settings.max_length, progress=progress), settings)
    heads = [linear_head(x.shape[1], len(classes), settings.dropout or 0.0) for _ in seeds]
    return TextStudent(Stacked(heads), examples, finished, notes)


def scaling(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each feature, `(D,)`."""
    mean = vectors.mean(0, dtype=np.float64).astype(np.float32)
    scale = vectors.std(0, dtype=np.float64).astype(np.float32)
    scale[scale < SMALLEST_SCALE] = 1  # a feature that never varies says nothing, and must not blow up on a new text
    return mean, scale


def _finetuned(
    settings: TextModelSettings, texts: Any, classes: list[str], seeds: Sequence[int], progress: Progress | None
) -> TextStudent:
    (seed,) = seeds
    module, tokenizer = load_classifier(settings.name, classes, seed=seed, dropout=settings.dropout)
    check_length(settings.max_length, settings.name, module, tokenizer)
    return _tokens(module, tokenizer, classes, "finetuned", settings, progress, [])


def _textcnn(
    settings: TextModelSettings, texts: Any, classes: list[str], seeds: Sequence[int], progress: Progress | None
) -> TextStudent:
    (seed,) = seeds
    tokenizer = WordTokenizer.from_texts(texts["text"], min_count=settings.min_count)
    matrix, notes = _word_matrix(settings, tokenizer, RANDOM_WIDTH, seed)
    with seeded(seed):
        module = TextCNN(
            matrix,
            len(classes),
            settings.windows,
            settings.maps,
            0.5 if settings.dropout is None else settings.dropout,
            settings.train_vectors,
        )
    return _tokens(module, tokenizer, classes, "textcnn", settings, progress, notes)


def _vampire(
    settings: TextModelSettings, texts: Any, classes: list[str], seeds: Sequence[int], progress: Progress | None
) -> TextStudent:
    (seed,) = seeds
    tokenizer = WordTokenizer.from_texts(texts["text"], min_count=settings.min_count)
    matrix, notes = _word_matrix(settings, tokenizer, VAMPIRE_WIDTH, seed)
    tokens = tokenize(texts, tokenizer, max_length=settings.max_length, progress=progress)
    encoder, mean, scale = pretrained(texts["text"], tokens, tokenizer, progress=progress)
    with seeded(seed):
        module = Vampire(encoder, mean, scale, matrix, len(classes), settings.dropout or 0.0)
    return _tokens(module, tokenizer, classes, "vampire", settings, progress, notes)


def _word_matrix(
    settings: TextModelSettings, tokenizer: WordTokenizer, width: int, seed: int
) -> tuple[torch.Tensor, list[str]]:
    """A vector for each word, `(V, D)`, from a file or random ones of this width; and what to say of them."""
    if settings.vectors is None:
        generator = np.random.default_rng(seed)
        matrix = generator.uniform(-RANDOM_RANGE, RANDOM_RANGE, (len(tokenizer), width)).astype(np.float32)
        note = f"{settings.name} starts from random word vectors; give model.vectors for better ones"
    else:
        found = vectors_for(tokenizer.words, read_vectors(settings.vectors, set(tokenizer.words)), seed=seed)
        matrix = found.matrix
        note = f"{100 * found.known.mean():.1f} % of {len(tokenizer):,} words have a vector"
    return torch.from_numpy(matrix), [note]


def _tokens(
    module: nn.Module,
    tokenizer: Any,
    classes: list[str],
    kind: str,
    settings: TextModelSettings,
    progress: Progress | None,
    notes: list[str],
) -> TextStudent:
    def examples(texts: Any) -> Examples:
        found = tokenize(texts, tokenizer, max_length=settings.max_length, progress=progress)
        notes.extend(_truncation(found, settings))
        return found

    def finished(student: nn.Module, place: int) -> TextModel:
        return TextModel(student, tokenizer, classes, kind, settings.max_length)

    return TextStudent(module, examples, finished, notes)


def _truncation(found: TokenizedTexts, settings: TextModelSettings) -> list[str]:
    """A note where texts are longer than what is read of them."""
    if not found.truncated:
        return []
    return [
        f"{found.truncated:,} of {len(found):,} texts were cut to {settings.max_length} tokens;"
        " model.max_length says how many are read"
    ]
