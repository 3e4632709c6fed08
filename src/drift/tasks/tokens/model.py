"""A trained tagger: sentences of words in, probabilities of tags out; transformers opens its folder."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from drift.data.batches import batches_by_length
from drift.data.examples import moved
from drift.data.windows import make_windows
from drift.errors import DataError
from drift.models.devices import best_device, device_of
from drift.models.encoders import load_tagger
from drift.models.hidden import last_layer
from drift.models.saved import Description, read_description, save_pretrained, write_description
from drift.tasks.tokens.decoding import decoded
from drift.tasks.tokens.voting import Votes, voted
from drift.weak.token_rules import TokenRuleSet

FORMAT = "drift-tokens/1"
RULES = "rules"  # the folder of the rules that vote
BATCH_TOKENS = 4096


class Tagger(nn.Module):
    """Logits of words, one row per word `(words, C)`, from a token classifier of transformers."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, words: Tensor, **inputs: Tensor) -> Tensor:
        """words: positions of the words' first sub-words among the N·L sub-words. inputs: of the token classifier."""
        logits: Tensor = self.module(**inputs).logits
        return logits.flatten(0, 1)[words]


class TokenDescription(Description):
    """What `drift.json` holds of a `TokenModel`."""

    kind: Literal["frozen", "finetuned"]
    entities: bool
    max_length: int = Field(ge=1, le=100_000)
    calibrated_weights: bool = False
    votes: float | None = Field(None, ge=0)
    restart: float = Field(0.0, le=0)


@dataclass(frozen=True)
class TokenModel:
    """A tagger, on the accelerator if there is one.

    module: a token classifier of transformers. kind: frozen or finetuned. entities: whether tags are B- and I-.
    temperature: the weights of the last layer were divided by it, which calibrates the probabilities.
    votes: rules that vote in the tagger, beside the module. restart: see `drift.tasks.tokens.decoding`.
    """

    module: nn.Module
    tokenizer: Any
    classes: list[str]
    kind: str
    entities: bool
    max_length: int = 128
    temperature: float = 1.0
    votes: Votes | None = None
    restart: float = 0.0

    def __post_init__(self) -> None:
        self.module.to(best_device())

    def calibrated(self, temperature: float) -> "TokenModel":
        # In the weights, so that transformers.pipeline has the same probabilities.
        module = copy.deepcopy(self.module)
        with torch.no_grad():
            for parameter in last_layer(module).parameters():
                parameter.div_(temperature)
        votes = self.votes and replace(self.votes, weight=self.votes.weight / temperature)
        return replace(self, module=module, temperature=temperature, votes=votes)

    @torch.inference_mode()
    def predict_proba(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """Probability of each tag, one array `(words, C)` per sentence, in the order of `classes`."""
        for number, words in enumerate(sentences, 1):
            if isinstance(words, str):
                raise DataError(f"sentence {number}: {words[:30]!r} is one string; give a list of words")
        windows = make_windows(sentences, self.tokenizer, max_length=self.max_length)
        tagger, device = Tagger(self.module.eval()), device_of(self.module)
        probabilities = np.empty((int(windows.counts.sum()), len(self.classes)), dtype=np.float32)
        for batch in batches_by_length(windows.lengths.tolist(), BATCH_TOKENS):
            rows = torch.tensor(batch)
            logits = tagger(**moved(windows.inputs(rows), device))
            probabilities[windows.words(rows)] = torch.softmax(logits.float(), -1).cpu().numpy()
        if self.votes is not None:
            codes = voted(self.votes.rules, sentences, self.classes, entities=self.entities)
            probabilities = self.votes.added(probabilities, codes)
        return np.split(probabilities, np.cumsum([len(words) for words in sentences])[:-1]) if len(sentences) else []

    def predict(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """The tags of the words of each sentence."""
        return [self.tags(probabilities) for probabilities in self.predict_proba(sentences)]

    def tags(self, probabilities: np.ndarray) -> list[str]:
        """The most likely tags of the words of a sentence; with entities, of those where I- follows its B-."""
        sizes = np.array([len(probabilities)])
        codes = decoded(probabilities, sizes, self.classes, self.restart, entities=self.entities)
        return [self.classes[code] for code in codes]

    def export_onnx(self, file: Path) -> None:
        """Write the module as one ONNX file, from the ids of sub-words to probabilities of tags, without the votes."""
        from drift.models.onnx_export import export_classifier

        export_classifier(self.module, self.tokenizer, file)  # the temperature is in the weights

    def save(self, folder: Path) -> None:
        """Write the model; `transformers.pipeline("token-classification", folder)` opens it, with our probabilities."""
        folder.mkdir(parents=True, exist_ok=True)
        save_pretrained(self.module, self.tokenizer, folder)
        if self.votes is not None:
            self.votes.rules.save(folder / RULES)
        description = {
            "format": FORMAT,
            "kind": self.kind,
            "classes": self.classes,
            "entities": self.entities,
            "max_length": self.max_length,
            "temperature": self.temperature,
            "calibrated_weights": True,  # 0.1 divided logits when predicting
            "restart": self.restart,
            "votes": None if self.votes is None else self.votes.weight,
        }
        write_description(folder, description)

    @classmethod
    def load(cls, folder: Path) -> "TokenModel":
        """Open what `save` wrote."""

        def opened(description: dict[str, Any]) -> TokenModel:
            module, tokenizer = load_tagger(str(folder.absolute()), description["classes"], seed=0)
            names = "classes", "kind", "entities", "max_length"
            model = cls(module.eval(), tokenizer, *(description[name] for name in names))
            temperature = description["temperature"]
            model = replace(model, restart=description.get("restart", 0.0))
            if (weight := description.get("votes")) is not None:
                model = replace(model, votes=Votes(TokenRuleSet.from_folder(folder / RULES), weight))
            if description.get("calibrated_weights"):
                return replace(model, temperature=temperature)
            return model.calibrated(temperature)

        return read_description(folder, FORMAT, TokenDescription, opened)


def folded(head: nn.Linear, mean: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Weight and bias of the same layer for vectors that are not standardised: W (x - mean) / scale + b."""
    weight = (head.weight / scale).detach()
    return weight, (head.bias - weight @ mean).detach()
