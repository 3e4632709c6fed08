"""BOND (Liang et al., 2020), its second stage: a frozen teacher's sure answers, squared and balanced by class.

    ỹ_j ∝ p_j² / f_j,   f_j = Σ p_j,   p = f(x, θT)
    L = L_sup(θS) + λ mean over {x : max_j ỹ_j ≥ ε} of KL(ỹ ‖ f(x, θS));   every R steps θT <- θS

The teacher does not move between refreshes. In the original work ε is 0.9 and R is 450 steps of 16 sentences on
CoNLL-03, 700 on Wikigold. With `reinitialize`, which its published runs leave off, θS goes back with each new teacher
to the weights it had before any training: they are copied when the method is made, and saved with it. It goes back just
before the next step, so that a look at dev and the end of a run see the trained student.

Differs from paper: f_j is summed over the batch, as in the published code; the equation there sums over all rows.
Differs from paper: with `unbalanced_class`, f is 1 for one class and, for the others, counted in units of their mean. Words of no
entity are most of all; divided by how many they are, too many words become entities.
Differs from paper: a batch without a row that sure has its surest row; it would teach nothing.
Differs from paper: the published code takes the divergence to logits that are not normalised; here they are.
Differs from paper: labelled rows, where there are gold ones, keep their supervised term.
Differs from paper: R is 100, as there are hundreds of steps here.
Differs from paper: after `reinitialize` the optimiser and its schedule go on, where the original makes new ones. Adam
forgets the old direction in some ten steps. Its memory of how long gradients were lasts a thousand; where old ones were
shorter, steps are longer meanwhile, by Adam's own bound up to 7.3 times the learning rate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field
from torch import Tensor, nn

from drift.core import Game
from drift.core.labels import among_the_others, log_class_mass
from drift.core.losses import student_loss
from drift.core.softmax import log_softmax
from drift.core.strategy import Response, Strategy
from drift.data.examples import Batch
from drift.methods.method import Backward
from drift.methods.self_training import GameMethod
from drift.settings import Settings


class BondSettings(Settings):
    """When the teacher changes, and which of its answers count."""

    teacher_every: int = Field(100, ge=1, description="Steps after which the student becomes the teacher, R.")
    threshold: float = Field(0.9, ge=0, lt=1, description="Pseudo-labels must be this sure to count, ε.")
    unbalanced_class: int | None = Field(
        None, ge=0, description="A class to leave out of f; for words, 0 is the tag O."
    )
    reinitialize: bool = Field(False, description="Train the student anew, from before the start, for each teacher.")
    unlabeled_weight: float = Field(1.0, ge=0, description="Weight of the self-training term, λ.")
    own_loss: bool = Field(False, description="Keep the model's own term beside it, such as GRAND's consistency.")


@dataclass(frozen=True)
class Selected(Response):
    """ω is 1 where a label is sure enough, else 0; share: how many of the batch are, at every row, `(..., N)`."""

    share: Tensor


@dataclass(frozen=True)
class SureStrategy(Strategy):
    """Squared labels over class frequencies, and only those above the threshold. See `BondSettings`."""

    threshold: float
    unbalanced_class: int | None = None

    @property
    def differentiable(self) -> bool:
        return False

    def respond(self, log_p: Tensor) -> Selected:
        log_f = log_class_mass(log_p)  # (..., 1, C)
        if self.unbalanced_class is not None:
            log_f = among_the_others(log_f, self.unbalanced_class)
        log_y = log_softmax(2 * log_p - log_f)
        sure = log_y.exp().amax(-1)
        omega = (sure >= sure.amax(-1, keepdim=True).clamp(max=self.threshold)).to(log_p)
        return Selected(log_y, omega, omega.mean(-1, keepdim=True).expand_as(omega))

    def loss(self, response: Response, log_q: Tensor) -> Tensor:
        """KL over the share of rows that count: its mean over the batch is the mean over those."""
        assert isinstance(response, Selected)
        return student_loss(response.log_y, response.omega, log_q) / response.share


class Bond(GameMethod):
    """See the module."""

    name = "bond"
    summary = "a frozen teacher's sure answers, squared and balanced; the student takes its place now and then"
    settings_type = BondSettings
    relative_cost = 7 / 3

    def __init__(self, student: nn.Module, settings: BondSettings, **options: Any) -> None:
        game = Game(
            student,
            strategy=SureStrategy(settings.threshold, settings.unbalanced_class),
            unlabeled_weight=settings.unlabeled_weight,
            coupling="detached",
            full_graph=getattr(student, "full_graph", False),
            **options,
        )
        super().__init__(game, own_loss=settings.own_loss)
        self.settings = settings
        untrained = student.state_dict() if settings.reinitialize else {}
        self._untrained = {name: value.detach().clone() for name, value in untrained.items()}

    def loss(self, batch: Batch) -> Tensor:
        self._start_over()
        return super().loss(batch)

    def accumulate(self, batches: Sequence[Batch], *, backward: Backward | None = None) -> Tensor:
        self._start_over()
        return super().accumulate(batches, backward=backward)

    def follow(self) -> None:
        refreshed = (self.game.steps + 1) % self.settings.teacher_every == 0
        self.game.alpha = 0.0 if refreshed else 1.0
        super().follow()

    def _start_over(self) -> None:
        """At the first step of each teacher. Nothing has moved since it came, so a second call changes nothing."""
        if self._untrained and self.game.steps % self.settings.teacher_every == 0:
            self.student.load_state_dict(self._untrained)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "untrained": self._untrained}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._untrained = {name: value.clone() for name, value in state["untrained"].items()}
