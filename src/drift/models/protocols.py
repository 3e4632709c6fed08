"""What a student module may offer besides logits. Everything here is optional: most students offer none of it.

The functions below ask with `hasattr` and not with `isinstance`: from Python 3.12 on, `isinstance` does not see
attributes that a wrapper such as `torch.compile`'s forwards to the module inside.
"""

from typing import Protocol, TypeGuard, runtime_checkable

from torch import Tensor


class HasOwnLoss(Protocol):
    """A student that is trained with its own supervised loss, such as GRAND's.

    `Method.initial_loss` calls it in place of the cross-entropy.
    """

    def own_loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Return one loss per trial, `(trials,)`. x: inputs. y: class indices, the same shape as the targets in x."""
        ...


class HasRegularizer(Protocol):
    """A student that adds a term to any loss, such as GRAND's consistency.

    `GameMethod` adds it to the game's loss if the setting `own_loss` is on.
    """

    def regularizer(self) -> Tensor:
        """Return one value per trial, `(trials,)`."""
        ...


@runtime_checkable
class HasUndecayed(Protocol):
    """A module that exempts some of its parameters from weight decay. `make_optimizer` reads it.

    undecayed: names of parameters of this module.
    """

    undecayed: tuple[str, ...]


@runtime_checkable
class HasDecayScale(Protocol):
    """A module whose weight decay is not as strong as the settings say. `make_optimizer` reads it.

    decay_scale: factor of the weight decay.
    """

    decay_scale: float


class Rekeyable(Protocol):
    """A module that draws random numbers from its own streams.

    `drift.core.teacher.copy_of` calls `rekey` on every part of the teacher, so that student and teacher draw different
    noise. The core imports no models, so it looks the method up by name.
    """

    def rekey(self) -> None:
        """Switch to other random streams."""
        ...


class FullGraph(Protocol):
    """A student that computes all nodes of a graph at every call, even if few rows are requested.

    Methods pass `full_graph` to `Game`, which then calls the student once for labelled and unlabelled rows together.
    The trainer refuses to split a step of such a student into micro-batches or over processes.
    """

    full_graph: bool


def has_own_loss(student: object) -> TypeGuard[HasOwnLoss]:
    """Return whether the student offers `own_loss`."""
    return hasattr(student, "own_loss")


def has_regularizer(student: object) -> TypeGuard[HasRegularizer]:
    """Return whether the student offers `regularizer`."""
    return hasattr(student, "regularizer")


def computes_full_graph(student: object) -> bool:
    """Return whether the student computes all nodes at every call."""
    return bool(getattr(student, "full_graph", False))
