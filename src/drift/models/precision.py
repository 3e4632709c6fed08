"""Number formats of encoders, fixed and trained: the fastest that this processor really has."""

import copy

import torch
from torch import nn

from drift.errors import ConfigError

PRECISIONS = ("auto", "float32", "bfloat16")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def chosen_precision(name: str) -> str:
    """The precision to use. name: one of `PRECISIONS`; auto: bfloat16 if the processor computes it, else float32.

    On processors without instructions for it, bfloat16 is emulated and slower than float32. It keeps the cosine of
    vectors with those of float32 above 0.999 (docs/results/encoders.md). An accelerator uses float32.
    """
    if name not in PRECISIONS:
        raise ConfigError(f"model.precision is {name!r}; give one of {', '.join(PRECISIONS)}")
    if name != "auto":
        return name
    return "bfloat16" if computes_bfloat16() and not torch.accelerator.is_available() else "float32"


def computes_bfloat16() -> bool:
    """Return whether the processor has instructions for products in bfloat16: AVX512-BF16 or AMX."""
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")  # private, so they may be missing
    return any(getattr(torch.cpu, name, bool)() for name in names)


def chosen_mixed_precision(name: str) -> str:
    """The mixed precision to train in: no, bf16 or fp16. name: one of these, or auto: bf16 where it is not emulated."""
    if name != "auto":
        return name
    has_bfloat16 = torch.cuda.is_bf16_supported() if torch.cuda.is_available() else computes_bfloat16()
    return "bf16" if has_bfloat16 else "no"


def in_precision(model: nn.Module, precision: str) -> nn.Module:
    """The model in this precision; a copy, if that is not its own."""
    dtype = DTYPES[precision]
    if all(parameter.dtype == dtype for parameter in model.parameters()):
        return model
    return copy.deepcopy(model).to(dtype)
