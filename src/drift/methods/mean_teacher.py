"""Mean teacher (Tarvainen and Valpola, 2017): the student answers as its moving average does, each under its own noise.

    L = L_sup(θS) + w(t) mean ‖f(x, θT, η') - f(x, θS, η)‖² / C,   θT <- α θT + (1 - α) θS
    w(t) = w exp(-5 (1 - t/R)²) for t < R, then w;   α is larger after R than before

η and η' are dropout; the teacher's answers are taken as given. In the original work w is 100 beside a supervised term
that is a mean over labelled rows, R is 40,000 of 150,000 steps, and α is 0.99, then 0.999.

Differs from paper: predictions are the student's, as those of every method here; the paper's are the teacher's.
Differs from paper: dropout is the only noise; images were shifted, flipped and had noise added too.
Differs from paper: labelled rows have no consistency term, as in the paper's runs with few labels (SVHN).
Differs from paper: R is 100 steps, and α is 0.9, then 0.99, as there are hundreds of steps here and not 150,000.
"""

from collections.abc import Sequence
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from drift.core import Game
from drift.core.strategy import Response, Strategy
from drift.data.examples import Batch
from drift.methods.method import Backward
from drift.methods.schedules import ramp
from drift.methods.self_training import GameMethod
from drift.settings import Settings


class MeanTeacherSettings(Settings):
    """How much agreement counts, and how slowly the teacher moves."""

    consistency_weight: float = Field(100.0, ge=0, description="Weight of the consistency term at its full height, w.")
    ramp_steps: int = Field(100, ge=0, description="Steps over which that weight rises, R; 40,000 of 150,000 there.")
    early_alpha: float = Field(
        0.9, ge=0, le=1, description="Weight of the old teacher while that weight rises; 0.99 there."
    )
    late_alpha: float = Field(0.99, ge=0, le=1, description="Weight of the old teacher after that; 0.999 there.")
    own_loss: bool = Field(False, description="Keep the model's own term beside it, such as GRAND's consistency.")


class Consistency(Strategy):
    """The teacher's probabilities as they are, and the squared distance to them."""

    def respond(self, log_p: Tensor) -> Response:
        return Response(log_p, torch.ones_like(log_p[..., 0]))

    def loss(self, response: Response, log_q: Tensor) -> Tensor:
        """‖p - q‖² / C, `(..., N)`."""
        return (response.log_y.exp() - log_q.exp()).square().mean(-1)


class MeanTeacher(GameMethod):
    """See the module."""

    name = "mean-teacher"
    summary = "agreement with a moving-average teacher, each under dropout of its own"
    settings_type = MeanTeacherSettings
    relative_cost = 7 / 3
    head_dropout = 0.5

    def __init__(self, student: nn.Module, settings: MeanTeacherSettings, **options: Any) -> None:
        game = Game(
            student,
            strategy=Consistency(),
            coupling="detached",
            teacher_mode="train",
            full_graph=getattr(student, "full_graph", False),
            **options,
        )
        super().__init__(game, own_loss=settings.own_loss)
        self.settings = settings

    @property
    def ramp(self) -> float:
        """The share of its full weight that consistency has now: exp(-5 (1 - t/R)²)."""
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
