"""Training the upper layers of a transformer: the lower ones run once per text, and their outputs are stored.

With L layers of which k are trained, h = f_{L-k}(x) is computed once without dropout and kept on disk. Both players
then compute f_θ(h), so a step costs about k / L of one through all layers, and no embedding matrix is averaged.
"""

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from drift.data.batches import batches_by_length
from drift.data.cache import cache_folder, content_key, make_room
from drift.data.examples import moved
from drift.data.stored_states import StoredStates
from drift.data.tokenized import Progress, silent
from drift.data.vector_store import read_array, write_array
from drift.errors import ConfigError
from drift.models.devices import best_device, device_of
from drift.models.hidden import encoder_layers
from drift.models.precision import chosen_precision, in_precision

FORMAT = "states/1"  # increase it when the same tokens and encoder give different states
BATCH_TOKENS = 2048  # tokens per forward pass, padding included
CHUNK = 1024  # rows that are in memory at once
STORED = np.dtype("<f2")  # as small as bfloat16, three bits more precise, and NumPy has it
TOLERANCE = 1e-4  # between logits of the whole model and of its two parts in float32


class LayerSplit:
    """A transformer in two parts.

    lower: the encoder without its last `trained` layers. upper: the classifier with only these; called with
        `inputs_embeds`, which are states of the lower part, and `attention_mask`.
    """

    def __init__(self, model: Any, trained: int, *, name: str, identity: str, precision: str = "float32") -> None:
        """model: a classifier of transformers, which becomes `upper`. trained: number of its layers in `upper`.

        name: of the encoder, for messages. identity: the content of the encoder and how it cuts texts, which names the
        stored states. precision: in which states are computed, as for `drift.models.precision.chosen_precision`.
        ConfigError if two parts of the model do not compute what the whole does; it is unchanged then.
        """
        layers = encoder_layers(model)
        if layers is None or not hasattr(model.base_model, "embeddings"):
            raise _cannot_split(name)
        if not 1 <= trained < len(layers):
            raise ConfigError(f"model.train_layers is {trained}; {name} has {len(layers)} layers: give fewer, or all")
        self.name, self.identity, self.depth, self.trained = name, identity, len(layers), trained
        self.precision = chosen_precision(precision)
        self.lower: Any = copy.deepcopy(model.base_model).eval().requires_grad_(False)
        _keep(self.lower, slice(0, self.depth - trained))
        self.upper: Any = copy.deepcopy(model)
        _keep(self.upper, slice(self.depth - trained, None))
        self.upper.base_model.embeddings = _StatesAsEmbeddings()
        self._check(model)

    @property
    def note(self) -> str:
        """What a user should know."""
        return (
            f"the upper {self.trained} of {self.depth} layers were trained, on stored outputs of the others;"
            " model.train_layers sets how many"
        )

    def _check(self, whole: Any) -> None:
        """Compare the parts with the whole on two rows of different length."""
        ids = torch.arange(12).reshape(2, 6) % int(whole.config.vocab_size)
        mask = torch.tensor([[1] * 6, [1] * 4 + [0] * 2])
        try:
            with torch.inference_mode():
                expected = whole.eval()(input_ids=ids, attention_mask=mask).logits
                states = lower_states(self.lower, {"input_ids": ids, "attention_mask": mask})
                logits = self.upper.eval()(inputs_embeds=states, attention_mask=mask).logits
        except (TypeError, ValueError, RuntimeError, StopIteration) as error:
            raise _cannot_split(self.name) from error
        if expected.dim() == 3:  # logits of padding are not defined
            expected, logits = expected[mask.bool()], logits[mask.bool()]
        if not torch.allclose(expected, logits, atol=TOLERANCE):
            raise _cannot_split(self.name)

    def stored(self, examples: Any, lines: Iterable[str], *, progress: Progress | None = None) -> StoredStates:
        """Examples whose inputs are stored states, which are computed first if the cache does not have them.

        examples: rows of token ids, with `lengths`. lines: the texts or sentences that they were made from.
        """
        lengths = np.asarray(examples.lengths, dtype=np.int64)
        layers = self.depth - self.trained
        key = content_key(lines, FORMAT, self.identity, layers, self.precision, int(lengths.sum()))
        file = cache_folder() / "states" / f"{key}.npy"
        if (states := read_array(file)) is None:
            width = int(self.lower.config.hidden_size)
            title = f"Lower {layers} of {self.depth} layers"
            with (progress or silent)(title, len(lengths)) as tick:
                write_array(file, self._computed(examples, lengths, tick), (int(lengths.sum()), width), STORED)
            make_room(keep=[file])
            states = read_array(file)
            assert states is not None
        return StoredStates(examples, states)

    def _computed(self, examples: Any, lengths: np.ndarray, tick: Callable[[], None]) -> Iterator[np.ndarray]:
        """States of all rows without padding, in order, chunk by chunk."""
        home, device = device_of(self.lower), best_device()
        lower = in_precision(self.lower, self.precision).to(device)
        for first in range(0, len(lengths), CHUNK):
            own = lengths[first : first + CHUNK]
            starts = np.cumsum(own) - own
            states = np.empty((int(own.sum()), int(self.lower.config.hidden_size)), dtype=STORED)
            for batch in batches_by_length(own.tolist(), BATCH_TOKENS):
                inputs = examples.inputs(torch.tensor(batch) + first)
                wanted = {key: inputs[key] for key in ("input_ids", "attention_mask")}
                with torch.inference_mode():
                    hidden = lower_states(lower, moved(wanted, device)).float().cpu().numpy()
                for row, values in zip(batch, hidden, strict=True):
                    states[starts[row] : starts[row] + own[row]] = values[: own[row]]
                    tick()
            if not np.isfinite(states).all():
                raise ConfigError(f"states of {self.name} exceed half precision; use model.train_layers=all")
            yield states
        self.lower.to(home)  # the same module, if the precision is its own

    def joined(self, upper: Any) -> Any:
        """The whole classifier, with these upper layers; an ordinary model of transformers."""
        whole, lower = copy.deepcopy(upper), copy.deepcopy(self.lower)
        layers, below = encoder_layers(whole), encoder_layers(lower)
        assert layers is not None
        assert below is not None
        for position, layer in enumerate([*below, *layers]):
            layer.requires_grad_(True)
            if position < len(layers):
                layers[position] = layer
            else:
                layers.append(layer)
        whole.base_model.embeddings = lower.embeddings.requires_grad_(True)
        whole.config.num_hidden_layers = self.depth
        return whole


def lower_states(lower: Any, inputs: dict[str, Tensor]) -> Tensor:
    """h, the output of the last layer, `(N, L, D)`; the model's own output may have passed a final normalisation."""
    layers = encoder_layers(lower)
    assert layers is not None
    outputs: list[Any] = []
    with layers[-1].register_forward_hook(lambda layer, args, output: outputs.append(output)):
        lower(**inputs)
    states: Tensor = outputs[-1][0] if isinstance(outputs[-1], tuple) else outputs[-1]
    return states


class _StatesAsEmbeddings(nn.Module):
    """In place of a model's embeddings: the given states are what its first layer sees."""

    def forward(self, *args: Any, inputs_embeds: Tensor | None = None, **kwargs: Any) -> Tensor:
        if inputs_embeds is not None:
            return inputs_embeds
        return next(each for each in args if isinstance(each, Tensor) and each.is_floating_point())  # by position


def _keep(model: Any, part: slice) -> None:
    """Remove all layers but these, in place."""
    layers = encoder_layers(model)
    assert layers is not None
    kept = list(layers)[part]
    model.config.num_hidden_layers = len(kept)
    del layers[len(kept) :]
    for position, layer in enumerate(kept):
        layers[position] = layer


def _cannot_split(name: str) -> ConfigError:
    return ConfigError(f"the upper layers of {name} cannot be trained alone; use model.train_layers=all")
