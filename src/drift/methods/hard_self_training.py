"""Hard self-training (pseudo-labels, Lee, 2013): the teacher's most likely class serves as the label.

    L = L_sup(θS) + λ mean -log f_ŷ(x, θS),   ŷ = argmax_j f_j(x, θT),   θT <- α θT + (1 - α) θS   (the paper's Eq. 5)

Every row has weight 1, however uncertain the teacher is. With α = 0, the default, the student labels its own rows, as
in Lee. With `copy_every` the teacher is a copy of the student that is renewed every so many steps, θT <- θS, and does
not change in between, as in self-training in rounds (Rosenberg et al., 2005).

Differs from paper: Lee increases λ slowly from 0; here the student has finished its first phase, on labelled rows,
before any pseudo-label is used.
"""

from pydantic import Field

from drift.core import Game
from drift.core.game import PseudoLabel, TeacherMode
from drift.core.strategy import HardStrategy
from drift.methods.method import Context
from drift.methods.self_training import GameMethod
from drift.models.protocols import computes_full_graph
from drift.settings import Settings


class HardSelfTrainingSettings(Settings):
    """Settings of the game."""

    alpha: float = Field(
        0.0, ge=0, le=1, description="Weight of the old teacher in the average; 0: the student labels its own rows."
    )
    copy_every: int | None = Field(
        None, ge=1, description="Steps after which the teacher becomes a copy of the student, in place of an average."
    )
    pseudo_label: PseudoLabel = Field("unlabeled", description="Which rows get pseudo-labels: unlabeled or all.")
    unlabeled_weight: float = Field(1.0, ge=0, description="Weight of the self-training term, λ.")
    own_loss: bool = Field(
        False, description="Add the model's own regulariser to the loss, such as GRAND's consistency."
    )
    teacher_mode: TeacherMode = Field(
        "eval", description="Mode of the teacher's forward pass: eval, or train (with dropout)."
    )


class HardSelfTraining(GameMethod):
    """Self-training on hard pseudo-labels. See the module's docstring."""

    name = "hard-self-training"
    summary = "conventional self-training: the student's most likely class, or a copied or averaged teacher's"
    settings_type = HardSelfTrainingSettings
    relative_cost = 7 / 3
    settings: HardSelfTrainingSettings

    def make_game(self, settings: HardSelfTrainingSettings, context: Context) -> Game:
        return Game(
            self.student,
            **settings.model_dump(exclude={"own_loss", "copy_every"}),
            strategy=HardStrategy(),
            coupling="detached",
            teacher=context.teacher,
            full_graph=computes_full_graph(self.student),
            stacked=context.stacked,
            single_process=context.single_process,
        )

    def follow(self) -> None:
        if self.settings.copy_every is not None:
            self.copy_every(self.settings.copy_every)
        super().follow()
