"""A trained text classifier: texts in, probabilities of named classes out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from drift.data.batches import batches_by_length, pad_rows
from drift.data.texts import checked
from drift.data.word_tokens import WordTokenizer
from drift.errors import DataError, FileError
from drift.models.devices import best_device, device_of
from drift.models.embedding import Embedder
from drift.models.encoders import FrozenClassifier, load_classifier, load_encoder, text_vectors
from drift.models.late_encoder import read_encoder
from drift.models.reference import EncoderReference
from drift.models.saved import Description, read_description, save_pretrained, write_description
from drift.models.textcnn import TextCNN
from drift.models.vampire import Vampire
from drift.tasks.heads import linear_head

WEIGHTS, WORDS, ENCODER, HEADS = "head.safetensors", "words.json", "encoder", "heads.safetensors"
FORMAT = "drift-text/1"
BATCH_TOKENS = 4096


class EncoderFields(BaseModel):
    """The fields of an `EncoderReference`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    revision: str | None
    checksum: str | None
    identity: str
    precision: Literal["float32", "bfloat16"]
    copied: bool


class TextDescription(Description):
    """What `drift.json` holds of a `TextModel`. pool, encoder: of a fixed encoder. windows: of TextCNN."""

    kind: Literal["frozen", "finetuned", "textcnn", "vampire"]
    max_length: int = Field(ge=1, le=100_000)
    pool: Literal["mean", "cls", "layers"] = "mean"
    windows: list[Annotated[int, Field(ge=1, le=100)]] = Field([], max_length=20)
    encoder: EncoderFields | None = None


@dataclass(frozen=True)
class TextModel:
    """A text classifier, on the accelerator if there is one.

    module: token ids and attention mask to logits, or to an object with `.logits`.
    kind: frozen, finetuned, textcnn or vampire.
    temperature: logits are divided by it, which calibrates the probabilities.
    encoder: the fixed encoder of a frozen model; None in folders of version 0.1, which hold a copy.
    embedder: computes vectors with it, and finds those in the cache.
    heads: `weight` (heads, C, D) and `bias` (heads, C) of all heads, of which `module` has the average.
    """

    module: nn.Module
    tokenizer: Any
    classes: list[str]
    kind: str
    max_length: int = 128
    temperature: float = 1.0
    encoder: EncoderReference | None = None
    embedder: Embedder | None = None
    heads: dict[str, Tensor] | None = None

    def __post_init__(self) -> None:
        self.module.to(best_device())

    def calibrated(self, temperature: float) -> "TextModel":
        return replace(self, temperature=temperature)

    @property
    def by_reference(self) -> bool:
        """Whether the folder of the model holds no copy of its encoder."""
        return self.encoder is not None and not self.encoder.copied

    @torch.inference_mode()
    def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
        """Probability of each class, `(n, C)` in the order of `classes`. Texts of similar length share a batch."""
        _check_texts(texts)
        self.module.eval()
        probabilities = np.empty((len(texts), len(self.classes)), dtype=np.float32)
        if not len(texts):
            return probabilities
        if self.embedder is not None and isinstance(self.module, FrozenClassifier):
            return self.of_vectors(self.embedder.rows(texts))
        for rows, ids, mask in self._batches(texts):
            output = self.module(input_ids=ids, attention_mask=mask)
            probabilities[rows] = self._softmax(getattr(output, "logits", output))
        return probabilities

    @torch.inference_mode()
    def of_vectors(self, vectors: np.ndarray) -> np.ndarray:
        """Probabilities `(n, C)` from the fixed encoder's vectors of texts, `(n, D)`."""
        assert isinstance(self.module, FrozenClassifier)
        return self._softmax(self.module.classify(torch.from_numpy(vectors).to(device_of(self.module))))

    def without_cache(self) -> "TextModel":
        """The same classifier, which neither reads nor writes the cache of vectors."""
        return self if self.embedder is None else replace(self, embedder=self.embedder.without_store())

    @torch.inference_mode()
    def head_probabilities(self, texts: Sequence[str]) -> np.ndarray | None:
        """Probabilities by every head, `(heads, n, C)`; None if the model has no fixed encoder or only one head."""
        if self.heads is None or (vectors := self.vectors(texts)) is None:
            return None
        assert isinstance(self.module, FrozenClassifier)
        x = (torch.from_numpy(vectors).to(device_of(self.module)) - self.module.mean) / self.module.scale
        weight, bias = (self.heads[name].to(x) for name in ("weight", "bias"))
        return self._softmax(torch.einsum("nd,hcd->hnc", x, weight) + bias[:, None])

    def vectors(self, texts: Sequence[str]) -> np.ndarray | None:
        """The fixed encoder's vectors of texts, `(n, D)`; None if the model has no fixed encoder."""
        return None if self.embedder is None else self.embedder.rows(texts)

    @torch.inference_mode()
    def features(self, texts: Sequence[str]) -> np.ndarray | None:
        """Vectors of texts, `(n, D)`: of the fixed encoder, or means of the last states of a fine-tuned one.

        None for models of words.
        """
        body = getattr(self.module, "base_model", None)
        if self.embedder is not None or body is None:
            return self.vectors(texts)
        found = np.zeros((len(texts), body.config.hidden_size), dtype=np.float32)
        for rows, ids, mask in self._batches(texts):
            found[rows] = text_vectors(body, ids, mask, "mean").float().cpu().numpy()
        return found

    def predict(self, texts: Sequence[str]) -> list[str]:
        """The most likely class of each text."""
        return [self.classes[code] for code in self.predict_proba(texts).argmax(-1)]

    def _batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], Tensor, Tensor]]:
        """Texts of similar length: their rows, token ids and mask."""
        encoded = self.tokenizer(list(texts), truncation=True, max_length=self.max_length)["input_ids"]
        tokens = [row or [self.tokenizer.pad_token_id] for row in encoded]  # an empty text may have no token
        device = device_of(self.module)
        for rows in batches_by_length([len(row) for row in tokens], BATCH_TOKENS):
            ids, mask = pad_rows([tokens[row] for row in rows], int(self.tokenizer.pad_token_id))
            yield rows, ids.to(device), mask.to(device)

    def _softmax(self, logits: Tensor) -> np.ndarray:
        return torch.softmax(logits.float() / self.temperature, -1).cpu().numpy()

    def export_onnx(self, file: Path) -> None:
        """Write token ids to probabilities as an ONNX graph."""
        from drift.models.onnx_export import export_classifier

        export_classifier(self.module, self.tokenizer, file, temperature=self.temperature)

    def export_int8(self, file: Path, target: Path, texts: Sequence[str]) -> list[np.ndarray]:
        """Write that graph in int8, too. Returns the probabilities of texts by both files, `(n, C)` each."""
        from drift.models.onnx_int8 import probabilities, quantise

        quantise(file, target)
        return [probabilities(each, self.tokenizer, texts, max_length=self.max_length) for each in (file, target)]

    def save(self, folder: Path) -> None:
        """Write the model as safetensors and JSON. A fine-tuned transformer is saved in Hugging Face form."""
        folder.mkdir(parents=True, exist_ok=True)
        description: dict[str, Any] = {
            "format": FORMAT,
            "kind": self.kind,
            "classes": self.classes,
            "max_length": self.max_length,
            "temperature": self.temperature,
        }
        if isinstance(self.module, FrozenClassifier):
            if self.by_reference:
                self.tokenizer.save_pretrained(folder / ENCODER)  # small, and the ONNX file needs it
            else:
                save_pretrained(read_encoder(self.module.encoder), self.tokenizer, folder / ENCODER)
            description |= {} if self.encoder is None else {"encoder": self.encoder.content()}
            state = {name: v for name, v in self.module.state_dict().items() if not name.startswith("encoder.")}
            save_file({name: value.contiguous() for name, value in state.items()}, folder / WEIGHTS)
            description["pool"] = self.module.pool
            if self.heads is not None:
                save_file(self.heads, folder / HEADS)
        elif isinstance(self.module, (TextCNN, Vampire)):
            (folder / WORDS).write_text(self.tokenizer.to_json(), encoding="utf-8")
            save_file({name: value.contiguous() for name, value in self.module.state_dict().items()}, folder / WEIGHTS)
            if isinstance(self.module, TextCNN):
                description["windows"] = self.module.windows
        else:
            save_pretrained(self.module, self.tokenizer, folder)
        write_description(folder, description)

    @classmethod
    def load(cls, folder: Path) -> "TextModel":
        """Open what `save` wrote."""

        def opened(description: dict[str, Any]) -> TextModel:
            module, tokenizer, *fixed = OPENERS[description["kind"]](folder, description)
            names = "classes", "kind", "max_length", "temperature"
            return cls(module.eval(), tokenizer, *(description[name] for name in names), *fixed)

        return read_description(folder, FORMAT, TextDescription, opened)


def _check_texts(texts: Any) -> None:
    if isinstance(texts, (str, bytes)):
        raise DataError("one string was given, of which each character would be a text; give a list of texts")
    if hasattr(texts, "columns"):
        raise DataError("a table was given; give a list of texts, or use drift.predict(run, table)")
    for _ in checked(texts):
        pass


Opened = tuple[Any, ...]  # module and tokenizer; of a frozen model also reference to its encoder, embedder and heads


def _open_finetuned(folder: Path, description: dict[str, Any]) -> Opened:
    return load_classifier(str(folder.absolute()), description["classes"], seed=0)


def _open_frozen(folder: Path, description: dict[str, Any]) -> Opened:
    state = load_file(folder / WEIGHTS)
    copied = str((folder / ENCODER).absolute())
    reference = EncoderReference(**description["encoder"]) if "encoder" in description else None
    by_reference = reference is not None and not reference.copied
    encoder, tokenizer = reference.load() if reference is not None and by_reference else load_encoder(copied)
    head = linear_head(len(state["mean"]), len(description["classes"]))
    module = FrozenClassifier(encoder, state["mean"], state["scale"], head, pool=description["pool"])
    missing = module.load_state_dict(state, strict=False).missing_keys
    if lost := [name for name in missing if not name.startswith("encoder.")]:
        raise FileError(f"{folder} lacks {', '.join(lost)}; it is incomplete; copy it again")
    embedder = Embedder(
        copied if reference is None else reference.name,
        max_length=description["max_length"],
        pool=description["pool"],
        precision="float32" if reference is None else reference.precision,
        loaded=(encoder, tokenizer),
        identity=None if reference is None else reference.identity,
    )
    heads = load_file(folder / HEADS) if (folder / HEADS).exists() else None  # not in folders of 0.1
    return module, tokenizer, reference, embedder, heads


def _open_textcnn(folder: Path, description: dict[str, Any]) -> Opened:
    state = load_file(folder / WEIGHTS)
    module = TextCNN(
        state["vectors"], len(description["classes"]), description["windows"], len(state["filters.0.bias"])
    )
    module.load_state_dict(state)
    return module, _open_words(folder)


def _open_vampire(folder: Path, description: dict[str, Any]) -> Opened:
    return Vampire.from_state(load_file(folder / WEIGHTS), len(description["classes"])), _open_words(folder)


def _open_words(folder: Path) -> WordTokenizer:
    try:
        return WordTokenizer.from_json((folder / WORDS).read_text(encoding="utf-8"))
    except FileError as error:
        raise FileError(f"{folder / WORDS}: {error}; copy it again") from error


OPENERS: dict[str, Callable[[Path, dict[str, Any]], Opened]] = {
    "frozen": _open_frozen,
    "finetuned": _open_finetuned,
    "textcnn": _open_textcnn,
    "vampire": _open_vampire,
}
