"""The kinds of text models, and the student of a run for each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from drift.data.examples import Examples, Vectors
from drift.data.tokenized import Progress, tokenize
from drift.data.word_tokens import WordTokenizer
from drift.data.word_vectors import read_vectors, vectors_for
from drift.models.embedding import Embedder, check_length, longest
from drift.models.encoders import FrozenClassifier, load_classifier
from drift.models.reference import EncoderReference
from drift.models.stacked import Stacked
from drift.models.textcnn import TextCNN
from drift.models.vampire import Vampire, pretrained
from drift.tasks.base import Kind
from drift.tasks.encoder_split import split_encoder
from drift.tasks.heads import decay_scale, linear_head, scaling
from drift.tasks.text.model import TextModel
from drift.tasks.text.settings import TextModelSettings
from drift.training.seeding import seeded

if TYPE_CHECKING:
    import datasets

RANDOM_WIDTH, RANDOM_RANGE = 300, 0.25  # of random word vectors; Kim (2014)
TRAINED = 1 / 3  # of an encoder's layers, without an accelerator
VAMPIRE_WIDTH = 50  # of the word vectors that VAMPIRE averages


@dataclass(frozen=True)
class TextStudent:
    """The student of a run on texts.

    examples: turns texts into what the student is called with.
    finish: makes the classifier to keep from the trained student and the position of the kept seed in it; None for the
        average of all seeds.
    exact: the student's predictions are those of the kept model; not where it computes in another precision, or from
        stored states.
    """

    module: nn.Module
    examples: Callable[["datasets.Dataset"], Examples]
    finish: Callable[[nn.Module, int | None], TextModel]
    notes: list[str]
    exact: bool = True


def _frozen(
    settings: TextModelSettings, texts: Any, classes: list[str], seeds: Sequence[int], progress: Progress | None
) -> TextStudent:
    embedder = Embedder.of(
        settings.name, max_length=settings.max_length, pool=settings.pool, precision=settings.precision
    )
    encoder, tokenizer = embedder.load()
    settings = settings.model_copy(update={"max_length": embedder.max_length})
    embedded = embedder.embed(texts["text"], progress=progress)
    x = embedded.vectors
    mean, scale = scaling(x)

    def examples(texts: Any) -> Vectors:
        vectors = embedder.embed(texts["text"], progress=progress).vectors
        return Vectors(torch.from_numpy((vectors - mean) / scale))

    def finish(student: nn.Module, position: int | None) -> TextModel:
        assert isinstance(student, Stacked)
        trained = student.average() if position is None else student.trial(position)
        scaled = torch.from_numpy(mean), torch.from_numpy(scale)
        module = FrozenClassifier(encoder, *scaled, trained.cpu(), pool=embedder.pool)
        reference = EncoderReference.of(settings.name, embedder, copied=settings.self_contained)
        heads = student.linear() if position is None else None
        parts = module, tokenizer, classes, FROZEN.name, settings.max_length
        return TextModel(*parts, encoder=reference, embedder=embedder, heads=heads)

    notes = _truncation(embedded.truncated, len(x), settings)
    heads = [linear_head(x.shape[1], len(classes), settings.dropout or 0.0) for _ in seeds]
    return TextStudent(Stacked(heads, decay_scale=decay_scale(len(classes))), examples, finish, notes)


def _finetuned(
    settings: TextModelSettings, texts: Any, classes: list[str], seeds: Sequence[int], progress: Progress | None
) -> TextStudent:
    (seed,) = seeds
    module, tokenizer = load_classifier(settings.name, classes, seed=seed, dropout=settings.dropout)
    settings = settings.model_copy(update={"max_length": min(settings.max_length, longest(module, tokenizer))})
    check_length(settings.max_length, settings.name, module, tokenizer)
    whole = _tokenized(module, tokenizer, classes, FINETUNED, settings, progress, [])
    split = split_encoder(module, settings, share=TRAINED)
    if split is None:
        return replace(whole, exact=False)

    def examples(texts: Any) -> Examples:
        return split.stored(whole.examples(texts), texts["text"], progress=progress)

    def finish(student: nn.Module, _: int | None) -> TextModel:
        return whole.finish(split.joined(student), None)

    whole.notes.append(split.note)  # this list: notes on truncation follow
    return TextStudent(split.upper, examples, finish, whole.notes, exact=False)


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
    return _tokenized(module, tokenizer, classes, TEXTCNN, settings, progress, notes)


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
    return _tokenized(module, tokenizer, classes, VAMPIRE, settings, progress, notes)


def _word_matrix(
    settings: TextModelSettings, tokenizer: WordTokenizer, width: int, seed: int
) -> tuple[torch.Tensor, list[str]]:
    """One vector per word, `(V, D)`, read from a file or drawn at random in this width; and notes about them."""
    if settings.vectors is None:
        generator = np.random.default_rng(seed)
        matrix = generator.uniform(-RANDOM_RANGE, RANDOM_RANGE, (len(tokenizer), width)).astype(np.float32)
        note = f"{settings.name} starts from random word vectors; give model.vectors for better ones"
    else:
        word_vectors = vectors_for(tokenizer.words, read_vectors(settings.vectors, set(tokenizer.words)), seed=seed)
        matrix = word_vectors.matrix
        note = f"{100 * word_vectors.known.mean():.1f} % of {len(tokenizer):,} words have a vector"
    return torch.from_numpy(matrix), [note]


def _tokenized(
    module: nn.Module,
    tokenizer: Any,
    classes: list[str],
    kind: Kind,
    settings: TextModelSettings,
    progress: Progress | None,
    notes: list[str],
) -> TextStudent:
    """A student that is called with token ids."""

    def examples(texts: Any) -> Examples:
        tokens = tokenize(texts, tokenizer, max_length=settings.max_length, progress=progress)
        notes.extend(_truncation(tokens.truncated, len(tokens), settings))
        return tokens

    def finish(student: nn.Module, _: int | None) -> TextModel:
        return TextModel(student, tokenizer, classes, kind.name, settings.max_length)

    return TextStudent(module, examples, finish, notes)


def _truncation(truncated: int, texts: int, settings: TextModelSettings) -> list[str]:
    """A note if texts were truncated."""
    if not truncated:
        return []
    return [
        f"{truncated:,} of {texts:,} texts were truncated to {settings.max_length} tokens;"
        " model.max_length sets the limit"
    ]


FROZEN = Kind(
    "frozen",
    "a head on a fixed encoder",
    _frozen,
    stacked=True,
    averaged=True,
    exports_onnx=True,
    tip="--finetune trains its layers, too",
    large=True,
)
FINETUNED = Kind("finetuned", "a fine-tuned encoder", _finetuned, exports_onnx=True, large=True)
TEXTCNN = Kind(
    "textcnn",
    "a TextCNN",
    _textcnn,
    no_onnx="no model.onnx: TextCNN has its own word list, which ONNX cannot store",
    preset="textcnn",
    large=True,
)
VAMPIRE = Kind(
    "vampire",
    "a linear classifier on word vectors and the states of VAMPIRE",
    _vampire,
    no_onnx="no model.onnx: VAMPIRE has its own word list, which ONNX cannot store",
    large=True,
)
KINDS = {kind.name: kind for kind in (FROZEN, FINETUNED, TEXTCNN, VAMPIRE)}
