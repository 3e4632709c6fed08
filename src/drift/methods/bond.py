"""BOND (Liang et al., 2020), second stage: self-training on a frozen teacher's confident labels, squared and balanced.

    ỹ_j ∝ p_j² / f_j,   f_j = Σ p_j,   p = f(x, θT)
    L = L_sup(θS) + λ mean over {x : max_j ỹ_j ≥ ε} of KL(ỹ ‖ f(x, θS));   every R steps θT <- θS

The teacher does not change between refreshes. In the original work ε is 0.9, and R is 450 steps of 16 sentences on
CoNLL-03 and 700 on Wikigold. With `reinitialize`, which its published runs leave off, θS returns to its untrained
weights whenever the teacher is refreshed. These weights are copied when the method is constructed, and saved with it.
The student is reset just before the next step, so that dev evaluations and the end of a run use the trained student.

Differs from paper: f_j is summed over the batch, as in the published code; the paper's equation sums over all rows.
Differs from paper: with `unbalanced_class`, f is 1 for that class, and f of the others is divided by their mean. Most
words belong to no entity; dividing by the frequency of that class would turn too many words into entities.
Differs from paper: if no row of a batch reaches ε, its most confident row counts; otherwise the step would have no
loss.
Differs from paper: the published code computes the divergence with unnormalised logits; here they are normalised.
Differs from paper: labelled rows with gold labels keep their supervised term.
Differs from paper: R is 100, because a run here has hundreds of steps.
Differs from paper: after `reinitialize` the optimiser and its schedule continue; the original creates new ones. Adam's
average of gradients forgets old values within about ten steps. Its average of squared gradients takes about a thousand:
if the old gradients were smaller, steps are larger during that time, by Adam's bound up to 7.3 times the learning rate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field
from torch import Tensor, nn

from drift.core import Game
from drift.core.labels import among_the_others, log_class_mass
from drift.core.losses import student_loss
from drift.core.softmax import log_softmax
from drift.core.strategy import Response, Strategy
from drift.data.examples import Batch
from drift.methods.method import Backward, Context
from drift.methods.self_training import GameMethod
from drift.models.protocols import computes_full_graph
from drift.settings import Settings


class BondSettings(Settings):
    """When the teacher is refreshed, and which of its labels count."""

    renamed: ClassVar[Mapping[str, str]] = {"spared": "unbalanced_class"}

    teacher_every: int = Field(100, ge=1, description="Steps after which the student becomes the teacher, R.")
    threshold: float = Field(0.9, ge=0, lt=1, description="Minimum probability of a pseudo-label to count, ε.")
    unbalanced_class: int | None = Field(
        None, ge=0, description="Index of a class to exclude from the balancing; for token tagging, 0 is the tag O."
    )
    reinitialize: bool = Field(
        False, description="Reset the student to its untrained weights whenever the teacher is refreshed."
    )
    unlabeled_weight: float = Field(1.0, ge=0, description="Weight of the self-training term, λ.")
    own_loss: bool = Field(
        False, description="Add the model's own regulariser to the loss, such as GRAND's consistency."
    )


@dataclass(frozen=True)
class Selected(Response):
    """ω is 1 where a label is confident enough, else 0. share: fraction of such rows, repeated per row, `(..., N)`."""

    share: Tensor


@dataclass(frozen=True)
class SureStrategy(Strategy):
    """Squared labels divided by class frequencies; only those above the threshold count. See `BondSettings`."""

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
        confidence = log_y.exp().amax(-1)
        omega = (confidence >= confidence.amax(-1, keepdim=True).clamp(max=self.threshold)).to(log_p)
        return Selected(log_y, omega, omega.mean(-1, keepdim=True).expand_as(omega))

    def loss(self, response: Response, log_q: Tensor) -> Tensor:
        """Return KL divided by the fraction of rows that count: the batch mean is then the mean over those rows."""
        assert isinstance(response, Selected)
        return student_loss(response.log_y, response.omega, log_q) / response.share


class Bond(GameMethod):
    """BOND's second stage. See the module's docstring."""

    name = "bond"
    summary = "confident labels of a frozen teacher, squared and balanced; the student replaces it every R steps (BOND)"
    settings_type = BondSettings
    relative_cost = 7 / 3
    settings: BondSettings

    def __init__(self, student: nn.Module, settings: BondSettings, context: Context = Context()) -> None:
        super().__init__(student, settings, context)
        untrained = student.state_dict() if settings.reinitialize else {}
        self._untrained = {name: value.detach().clone() for name, value in untrained.items()}

    def make_game(self, settings: BondSettings, context: Context) -> Game:
        return Game(
            self.student,
            strategy=SureStrategy(settings.threshold, settings.unbalanced_class),
            unlabeled_weight=settings.unlabeled_weight,
            coupling="detached",
            teacher=context.teacher,
            full_graph=computes_full_graph(self.student),
            stacked=context.stacked,
            single_process=context.single_process,
        )

    def loss(self, batch: Batch) -> Tensor:
        self._start_over()
        return super().loss(batch)

    def accumulate(self, batches: Sequence[Batch], *, backward: Backward | None = None) -> Tensor:
        self._start_over()
        return super().accumulate(batches, backward=backward)

    def follow(self) -> None:
        self.copy_every(self.settings.teacher_every)
        super().follow()

    def _start_over(self) -> None:
        """Reset the student at the first step of each teacher; a second call before that step changes nothing."""
        if self._untrained and self.game.steps % self.settings.teacher_every == 0:
            self.student.load_state_dict(self._untrained)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "untrained": self._untrained}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._untrained = {name: value.clone() for name, value in state["untrained"].items()}
