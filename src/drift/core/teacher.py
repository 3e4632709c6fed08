"""The teacher: a second module whose parameters are a moving average of the student's (Eq. 2).

The follower has a closed form, so dθT/dθS = 1 - α, and the interaction term of the Stackelberg gradient (Eq. 4) is an
ordinary backward through the teacher times 1 - α. `Follower` pairs the tensors of the two modules and does the updates.
"""

import copy
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from drift.errors import ConfigError, StateError

T = TypeVar("T", bound=Tensor)
Gradients = dict[nn.Parameter, Tensor]
"""∂L/∂θT, keyed by the student's parameter."""


def copy_of(student: nn.Module) -> nn.Module:
    """A teacher with the student's weights and its own storage. A compiled student gives a compiled teacher.

    A submodule with its own random stream has a method `rekey`, which gives the teacher's copy another stream.
    """
    try:
        teacher = copy.deepcopy(student)
    except Exception as error:
        raise ConfigError(
            f"the student ({type(student).__name__}) cannot be copied: {error}; pass teacher=, a second module like it"
        ) from error
    teacher.zero_grad(set_to_none=True)
    for part in teacher.modules():
        if callable(rekey := getattr(part, "rekey", None)):
            rekey()
    return teacher


class Follower:
    """Pairs the teacher's tensors with the student's, updates the average, and collects the teacher's gradients.

    Tied parameters are one pair. Frozen parameters stay equal. Floating-point buffers (BatchNorm statistics) are
    averaged too; other buffers are copied.
    """

    def __init__(self, teacher: nn.Module, student: nn.Module) -> None:
        self.teacher, self.student = teacher, student
        self._params = _paired("parameter", student.named_parameters(), teacher.named_parameters())
        self._has_buffers = bool(self._buffers())
        if any(isinstance(s, UninitializedParameter) for s, _ in self._params.values()):
            raise ConfigError("the student has lazy parameters without a shape; run one batch through it first")
        if not any(s.requires_grad for s, _ in self._params.values()):
            raise ConfigError(f"the student ({type(student).__name__}) has no trainable parameter; unfreeze some")
        for name, (s, t) in {**self._params, **self._buffers()}.items():
            if (s.shape, s.dtype) != (t.shape, t.dtype):
                raise ConfigError(
                    f"the teacher's {name} is {t.dtype} {tuple(t.shape)}, the student's {s.dtype} {tuple(s.shape)};"
                    " give a teacher of the same architecture and precision"
                )
        if any(s.requires_grad and s.dtype in (torch.bfloat16, torch.float16) for s, _ in self._params.values()):
            warnings.warn(
                "the student's parameters have half precision, in which small updates of the teacher round to nothing;"
                " keep them in float32, and compute under torch.autocast",
                stacklevel=4,
            )
        self._note_frozen()
        self.take_gradients()  # gradients left from earlier training of the teacher are not part of the game

    def _buffers(self) -> dict[str, tuple[Tensor, Tensor]]:
        # Looked up on each call: `module.to(...)` replaces buffers, but keeps parameters.
        return _paired("buffer", self.student.named_buffers(), self.teacher.named_buffers())

    @property
    def student_parameters(self) -> list[nn.Parameter]:
        """The student's parameters, each once."""
        return [student for student, _ in self._params.values()]

    def require_gradients(self, wanted: bool) -> None:
        """If `wanted`, let the teacher's parameters collect gradients where the student's do; otherwise none do."""
        for student, teacher in self._params.values():
            if teacher.requires_grad != (wanted and student.requires_grad):
                teacher.requires_grad_(wanted and student.requires_grad)

    @torch.no_grad()
    def follow(self, alpha: float) -> None:
        """Move the follower: θT <- α θT + (1 - α) θS, in place."""
        pairs = [
            (s, t)
            for s, t in self._params.values()
            if s.requires_grad or self._equal.get(s) != (s._version, t._version)
        ]
        # lerp, not two products: equal tensors stay equal to the bit, and α = 0 and α = 1 are exact.
        torch._foreach_lerp_([t for _, t in pairs], [s for s, _ in pairs], 1.0 - alpha)
        for student, teacher in self._buffers().values() if self._has_buffers else ():
            if student.is_floating_point():
                # Equal entries are kept: a mask's -inf would make lerp compute -inf - -inf.
                teacher.copy_(torch.where(student == teacher, student, torch.lerp(teacher, student, 1.0 - alpha)))
            else:
                teacher.copy_(student)

    @torch.no_grad()
    def reset(self) -> None:
        """Copy the student: θT <- θS."""
        for student, teacher in (*self._params.values(), *self._buffers().values()):
            teacher.copy_(student)
        self._note_frozen()

    def _note_frozen(self) -> None:
        """Record which frozen parameters are equal, with their versions: averaging them would change nothing."""
        frozen = [(s, t) for s, t in self._params.values() if not s.requires_grad]
        self._equal = {s: (s._version, t._version) for s, t in frozen if torch.equal(s, t)}

    def take_gradients(self) -> Gradients:
        """Remove ∂L/∂θT from the teacher and return it."""
        gradients = {}
        for student, teacher in self._params.values():
            if teacher.grad is not None:
                gradients[student] = teacher.grad
                teacher.grad = None
        return gradients

    def state(self) -> dict[str, Tensor]:
        """A copy of every parameter and buffer of the teacher by name, including non-persistent buffers."""
        return {name: t.detach().clone() for name, (_, t) in {**self._params, **self._buffers()}.items()}

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore the tensors returned by `state`; StateError if they are of another architecture."""
        tensors = {**self._params, **self._buffers()}
        _check_names("the saved teacher's tensors", tensors, state)
        for name, (_, teacher) in tensors.items():
            if teacher.shape != state[name].shape:
                raise StateError(
                    f"the saved teacher's {name} has shape {tuple(state[name].shape)}, this one {tuple(teacher.shape)};"
                    " build the same architecture first"
                )
        for name, (_, teacher) in tensors.items():
            teacher.copy_(state[name])
        self._note_frozen()
        self.take_gradients()


@contextmanager
def in_evaluation(module: nn.Module) -> Iterator[None]:
    """Put the module in evaluation mode within the block, and restore the mode of every submodule afterwards."""
    modes = [(each, each.training) for each in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for each, training in modes:
            each.training = training


@contextmanager
def undisturbed_buffers(teacher: nn.Module) -> Iterator[None]:
    """Undo what a forward in training mode does to the buffers: the teacher's must stay averages of the student's."""
    if not teacher.training:
        yield
        return
    saved = [
        (owner, name, buffer, buffer.clone())
        for owner in teacher.modules()
        for name, buffer in owner._buffers.items()
        if buffer is not None
    ]
    try:
        yield
    finally:
        for owner, name, buffer, value in saved:
            owner._buffers[name] = buffer  # a module may have replaced its buffer
            buffer.data.copy_(value)  # .data: autograd must not see this as a change to a tensor that backward needs


@torch.no_grad()
def add_interaction(gradients: Gradients, scale: float) -> None:
    """Complete the Stackelberg gradient (Eq. 4): student.grad <- student.grad + (1 - α) ∂L/∂θT, in place.

    gradients: ∂L/∂θT. scale: 1 - α.
    """
    leaders, interactions = [], []
    for student, gradient in gradients.items():
        if student.grad is None:  # the loss depends on it through the teacher only
            student.grad = gradient * scale
        else:
            leaders.append(student.grad)
            interactions.append(gradient)
    if leaders:
        torch._foreach_add_(leaders, interactions, alpha=scale)


def _paired(noun: str, student: Iterable[tuple[str, T]], teacher: Iterable[tuple[str, T]]) -> dict[str, tuple[T, T]]:
    of_student, of_teacher = _by_plain_name(student), _by_plain_name(teacher)
    _check_names(f"the teacher's {noun}s", of_student, of_teacher)
    for name, tensor in of_student.items():
        if tensor is of_teacher[name]:
            raise ConfigError(f"teacher and student share the {noun} {name}; give the teacher tensors of its own")
    return {name: (tensor, of_teacher[name]) for name, tensor in of_student.items()}


def _by_plain_name(tensors: Iterable[tuple[str, T]]) -> dict[str, T]:
    named = dict(tensors)
    plain = {_plain(name): tensor for name, tensor in named.items()}
    return plain if len(plain) == len(named) else named  # a submodule of the user's may be called "module"


def _plain(name: str) -> str:
    """A parameter's name without the parts that torch.compile and data-parallel wrappers add."""
    return ".".join(part for part in name.removeprefix("module.").split(".") if part != "_orig_mod")


def _check_names(what: str, expected: Iterable[str], actual: Iterable[str]) -> None:
    missing, unknown = sorted(set(expected) - set(actual)), sorted(set(actual) - set(expected))
    if missing or unknown:
        raise StateError(
            f"{what} do not match the student's: missing {missing[:3]}, unknown {unknown[:3]} (at most three of each"
            " are named); build the same architecture first"
        )
