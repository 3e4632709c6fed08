"""Hidden states of a student: mix rows at a layer, or read the input of the last layer.

Both use hooks on the student's own forward pass, which are removed after the call, so wrapped and sharded students work
unchanged.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from drift.core.forward import Inputs, joined, log_probabilities
from drift.core.softmax import log_softmax
from drift.errors import ConfigError
from drift.models.stacked import Stacked, StackedLinear


def depth(module: nn.Module) -> int:
    """Return the number of layers at which rows can be mixed: those of a transformer, or 1 (the last layer)."""
    layers = encoder_layers(module)
    return 1 if layers is None else len(layers)


def mixed_log_probabilities(
    module: nn.Module, parts: Sequence[Inputs], layer: int, share: float, order: Tensor, *, stacked: bool = False
) -> Tensor:
    """Return log f(x, θ) `(..., N, C)` with hidden states at a layer replaced by share h + (1 - share) h[order].

    module: the student.
    parts: inputs of one or several batches, with N rows in total.
    layer: from 1 to `depth`; its output is mixed.
    share: weight of a row's own states.
    order: index of the row that each row is mixed with, `(N,)`.
    stacked: whether the student is several trials.

    Texts of different lengths are mixed token by token up to the length of the shorter. Beyond it a row keeps its own
    states, and its partner's further tokens are not used: padding is never mixed in, and a share of 1 changes nothing.
    """
    layers = encoder_layers(module)
    if layers is None:
        last_layer(module)
        log_q = joined([log_probabilities(module, part, stacked=stacked) for part in parts])
        # The last layer is linear: mixing its input is equal to mixing its logits, and much slower.
        return log_softmax(share * log_q + (1 - share) * log_q.index_select(-2, order))
    inputs = _one_batch(parts)
    real = inputs["attention_mask"].bool()
    both = (real & real[order]).unsqueeze(-1)  # (N, T, 1)

    def mix(layer: nn.Module, args: Any, output: Any) -> Any:
        states, *rest = output if isinstance(output, tuple) else (output,)
        states = torch.where(both, share * states + (1 - share) * states[order], states)
        return (states, *rest) if isinstance(output, tuple) else states

    with layers[layer - 1].register_forward_hook(mix):
        return log_probabilities(module, inputs, stacked=stacked)


def representations(module: nn.Module, inputs: Inputs, *, stacked: bool = False) -> tuple[Tensor, Tensor]:
    """Return log f(x, θ) `(..., N, C)` and the last layer's input `(..., N, D)`, from one forward pass."""
    last_inputs: list[Tensor] = []
    with last_layer(module).register_forward_pre_hook(lambda layer, args: last_inputs.append(args[0])):
        log_q = log_probabilities(module, inputs, stacked=stacked)
    vectors = last_inputs[-1] if last_inputs else log_q[:0]
    if vectors.dim() > log_q.dim() and "words" in inputs:  # a tagger computes logits of every sub-word
        vectors = vectors.flatten(0, 1)[inputs["words"]]
    if vectors.shape[:-1] != log_q.shape[:-1]:
        raise _unknown(module)
    return log_q, vectors


def representations_move(module: nn.Module) -> bool:
    """Return whether any parameter before the last layer is trained, so that representations can change."""
    last = {id(parameter) for parameter in last_layer(module).parameters()}
    return any(parameter.requires_grad and id(parameter) not in last for parameter in module.parameters())


def last_layer(module: nn.Module) -> nn.Linear | StackedLinear:
    """Return the linear layer that computes the logits; ConfigError if there is none."""
    linear = [layer for layer in module.modules() if isinstance(layer, (nn.Linear, StackedLinear))]
    vmapped = any(isinstance(part, Stacked) and not part.batched for part in module.modules())
    if not linear or vmapped:
        raise _unknown(module)
    return linear[-1]


def class_count(module: nn.Module) -> int:
    """Return the number of classes, which is the last layer's width."""
    return int(last_layer(module).weight.shape[-2])


def _one_batch(parts: Sequence[Any]) -> dict[str, Tensor]:
    """Return token ids or states, and masks, of several batches, padded to the same length `(N, T, ...)`."""
    longest = max(part["attention_mask"].shape[1] for part in parts)

    def padded(values: Tensor) -> Tensor:
        # Zeros: the padding does not matter, because it is masked. Stored states have a third dimension.
        return pad(values, (*(0, 0) * (values.dim() - 2), 0, longest - values.shape[1]))

    return {name: torch.cat([padded(part[name]) for part in parts]) for name in parts[0]}


def encoder_layers(module: nn.Module) -> nn.ModuleList | None:
    """Return the layers of a transformer; None if the module has no transformer."""
    depths = [getattr(getattr(part, "config", None), "num_hidden_layers", None) for part in module.modules()]
    depth = next((depth for depth in depths if depth is not None), None)
    if depth is None:
        return None
    for part in module.modules():
        if isinstance(part, nn.ModuleList) and len(part) == depth:
            return part
    raise _unknown(module)


def _unknown(module: nn.Module) -> ConfigError:
    return ConfigError(
        f"hidden states of {type(module).__name__} are not accessible: it is not a transformer with a list of layers,"
        " and does not end in a linear layer; use another model, or a method that does not mix or compare them"
    )
