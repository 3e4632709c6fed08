"""A trained text classifier: texts in, probabilities of named classes out; saved so that others can open it."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from drift.data.texts import checked
from drift.data.word_tokens import WordTokenizer
from drift.errors import DataError, FileError
from drift.models.dropout import Dropout
from drift.models.encoders import FrozenClassifier, load_classifier, load_encoder
from drift.models.saved import read_description, save_pretrained, write_description
from drift.models.textcnn import TextCNN
from drift.models.vampire import Vampire

WEIGHTS, WORDS, ENCODER = "head.safetensors", "words.json", "encoder"
FORMAT = "drift-text/1"
BATCH_TOKENS = 4096


@dataclass(frozen=True)
class TextModel:
    """module: token ids and attention mask to logits, or an object with `.logits`. kind: frozen, finetuned, textcnn
    or vampire.

    temperature: logits are divided by it, so that probabilities mean what they say.
    """

    module: nn.Module
    tokenizer: Any
    classes: list[str]
    kind: str
    max_length: int = 128
    temperature: float = 1.0

    def calibrated(self, temperature: float) -> "TextModel":
        return replace(self, temperature=temperature)

    @torch.inference_mode()
    def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
        """Probability of each class, `(n, C)` in the order of `classes`; rows of like length go together."""
        _check_texts(texts)
        self.module.eval()
        if not len(texts):
            return np.empty((0, len(self.classes)), dtype=np.float32)
        found = self.tokenizer(list(texts), truncation=True, max_length=self.max_length)["input_ids"]
        tokens = [row or [self.tokenizer.pad_token_id] for row in found]  # an empty text may have no token
        order = sorted(range(len(tokens)), key=lambda row: -len(tokens[row]))
        probabilities = np.empty((len(tokens), len(self.classes)), dtype=np.float32)
        start = 0
        while start < len(order):
            rows = order[start : start + max(1, BATCH_TOKENS // len(tokens[order[start]]))]
            probabilities[rows] = self._forward([tokens[row] for row in rows])
            start += len(rows)
        return probabilities

    def _forward(self, tokens: list[list[int]]) -> np.ndarray:
        ids = torch.full((len(tokens), len(tokens[0])), int(self.tokenizer.pad_token_id))  # the longest is the first
        mask = torch.zeros_like(ids)
        for place, row in enumerate(tokens):
            ids[place, : len(row)] = torch.tensor(row, dtype=torch.long)
            mask[place, : len(row)] = 1
        device = next(self.module.parameters()).device
        output = self.module(input_ids=ids.to(device), attention_mask=mask.to(device))
        logits = getattr(output, "logits", output)
        return torch.softmax(logits.float() / self.temperature, -1).cpu().numpy()

    def save(self, folder: Path) -> None:
        """Write all of it: safetensors and JSON. A fine-tuned transformer is in Hugging Face form."""
        folder.mkdir(parents=True, exist_ok=True)
        about: dict[str, Any] = {
            "format": FORMAT,
            "kind": self.kind,
            "classes": self.classes,
            "max_length": self.max_length,
            "temperature": self.temperature,
        }
        if isinstance(self.module, FrozenClassifier):
            save_pretrained(self.module.encoder, self.tokenizer, folder / ENCODER)
            state = {name: v for name, v in self.module.state_dict().items() if not name.startswith("encoder.")}
            save_file({name: value.contiguous() for name, value in state.items()}, folder / WEIGHTS)
            about["pool"] = self.module.pool
        elif isinstance(self.module, (TextCNN, Vampire)):
            (folder / WORDS).write_text(self.tokenizer.to_json(), encoding="utf-8")
            save_file({name: value.contiguous() for name, value in self.module.state_dict().items()}, folder / WEIGHTS)
            if isinstance(self.module, TextCNN):
                about["windows"] = self.module.windows
        else:
            save_pretrained(self.module, self.tokenizer, folder)
        write_description(folder, about)

    @classmethod
    def load(cls, folder: Path) -> "TextModel":
        """Open what `save` wrote."""

        def opened(about: dict[str, Any]) -> TextModel:
            module, tokenizer = _open(folder, about)
            names = "classes", "kind", "max_length", "temperature"
            return cls(module.eval(), tokenizer, *(about[name] for name in names))

        return read_description(folder, FORMAT, opened)


def _check_texts(texts: Any) -> None:
    if isinstance(texts, (str, bytes)):
        raise DataError("one string was given, of which each character would be a text; give a list of texts")
    if hasattr(texts, "columns"):
        raise DataError("a table was given; give a list of texts, or use drift.predict(run, table)")
    for _ in checked(texts):
        pass


def linear_head(features: int, classes: int, dropout: float = 0.0) -> nn.Sequential:
    """What is trained on fixed vectors, from zero; in a sequence, so that many seeds stack into one product."""
    layer = nn.Linear(features, classes)
    nn.init.zeros_(layer.weight)  # a random start adds noise that few labels do not train away
    nn.init.zeros_(layer.bias)
    layers: dict[str, nn.Module] = {"dropout": Dropout(dropout)} if dropout else {}
    return nn.Sequential(OrderedDict(layers | {"0": layer}))  # weights have one name, with dropout and without


def _open(folder: Path, about: dict[str, Any]) -> tuple[nn.Module, Any]:
    classes = about["classes"]
    if about["kind"] == "finetuned":
        return load_classifier(str(folder.absolute()), classes, seed=0)
    state = load_file(folder / WEIGHTS)
    if about["kind"] in ("textcnn", "vampire"):
        try:
            tokenizer = WordTokenizer.from_json((folder / WORDS).read_text(encoding="utf-8"))
        except FileError as error:
            raise FileError(f"{folder / WORDS}: {error}; copy it again") from error
        if about["kind"] == "vampire":
            return Vampire.from_state(state, len(classes)), tokenizer
        cnn = TextCNN(state["vectors"], len(classes), about["windows"], len(state["filters.0.bias"]))
        cnn.load_state_dict(state)
        return cnn, tokenizer
    encoder, tokenizer = load_encoder(str((folder / ENCODER).absolute()))
    head = linear_head(len(state["mean"]), len(classes))
    module = FrozenClassifier(encoder, state["mean"], state["scale"], head, pool=about["pool"])
    missing = module.load_state_dict(state, strict=False).missing_keys
    if lost := [name for name in missing if not name.startswith("encoder.")]:
        raise FileError(f"{folder} lacks {', '.join(lost)}; it is not whole")
    return module, tokenizer
