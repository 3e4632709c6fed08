"""Stored hidden states of a fixed lower part of an encoder, as examples for its upper part."""

from typing import Any

import numpy as np
import torch
from torch import Tensor


class StoredStates:
    """Rows of tokens whose inputs are stored states in place of token ids.

    examples: rows of token ids (`TokenizedTexts` or `Windows`). states: of all their tokens in order, `(tokens, D)`,
    usually memory-mapped; each batch is read from disk.
    """

    def __init__(self, examples: Any, states: np.ndarray) -> None:
        self.examples, self.states = examples, states
        self.lengths = np.asarray(examples.lengths, dtype=np.int64)
        self.counts, self.at_once = examples.counts, examples.at_once
        self._starts = np.cumsum(self.lengths) - self.lengths

    def __len__(self) -> int:
        return len(self.lengths)

    def __getattr__(self, name: str) -> Any:
        """What is known of the tokens, such as the words of windows."""
        if name.startswith("_") or name == "examples":  # while an object is unpickled
            raise AttributeError(name)
        return getattr(self.examples, name)

    def inputs(self, rows: Tensor, **options: Any) -> dict[str, Tensor]:
        """The inputs of the rows with `inputs_embeds`, `(N, L, D)` in float32, in place of `input_ids`.

        options: as for `examples.inputs`.
        """
        inputs: dict[str, Tensor] = dict(self.examples.inputs(rows, **options))
        shape = inputs.pop("input_ids").shape
        states = np.zeros((*shape, self.states.shape[1]), dtype=np.float32)
        for line, row in zip(states, np.asarray(rows, dtype=np.int64), strict=True):
            line[: self.lengths[row]] = self.states[self._starts[row] : self._starts[row] + self.lengths[row]]
        return {"inputs_embeds": torch.from_numpy(states), **inputs}
