"""The interface between a method and the training loop: a loss for the student, and updates after each step."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from drift.core.checks import check_labels, check_pair
from drift.core.forward import Inputs, log_probabilities
from drift.core.losses import supervised_loss
from drift.core.objective import Objective
from drift.core.strategy import SoftStrategy
from drift.data.examples import Batch
from drift.methods.materials import Materials, Pool, Texts
from drift.methods.shares import LabelsAre, Shares
from drift.models.protocols import has_own_loss
from drift.settings import Settings

Backward = Callable[[Tensor], None]

# What a method may need from the data; a task lists what it offers.
TEXTS = "texts"  # one text per row, to rewrite or to read words from
GRAPH = "graph"  # a graph whose nodes are the rows
INDEPENDENT_ROWS = "independent rows"  # a row can be computed without the other rows


@dataclass(frozen=True)
class KnownLabels:
    """The labels that a run is trained on.

    codes: class indices, `(m,)` or `(trials, m)`; -1 for none. weak: they are noisy.
    labels_are: how their rows were chosen, see `estimate_shares`; None if nobody said.
    biased: whether weak labels may cover some classes better than others.
    """

    codes: Tensor
    weak: bool = False
    labels_are: LabelsAre | None = None
    biased: bool = True


@dataclass(frozen=True)
class Context:
    """How a method is run.

    teacher: a second module like the student, wrapped the same way; None lets the method copy the student.
    stacked: the student is several independent trials (see `Game`).
    single_process: the batch is not spread over processes (see `Game`).
    labels: what is known of the labelled rows.
    """

    teacher: nn.Module | None = None
    stacked: bool = False
    single_process: bool = False
    labels: KnownLabels | None = None


class Method(ABC):
    """One way to learn from labelled and unlabelled examples. A baseline is a subclass in its own file.

    The loop calls `initial_loss` in the first phase, which trains θinit, then `start`. In the second phase it calls,
    for every batch, `loss` and `backward`, and `follow` after the optimiser's step.

    student: the module that is trained; its call returns logits.
    settings: an instance of `settings_type`.
    context: how the method is run.
    """

    name: ClassVar[str]
    summary: ClassVar[str]  # one line for `drift methods`
    settings_type: ClassVar[type[Settings]]
    relative_cost: ClassVar[float]  # cost of one step relative to a supervised step, for `drift methods`
    needs: ClassVar[frozenset[str]] = frozenset()  # what the data must offer: TEXTS, GRAPH, INDEPENDENT_ROWS
    has_second_phase: ClassVar[bool] = True  # whether training continues after θinit
    has_teacher: ClassVar[bool] = False  # whether the method uses a second model like the student
    head_dropout: ClassVar[float] = 0.0  # dropout before a linear head on fixed vectors, which has none by default
    model: ClassVar[str | None] = None  # the only model the method is made for, by its user-facing name
    trains_on_dev: ClassVar[bool] = False  # whether the method is trained on the labels of dev
    # Of the method settings that defaults and presets give to a kind of model, which this method takes; None: all. They
    # are chosen for DRIFT. α, τ and λ of another method are its authors', unless the user gives them.
    inherited: ClassVar[frozenset[str] | None] = frozenset({"own_loss", "unbalanced_class"})
    refresh_every: int | None = None  # steps between calls of `refresh` after the first; None: it is called only once

    def __init__(self, student: nn.Module, settings: Any, context: Context = Context()) -> None:
        self.student, self.settings, self.stacked = student, settings, context.stacked
        self.shares: list[Shares] = []  # estimated class shares, one entry per trial; empty if none were needed
        self.objective = Objective(SoftStrategy(), 0.0, context.stacked, context.single_process)
        self.mean = self.objective.mean

    @classmethod
    def serves(cls, offers: Collection[str]) -> bool:
        """Return whether the method can be used on data that offers these: see `needs`."""
        return cls.needs <= frozenset(offers)

    @property
    def teacher(self) -> nn.Module | None:
        """The second model, if the method has one."""
        return None

    def initial_loss(self, batch: Batch) -> Tensor:
        """Return the loss of the first phase on the labelled part of a batch: L_sup (Eq. 1), a scalar.

        Labels may be soft, `(..., N, C)`: then it is their cross-entropy. A student with its own loss is trained with
        that instead, see `HasOwnLoss`.
        """
        x, y = check_pair(batch.labeled)
        if has_own_loss(self.student):
            return torch.as_tensor(self.student.own_loss(x, y).sum())
        log_q = log_probabilities(self.student, x, stacked=self.stacked)
        return self.mean(supervised_loss(log_q, check_labels(y, log_q)), batch.labeled_total).sum()

    @abstractmethod
    def loss(self, batch: Batch) -> Tensor:
        """Return the student's loss on one batch, a scalar.

        For a micro-batch it is that micro-batch's share: the shares of all micro-batches sum to the loss of the step.
        """

    def start(self, probe: Inputs = None) -> None:  # noqa: B027
        """Begin the second phase from the student as it is now, θinit. probe: inputs on which changes are counted."""

    @classmethod
    def named_classes(cls, settings: Any) -> Collection[str]:
        """Return the classes that the settings describe, so that no labelled row is needed for them."""
        return ()

    @classmethod
    def prepare_texts(cls, settings: Any, texts: Texts) -> Materials:
        """Make augmented texts, or other texts for the first phase. Called before training on texts."""
        return Materials()

    def refresh(self, pool: Pool) -> Tensor | None:
        """Read all unlabelled rows. Called when the second phase starts, then every `refresh_every` steps if set.

        Returns the positions in the pool of the rows to draw from until the next call, `(k,)` or `(trials, k)`; None
        changes nothing.
        """
        return None

    def backward(self, loss: Tensor, *, backward: Backward | None = None, merge: bool = True) -> None:
        """Fill the student's gradients.

        backward: called in place of `loss.backward()`. merge: whether this is the last micro-batch of the step.
        """
        (backward or torch.autograd.backward)(loss)

    def accumulate(self, batches: Sequence[Batch], *, backward: Backward | None = None) -> Tensor:
        """Compute loss and gradients over micro-batches, equal to those of the whole batch; return the loss, detached.

        The default is exact for a loss that is a mean over rows: each micro-batch adds its share. Methods with another
        loss override it.
        """
        losses = []
        for number, batch in enumerate(batches, 1):
            loss = self.loss(batch)
            self.backward(loss, backward=backward, merge=number == len(batches))
            losses.append(loss.detach())
        return torch.stack(losses).sum()

    def follow(self) -> None:  # noqa: B027
        """Update the method's state after the optimiser's step."""

    def diagnostics(self) -> dict[str, Any]:
        """Return values for the trace. Called when gradients are complete and before the optimiser's step."""
        return {}

    def probe_labels(self) -> Tensor | None:
        """Return the pseudo-labels of the probe at the last `diagnostics`, as class indices; None if there are none."""
        return None

    @torch.no_grad()
    def predict_proba(self, inputs: Inputs) -> Tensor:
        """Return the student's class probabilities `(..., N, C)`. The student must be in evaluation mode."""
        return log_probabilities(self.student, inputs, stacked=self.stacked).exp()

    def state_dict(self) -> dict[str, Any]:
        """Return the state needed to resume exactly, besides that of the student and the optimiser."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: B027
        """Restore what `state_dict` returned."""
