"""What a method is to the loop: a loss for the student, and what else moves when the student has moved."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
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
from drift.settings import Settings

Backward = Callable[[Tensor], None]


class Method(ABC):
    """One way to learn from labelled and unlabelled examples; a baseline is a subclass in a file of its own.

    The loop calls `initial_loss` while it looks for θinit, then `start`, then for every batch `loss`, `backward`, and
    `follow` after the optimiser has moved the student.
    """

    name: ClassVar[str]
    summary: ClassVar[str]  # one line for `drift methods`
    settings_type: ClassVar[type[Settings]]
    tasks: ClassVar[tuple[str, ...]] = ("text", "tokens", "nodes")  # that it can serve
    relative_cost: ClassVar[float]  # see `drift methods`: what a step costs, in supervised steps
    has_second_phase: ClassVar[bool] = True  # whether there is a second phase, after θinit is found
    has_teacher: ClassVar[bool] = False  # whether it is given a second model like the student
    head_dropout: ClassVar[float] = 0.0  # before a head on fixed vectors, which has none of its own, if it needs some
    model: ClassVar[str | None] = None  # the one model it is made for, by the name users call it
    trains_on_dev: ClassVar[bool] = False  # whether the labels of dev are what it learns from
    refresh_every: int | None = None  # steps between looks at all unlabelled rows, if it takes any

    def __init__(
        self,
        student: nn.Module,
        settings: Any,
        *,
        teacher: nn.Module | None = None,
        stacked: bool = False,
        single_process: bool = False,
    ) -> None:
        """settings: of `settings_type`. stacked, alone: see `Game`."""
        self.student, self.stacked = student, stacked
        self.objective = Objective(SoftStrategy(), 0.0, stacked, single_process)
        self.mean = self.objective.mean

    @property
    def teacher(self) -> nn.Module | None:
        """The second model, if the method has one."""
        return None

    def initial_loss(self, batch: Batch) -> Tensor:
        """The loss that finds θinit, from the labelled part of the batch: L_sup (Eq. 1), a scalar.

        A model that is trained by a loss of its own, such as GRAND, has it in `own_loss(x, y)`, one value a trial.
        """
        x, y = check_pair(batch.labeled)
        if own := getattr(self.student, "own_loss", None):
            return torch.as_tensor(own(x, y).sum())
        log_q = log_probabilities(self.student, x, stacked=self.stacked)
        return self.mean(supervised_loss(log_q, check_labels(y, log_q)), batch.labeled_total).sum()

    @abstractmethod
    def loss(self, batch: Batch) -> Tensor:
        """The student's loss on one batch, a scalar; of a micro-batch its part of the step's, which is their sum."""

    def start(self, probe: Inputs = None) -> None:  # noqa: B027
        """θinit is found: everything else starts from the student as it is. probe: inputs to count changes on."""

    @classmethod
    def named_classes(cls, settings: Any) -> Collection[str]:
        """Classes that the settings themselves describe, so that no row has to be labelled."""
        return ()

    @classmethod
    def prepare_texts(cls, settings: Any, texts: Texts) -> Materials:
        """Before training on texts: other forms of them, or others to start from. settings: of `settings_type`."""
        return Materials()

    def refresh(self, pool: Pool) -> Tensor | None:
        """Look at all unlabelled rows, at the start and every `refresh_every` steps.

        Gives the places of the rows to draw from until the next time, `(k,)` or `(trials, k)`; None leaves it as it is.
        """
        return None

    def backward(self, loss: Tensor, *, backward: Backward | None = None, merge: bool = True) -> None:
        """Fill the student's gradients. merge: the last micro-batch of the step."""
        (backward or torch.autograd.backward)(loss)

    def accumulate(self, batches: Sequence[Batch], *, backward: Backward | None = None) -> Tensor:
        """Loss and backward of micro-batches, equal to those of the whole batch; methods whose loss needs that say so.

        By default a loss is a mean over rows, of which each micro-batch has its part: their sum is exact.
        """
        losses = []
        for number, batch in enumerate(batches, 1):
            loss = self.loss(batch)
            self.backward(loss, backward=backward, merge=number == len(batches))
            losses.append(loss.detach())
        return torch.stack(losses).sum()

    def follow(self) -> None:  # noqa: B027
        """The student has moved."""

    def diagnostics(self) -> dict[str, Any]:
        """How the method stands, for the trace; called when gradients are complete and nothing has moved."""
        return {}

    def probe_labels(self) -> Tensor | None:
        """The pseudo-labels that `diagnostics` last found on the probe, class indices; None if it has none."""
        return None

    @torch.no_grad()
    def predict_proba(self, inputs: Inputs) -> Tensor:
        """Class probabilities `(..., N, C)` by the student, which must be in evaluation mode."""
        return log_probabilities(self.student, inputs, stacked=self.stacked).exp()

    def state_dict(self) -> dict[str, Any]:
        """What it takes to go on exactly, beside the student and the optimiser."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: B027
        """Put back what `state_dict` gave."""
