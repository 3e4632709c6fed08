"""Hard self-training (pseudo-labels of Lee, 2013): a teacher's most likely class is taken for the truth.

    L = L_sup(θS) + λ mean -log f_ŷ(x, θS),   ŷ = argmax_j f_j(x, θT),   θT <- α θT + (1 - α) θS   (the paper's Eq. 5)

Every row counts fully, however unsure the teacher is. α = 0 labels with the student itself, as Lee does.

Differs from paper: Lee raises λ slowly from 0; here the student has found its start before there are pseudo-labels.
"""

from typing import Any

from pydantic import Field
from torch import nn

from drift.core import Game
from drift.core.game import PseudoLabel, TeacherMode
from drift.core.strategy import HardStrategy
from drift.methods.self_training import GameMethod
from drift.settings import Settings


class HardSelfTrainingSettings(Settings):
    """What the game is played with."""

    alpha: float = Field(0.9, ge=0, le=1, description="Weight of the old teacher in the average.")
    pseudo_label: PseudoLabel = Field("unlabeled", description="Which rows get pseudo-labels: unlabeled, or all.")
    unlabeled_weight: float = Field(1.0, ge=0, description="Weight of the self-training term, λ.")
    own_loss: bool = Field(False, description="Keep the model's own term beside the game, such as GRAND's consistency.")
    teacher_mode: TeacherMode = Field("eval", description="Whether the teacher answers with dropout (train) or not.")


class HardSelfTraining(GameMethod):
    """See the module."""

    name = "hard-self-training"
    summary = "hard pseudo-labels: the most likely class by a moving-average teacher, taken for the truth"
    settings_type = HardSelfTrainingSettings
    relative_cost = 7 / 3

    def __init__(self, student: nn.Module, settings: HardSelfTrainingSettings, **options: Any) -> None:
        game = Game(
            student,
            **settings.model_dump(exclude={"own_loss"}),
            strategy=HardStrategy(),
            coupling="detached",
            full_graph=getattr(student, "full_graph", False),
            **options,
        )
        super().__init__(game, own_loss=settings.own_loss)
