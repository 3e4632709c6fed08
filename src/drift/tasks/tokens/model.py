"""A trained tagger: sentences of words in, probabilities of tags out; saved so that transformers opens it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from drift.data.tags import repaired
from drift.data.windows import make_windows
from drift.errors import DataError
from drift.models.embedding import like_batches
from drift.models.encoders import load_tagger
from drift.models.saved import read_description, save_pretrained, write_description

FORMAT = "drift-tokens/1"
BATCH_TOKENS = 4096


class Tagger(nn.Module):
    """Logits of words, a row each `(words, C)`, from a token classifier of transformers, which answers sub-words."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, input_ids: Tensor, attention_mask: Tensor, words: Tensor) -> Tensor:
        """words: where in the N·L sub-words the words' first ones are."""
        logits: Tensor = self.module(input_ids=input_ids, attention_mask=attention_mask).logits
        return logits.flatten(0, 1)[words]


@dataclass(frozen=True)
class TokenModel:
    """module: a token classifier of transformers. entities: whether tags are B- and I-. kind: frozen or finetuned.

    temperature: logits are divided by it, so that probabilities mean what they say.
    """

    module: nn.Module
    tokenizer: Any
    classes: list[str]
    kind: str
    entities: bool
    max_length: int = 128
    temperature: float = 1.0

    def calibrated(self, temperature: float) -> "TokenModel":
        return replace(self, temperature=temperature)

    @torch.inference_mode()
    def predict_proba(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """Probability of each tag, `(words, C)` a sentence, in the order of `classes`."""
        for number, words in enumerate(sentences, 1):
            if isinstance(words, str):
                raise DataError(f"sentence {number}: {words[:30]!r} is one string; give a list of words")
        windows = make_windows(sentences, self.tokenizer, max_length=self.max_length)
        tagger = Tagger(self.module.eval())
        found = np.empty((int(windows.counts.sum()), len(self.classes)), dtype=np.float32)
        for batch in like_batches(windows.lengths.tolist(), BATCH_TOKENS):
            rows = torch.tensor(batch)
            logits = tagger(**windows.inputs(rows))
            found[windows.words(rows)] = torch.softmax(logits.float() / self.temperature, -1).numpy()
        return np.split(found, np.cumsum([len(words) for words in sentences])[:-1]) if len(sentences) else []

    def tags(self, probabilities: np.ndarray) -> list[str]:
        """The most likely tag of each word of a sentence; an I- that continues nothing begins an entity."""
        found = [self.classes[code] for code in probabilities.argmax(-1)]
        return [str(tag) for tag in repaired(found)] if self.entities else found

    def save(self, folder: Path) -> None:
        """Write all of it; `transformers.pipeline("token-classification", folder)` opens it."""
        folder.mkdir(parents=True, exist_ok=True)
        save_pretrained(self.module, self.tokenizer, folder)
        about = {
            "format": FORMAT,
            "kind": self.kind,
            "classes": self.classes,
            "entities": self.entities,
            "max_length": self.max_length,
            "temperature": self.temperature,
        }
        write_description(folder, about)

    @classmethod
    def load(cls, folder: Path) -> "TokenModel":
        """Open what `save` wrote."""

        def opened(about: dict[str, Any]) -> TokenModel:
            module, tokenizer = load_tagger(str(folder.absolute()), about["classes"], seed=0)
            names = "classes", "kind", "entities", "max_length", "temperature"
            return cls(module.eval(), tokenizer, *(about[name] for name in names))

        return read_description(folder, FORMAT, opened)


def folded(head: nn.Linear, mean: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Weight and bias of the same layer for vectors that were not standardised: W (x - mean) / scale + b."""
    weight = (head.weight / scale).detach()
    return weight, (head.bias - weight @ mean).detach()
