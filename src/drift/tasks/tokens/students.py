"""The kinds of taggers, and the student of a run for each."""

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
from drift.models.encoders import encoder_part, load_tagger
from drift.models.probing import fit_last_layer
from drift.models.stacked import Stacked
from drift.models.word_embedding import embed_words
from drift.tasks.base import Kind
from drift.tasks.encoder_split import split_encoder
from drift.tasks.heads import linear_head, scaling
from drift.tasks.tokens.model import Tagger, TokenModel, folded
from drift.tasks.tokens.settings import TokenModelSettings
from drift.tasks.tokens.words import UnlabeledWords, tagged

FROZEN_PART = 1 / 2  # of a fixed encoder's layers, from the first: the upper ones represent whole texts
KEPT, TRAINED = 2 / 3, 3 / 4  # of an encoder's layers that are kept, and of those, without an accelerator, trained
NOT_ENCODERS = ("textcnn", "vampire")  # models of texts; any other name is taken for an encoder


@dataclass(frozen=True)
class TokenStudent:
    """The student of a run on words. Codes are the tags of all words, -1 for none.

    examples: turns sentences into what the student is called with.
    labeled: examples and codes to labelled rows.
    unlabeled: examples, a mask of the words to use, and gold codes to unlabelled rows.
    finish: makes the tagger to keep from the trained student and the position of the kept seed in it.
    begin: called with the labelled rows before training.
    exact: the student's predictions are those of the kept model, as for texts.
    """

    module: nn.Module
    examples: Callable[[Sentences], Any]
    labeled: Callable[[Any, np.ndarray], Labeled]
    unlabeled: Callable[[Any, np.ndarray, np.ndarray], Unlabeled]
    finish: Callable[[nn.Module, int | None], TokenModel]
    begin: Callable[[Labeled], None] = lambda part: None
    notes: Sequence[str] = ()
    exact: bool = True


@dataclass(frozen=True)
class Parts:
    """What a student of either kind is built from. classes: all tags. entities: whether they are B- and I-."""

    settings: TokenModelSettings
    classes: list[str]
    entities: bool
    seeds: Sequence[int]
    progress: Progress | None

    def load(self, layers: int | None) -> tuple[Any, Any]:
        """A token classifier of transformers, and its tokenizer."""
        settings = self.settings
        tagger, tokenizer = load_tagger(
            settings.name, self.classes, seed=self.seeds[0], dropout=settings.dropout, layers=layers
        )
        check_length(settings.max_length, settings.name, tagger, tokenizer)
        return tagger, tokenizer

    def model(self, module: nn.Module, tokenizer: Any, kind: Kind) -> TokenModel:
        return TokenModel(module, tokenizer, self.classes, kind.name, self.entities, self.settings.max_length)


def _finetuned(parts: Parts, sentences: Sentences) -> TokenStudent:
    """Rows are windows of sub-words."""
    settings = parts.settings
    kept = encoder_part(settings.name, KEPT) if settings.layers == "auto" else settings.layers
    tagger, tokenizer = parts.load(kept)
    split = split_encoder(tagger, settings, share=TRAINED)
    student = Tagger(tagger if split is None else split.upper)

    def examples(sentences: Sentences) -> Any:
        windows = make_windows(sentences.tokens, tokenizer, max_length=settings.max_length, progress=parts.progress)
        lines = ("\0".join(words) for words in sentences.tokens)
        return windows if split is None else split.stored(windows, lines, progress=parts.progress)

    def unlabeled(windows: Windows, used: np.ndarray, gold: np.ndarray) -> Unlabeled:
        rows = np.flatnonzero(np.add.reduceat(used, windows.first_words[:-1]))
        return UnlabeledWords(windows, torch.from_numpy(rows), torch.from_numpy(gold))

    def finish(student: nn.Module, _: int | None) -> TokenModel:
        assert isinstance(student, Tagger)
        module = student.module if split is None else split.joined(student.module)
        return parts.model(module, tokenizer, FINETUNED)

    def begin(part: Labeled) -> None:
        if settings.probe:
            fit_last_layer(student, part, seed=parts.seeds[0])

    notes = [] if split is None else [split.note]
    return TokenStudent(student, examples, tagged, unlabeled, finish, begin, notes, exact=False)


def _frozen(parts: Parts, sentences: Sentences) -> TokenStudent:
    """Rows are words: their context is in their vectors. sentences: to train on, for scaling."""
    settings = parts.settings
    layers = settings.layers if isinstance(settings.layers, int) else encoder_part(settings.name, FROZEN_PART)
    tagger, tokenizer = parts.load(layers)
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
            progress=parts.progress,
        )

    mean, scale = scaling(vectors(sentences))

    def examples(sentences: Sentences) -> Vectors:
        return Vectors(torch.from_numpy((vectors(sentences) - mean) / scale))

    def stack(values: np.ndarray) -> Tensor:
        return torch.from_numpy(values).expand(len(parts.seeds), -1)

    def labeled(examples: Vectors, codes: np.ndarray) -> Labeled:
        rows = np.flatnonzero(codes >= 0)
        return Labeled(examples, stack(rows), stack(codes[rows]))

    def unlabeled(examples: Vectors, used: np.ndarray, gold: np.ndarray) -> Unlabeled:
        rows = np.flatnonzero(used)
        return Unlabeled(examples, stack(rows), stack(gold[rows]))

    def finish(student: nn.Module, position: int | None) -> TokenModel:
        assert isinstance(student, Stacked)
        trained = (student.average() if position is None else student.trial(position)).get_submodule("0")
        assert isinstance(trained, nn.Linear)
        weight, bias = folded(trained, torch.from_numpy(mean), torch.from_numpy(scale))
        with torch.no_grad():
            head.weight.copy_(weight)
            head.bias.copy_(bias)
        return parts.model(tagger, tokenizer, FROZEN)

    heads = Stacked([linear_head(len(mean), head.out_features, settings.dropout or 0.0) for _ in parts.seeds])
    return TokenStudent(heads, examples, labeled, unlabeled, finish)


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
KINDS = {kind.name: kind for kind in (FROZEN, FINETUNED)}
