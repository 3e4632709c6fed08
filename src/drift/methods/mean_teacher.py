"""Mean teacher (Tarvainen and Valpola, 2017): student and averaged teacher should agree, each under its own dropout.

    L = L_sup(θS) + w(t) mean ‖f(x, θT, η') - f(x, θS, η)‖² / C,   θT <- α θT + (1 - α) θS
    w(t) = w exp(-5 (1 - t/R)²) for t < R, then w;   α is larger after R than before

η and η' are dropout noise; the teacher's predictions are treated as constants. In the original work w is 100 (with a
supervised term that is a mean over labelled rows), R is 40,000 of 150,000 steps, and α is 0.99, then 0.999.

Differs from paper: predictions come from the student, as for every method here; the paper predicts with the teacher.
Differs from paper: dropout is the only noise; the paper also shifts and flips images and adds noise to them.
Differs from paper: labelled rows have no consistency term, as in the paper's runs with few labels (SVHN).
Differs from paper: with weak labels, L_sup ends with the first phase unless `training.keep_weak_labels` is set, as it
is in the paper's tables.
Differs from paper: R is 100 steps, and α is 0.9, then 0.99, because a run here has hundreds of steps and not 150,000.
"""

import math
from collections.abc import Sequence

import torch
from pydantic import Field
from torch import Tensor

from drift.core import Game
from drift.core.strategy import Response, Strategy
from drift.data.examples import Batch
from drift.methods.method import Backward, Context
from drift.methods.self_training import GameMethod
from drift.models.protocols import computes_full_graph
from drift.settings import Settings


class MeanTeacherSettings(Settings):
    """Weight of the consistency term, and speed of the teacher."""

    consistency_weight: float = Field(100.0, ge=0, description="Final weight of the consistency term, w.")
    ramp_steps: int = Field(
        100, ge=0, description="Steps over which that weight rises, R; 40,000 of 150,000 in the original work."
    )
    early_alpha: float = Field(
        0.9, ge=0, le=1, description="Weight of the old teacher during those steps; 0.99 in the original work."
    )
    late_alpha: float = Field(
        0.99, ge=0, le=1, description="Weight of the old teacher after those steps; 0.999 in the original work."
    )
    own_loss: bool = Field(
        False, description="Add the model's own regulariser to the loss, such as GRAND's consistency."
    )


class Consistency(Strategy):
    """The teacher's probabilities, unchanged, and the squared distance to them."""

    def respond(self, log_p: Tensor) -> Response:
        return Response(log_p, torch.ones_like(log_p[..., 0]))

    def loss(self, response: Response, log_q: Tensor) -> Tensor:
        """Return ‖p - q‖² / C, `(..., N)`."""
        return (response.log_y.exp() - log_q.exp()).square().mean(-1)


class MeanTeacher(GameMethod):
    """Consistency with a moving-average teacher. See the module's docstring."""

    name = "mean-teacher"
    summary = "consistency with a moving-average teacher, student and teacher each under their own dropout"
    settings_type = MeanTeacherSettings
    relative_cost = 7 / 3
    head_dropout = 0.5
    settings: MeanTeacherSettings

    def make_game(self, settings: MeanTeacherSettings, context: Context) -> Game:
        return Game(
            self.student,
            strategy=Consistency(),
            coupling="detached",
            teacher=context.teacher,
            teacher_mode="train",
            full_graph=computes_full_graph(self.student),
            stacked=context.stacked,
            single_process=context.single_process,
        )

    @property
    def ramp(self) -> float:
        """Current fraction of the final consistency weight, w(t) / w."""
        return ramp(self.game.steps, self.settings.ramp_steps)

    def loss(self, batch: Batch) -> Tensor:
        self.game.unlabeled_weight = self.settings.consistency_weight * self.ramp
        return super().loss(batch)

    def accumulate(self, batches: Sequence[Batch], *, backward: Backward | None = None) -> Tensor:
        self.game.unlabeled_weight = self.settings.consistency_weight * self.ramp
        return super().accumulate(batches, backward=backward)

    def follow(self) -> None:
        settings = self.settings
        self.game.alpha = settings.early_alpha if self.game.steps < settings.ramp_steps else settings.late_alpha
        super().follow()


def ramp(step: int, length: int) -> float:
    """Return exp(-5 (1 - t)²), where t = min(1, step / length): a weight that rises to 1 over `length` steps."""
    return math.exp(-5 * (1 - min(1.0, step / length)) ** 2) if length else 1.0
