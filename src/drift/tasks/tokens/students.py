"""The student of a token run for each kind of model, and the trained tagger that comes of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from drift.data.examples import Labeled, Unlabeled, Vectors
from drift.data.sentences import Sentences
from drift.data.tokenized import Progress
from drift.data.windows import Windows, make_windows
from drift.errors import ConfigError
from drift.models.embedding import check_length
from drift.models.encoders import load_tagger, lower_half
from drift.models.stacked import Stacked
from drift.models.word_embedding import embed_words
from drift.runs.config import TokenModelSettings
from drift.tasks.text.model import linear_head
from drift.tasks.text.students import scaling
from drift.tasks.tokens.model import Tagger, TokenModel, folded
from drift.tasks.tokens.words import UnlabeledWords, tagged


@dataclass(frozen=True)
class TokenStudent:
    """A student, and how words of sentences become what it learns from; codes are tags of all words, -1 for none.

    finished: from the trained student, and the place of a seed in it if several are stacked.
    """

    module: nn.Module
    examples: Callable[[Sentences], Any]
    labeled: Callable[[Any, np.ndarray], Labeled]
    unlabeled: Callable[[Any, np.ndarray, np.ndarray], Unlabeled]  # examples, whether a word is to be used, gold
    finished: Callable[[nn.Module, int], TokenModel]


def token_student(
    kind: str,
    settings: TokenModelSettings,
    sentences: Sentences,
    classes: list[str],
    *,
    entities: bool,
    seeds: Sequence[int],
    progress: Progress | None = None,
) -> TokenStudent:
    """kind: frozen or finetuned. sentences: to train on, for scaling. seeds: one a student."""
    layers: int | None = settings.layers
    if layers is None and kind == "frozen":
        layers = lower_half(settings.name)
    tagger, tokenizer = load_tagger(settings.name, classes, seed=seeds[0], dropout=settings.dropout, layers=layers)
    check_length(settings.max_length, settings.name, tagger, tokenizer)

    def model(module: nn.Module) -> TokenModel:
        return TokenModel(module, tokenizer, classes, kind, entities, settings.max_length)

    if kind == "frozen":
        return _frozen(settings, sentences, tagger, layers, tokenizer, model, len(seeds), progress)

    def examples(sentences: Sentences) -> Windows:
        return make_windows(sentences.tokens, tokenizer, max_length=settings.max_length, progress=progress)

    def unlabeled(windows: Windows, used: np.ndarray, gold: np.ndarray) -> Unlabeled:
        rows = np.flatnonzero(np.add.reduceat(used, windows.first_words[:-1]))
        return UnlabeledWords(windows, torch.from_numpy(rows), torch.from_numpy(gold))

    def finished(student: nn.Module, _: int) -> TokenModel:
        assert isinstance(student, Tagger)
        return model(student.module)

    return TokenStudent(Tagger(tagger), examples, tagged, unlabeled, finished)


def _frozen(
    settings: TokenModelSettings,
    sentences: Sentences,
    tagger: nn.Module,
    layers: int | None,
    tokenizer: Any,
    model: Callable[[nn.Module], TokenModel],
    seeds: int,
    progress: Progress | None,
) -> TokenStudent:
    """Words are examples of their own: what is around them is in their vectors."""
    if not isinstance(head := getattr(tagger, "classifier", None), nn.Linear):
        raise ConfigError(f"{settings.name} has no linear layer on its words' vectors; train all of it with --finetune")

    def vectors(sentences: Sentences) -> np.ndarray:
        return embed_words(
            sentences.tokens,
            tagger,
            tokenizer,
            settings.name,
            max_length=settings.max_length,
            layers=layers,
            progress=progress,
        )

    mean, scale = scaling(vectors(sentences))

    def examples(sentences: Sentences) -> Vectors:
        return Vectors(torch.from_numpy((vectors(sentences) - mean) / scale))

    def stack(values: np.ndarray) -> Tensor:
        return torch.from_numpy(values).expand(seeds, -1)

    def labeled(examples: Vectors, codes: np.ndarray) -> Labeled:
        rows = np.flatnonzero(codes >= 0)
        return Labeled(examples, stack(rows), stack(codes[rows]))

    def unlabeled(examples: Vectors, used: np.ndarray, gold: np.ndarray) -> Unlabeled:
        rows = np.flatnonzero(used)
        return Unlabeled(examples, stack(rows), stack(gold[rows]))

    def finished(student: nn.Module, place: int) -> TokenModel:
        assert isinstance(student, Stacked)
        trained = student.trial(place).get_submodule("0")
        assert isinstance(trained, nn.Linear)
        weight, bias = folded(trained, torch.from_numpy(mean), torch.from_numpy(scale))
        with torch.no_grad():
            head.weight.copy_(weight)
            head.bias.copy_(bias)
        return model(tagger)

    heads = Stacked([linear_head(len(mean), head.out_features, settings.dropout or 0.0) for _ in range(seeds)])
    return TokenStudent(heads, examples, labeled, unlabeled, finished)
