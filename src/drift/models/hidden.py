"""The hidden states of a student: rows mixed at a layer on the way through it, or read where its last layer reads them.

Both happen in the student's own forward, by hooks that live as long as the call, so wrapped and sharded students are
served as they are.
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
    """At how many layers rows can be mixed: those of a transformer; else one, where the last layer reads."""
    layers = _encoder_layers(module)
    return 1 if layers is None else len(layers)


def mixed_log_probabilities(
    module: nn.Module, parts: Sequence[Inputs], layer: int, share: float, order: Tensor, *, stacked: bool = False
) -> Tensor:
    """log f(x, θ) `(..., N, C)` where hidden states at a layer are share h + (1 - share) h[order].

    parts: inputs of one or several batches, N rows together. layer: from 1 to `depth`; states are mixed as they leave
    it. order: `(N,)`, the row each is mixed with.

    Texts of two lengths are mixed token by token as far as both go. Beyond that a row has its own states, and what its
    partner says past the row's end is not read: padding is never mixed in, and a share of 1 changes nothing.
    """
    layers = _encoder_layers(module)
    if layers is None:
        last_layer(module)
        log_q = joined([log_probabilities(module, part, stacked=stacked) for part in parts])
        # The last layer is linear: mixing what it reads is mixing its logits, and so much cheaper.
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
    """log f(x, θ) `(..., N, C)` and the vectors `(..., N, D)` that the last layer reads, in one forward."""
    read: list[Tensor] = []
    with last_layer(module).register_forward_pre_hook(lambda layer, args: read.append(args[0])):
        log_q = log_probabilities(module, inputs, stacked=stacked)
    vectors = read[-1] if read else log_q[:0]
    if vectors.dim() > log_q.dim() and "words" in inputs:  # a tagger reads every sub-word
        vectors = vectors.flatten(0, 1)[inputs["words"]]
    if vectors.shape[:-1] != log_q.shape[:-1]:
        raise _unknown(module)
    return log_q, vectors


def representations_move(module: nn.Module) -> bool:
    """Whether anything before the last layer is trained, so that what it reads can change."""
    last = {id(parameter) for parameter in last_layer(module).parameters()}
    return any(parameter.requires_grad and id(parameter) not in last for parameter in module.parameters())


def last_layer(module: nn.Module) -> nn.Linear | StackedLinear:
    """The linear layer that gives the logits."""
    linear = [layer for layer in module.modules() if isinstance(layer, (nn.Linear, StackedLinear))]
    one_by_one = any(isinstance(part, Stacked) and not part.batched for part in module.modules())
    if not linear or one_by_one:
        raise _unknown(module)
    return linear[-1]


def class_count(module: nn.Module) -> int:
    """How many classes the last layer tells apart."""
    return int(last_layer(module).weight.shape[-2])


def _one_batch(parts: Sequence[Any]) -> dict[str, Tensor]:
    """Token ids and masks `(N, T)` of several batches, padded to one length."""
    longest = max(part["input_ids"].shape[1] for part in parts)
    # Padding with zeros: whatever token that is, it is masked.
    return {
        name: torch.cat([pad(part[name], (0, longest - part[name].shape[1])) for part in parts]) for name in parts[0]
    }


def _encoder_layers(module: nn.Module) -> nn.ModuleList | None:
    """The layers of a transformer; None where there is no transformer in the module."""
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
        f"hidden states of {type(module).__name__} are not known: it is no transformer with a list of layers, and does"
        " not end in a linear layer; use another model, or a method that does not mix or compare them"
    )
