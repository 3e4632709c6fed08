"""Which students have logits that are linear in their parameters."""

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from drift.models.dropout import Dropout
from drift.models.stacked import Stacked, StackedLinear

LINEAR = (nn.Linear, StackedLinear)
CONTAINERS = (nn.Sequential, Stacked, DistributedDataParallel)  # they call their parts in order, and nothing else

DROPOUTS = (nn.Dropout, Dropout)


def is_linear(module: nn.Module) -> bool:
    """Return whether logits are W x + b and nothing changes x: one linear layer without dropout, also as stacked heads.

    The Jacobian ∂z/∂θ then depends on x alone, so that student and teacher have the same. Types must match exactly,
    because a subclass may compute something else.
    """
    layers = [part for part in module.modules() if type(part) not in CONTAINERS and not _does_nothing(part)]
    return len(layers) == 1 and type(layers[0]) in LINEAR


def _does_nothing(part: nn.Module) -> bool:
    return type(part) is nn.Identity or (isinstance(part, nn.Dropout) and type(part) in DROPOUTS and part.p == 0)
