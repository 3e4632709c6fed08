"""Self-training and DRIFT: the same game, with the student blind to its teacher's answer or anticipating it.

    L = L_sup(θS) + λ mean ω KL(ỹ ‖ f(x, θS)),   ỹ and ω from the teacher, θT <- α θT + (1 - α) θS

Self-training takes ỹ and ω as given; DRIFT (the paper's Eqs. 3, 4 and 9) adds the gradient through the teacher,
(1 - α) ∂L/∂θT. Semi-supervised batches have both terms; weakly supervised ones have no labelled part after the start.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from drift.core import Game
from drift.core.forward import Inputs
from drift.core.game import Coupling, PseudoLabel, TeacherMode
from drift.data.examples import Batch
from drift.methods.method import Backward, Method
from drift.settings import Settings


class SelfTrainingSettings(Settings):
    """What the game is played with."""

    alpha: float = Field(0.9, ge=0, le=1, description="Weight of the old teacher in the average; α in the paper.")
    tau: float = Field(0.5, gt=0, description="Temperature of the pseudo-labels, below 1 sharpens; τ in the paper.")
    class_mass: bool = Field(True, description="Balance the pseudo-labels of a batch by class.")
    prior: tuple[float, ...] | None = Field(None, description="Class shares to balance towards; uniform if left out.")
    unbalanced_class: int | None = Field(
        None, ge=0, description="A class to leave out of the balance; for words, 0 is the tag O."
    )
    reweight: bool = Field(True, description="Weigh examples by how sure the teacher is; ω in the paper.")
    differentiate_labels: bool = Field(True, description="DRIFT anticipates the labels; DrPL in the paper.")
    differentiate_weights: bool = Field(True, description="DRIFT anticipates the weights; DrW in the paper.")
    pseudo_label: PseudoLabel = Field("unlabeled", description="Which rows get pseudo-labels: unlabeled, or all.")
    unlabeled_weight: float = Field(1.0, ge=0, description="Weight of the self-training term; 1 in the paper.")
    own_loss: bool = Field(False, description="Keep the model's own term beside the game, such as GRAND's consistency.")
    teacher_mode: TeacherMode = Field("eval", description="Whether the teacher answers with dropout (train) or not.")


class GameMethod(Method):
    """Any game as a method."""

    has_teacher = True

    def __init__(self, game: Game, *, own_loss: bool = False) -> None:
        super().__init__(game.student, None, stacked=game.stacked, single_process=game.single_process)
        self.game, self.own_loss = game, own_loss

    @property
    def teacher(self) -> nn.Module:
        return self.game.teacher

    def start(self, probe: Inputs = None) -> None:
        self.game.reset()
        self.game.probe = probe

    def loss(self, batch: Batch) -> Tensor:
        loss = self.game.loss(unlabeled=batch.unlabeled, labeled=batch.labeled, totals=batch.totals)
        own = self._own_term()
        return loss if own is None else loss + own

    def _own_term(self) -> Tensor | None:
        """What the model adds to any loss, of all trials; None if it has no such term, or it is not asked for."""
        regularizer = getattr(self.student, "regularizer", None) if self.own_loss else None
        return None if regularizer is None else torch.as_tensor(regularizer().sum())

    def backward(self, loss: Tensor, *, backward: Backward | None = None, merge: bool = True) -> None:
        self.game.backward(loss, backward=backward, merge=merge)

    def accumulate(self, batches: Sequence[Batch], *, backward: Backward | None = None) -> Tensor:
        own = self._own_term()
        if own is not None:
            (backward or torch.autograd.backward)(own)  # before the game's, which notes the gradients as complete
        loss = self.game.accumulate(
            [{"unlabeled": batch.unlabeled, "labeled": batch.labeled} for batch in batches], backward=backward
        )
        return loss if own is None else loss + own.detach()

    def follow(self) -> None:
        self.game.follow()

    def diagnostics(self) -> dict[str, Any]:
        last = self.game.last
        if last is None or last.self_trained is None:
            return {}
        parts = {"self_trained": float(last.self_trained.mean())}
        if last.supervised is not None:
            parts["supervised"] = float(last.supervised.mean())
        return {**parts, **self.game.diagnostics().as_dict()}

    def probe_labels(self) -> Tensor | None:
        return self.game.probe_labels

    def state_dict(self) -> dict[str, Any]:
        return self.game.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.game.load_state_dict(state)


class SelfTraining(GameMethod):
    """Conventional self-training with soft, balanced labels and a moving-average teacher."""

    name = "self-training"
    summary = "soft pseudo-labels from a moving-average teacher, taken as given"
    settings_type = SelfTrainingSettings
    relative_cost = 7 / 3
    coupling: Coupling = "detached"

    def __init__(
        self,
        student: nn.Module,
        settings: SelfTrainingSettings,
        *,
        teacher: nn.Module | None = None,
        stacked: bool = False,
        single_process: bool = False,
    ) -> None:
        game = Game(
            student,
            **settings.model_dump(exclude={"own_loss"}),
            coupling=self.coupling,
            teacher=teacher,
            full_graph=getattr(student, "full_graph", False),
            stacked=stacked,
            single_process=single_process,
        )
        super().__init__(game, own_loss=settings.own_loss)


class Drift(SelfTraining):
    """Differentiable self-training: the student anticipates its teacher's answer. The paper's method."""

    name = "drift"
    summary = "differentiable self-training: the student anticipates how its teacher will answer (the paper)"
    relative_cost = 3
    coupling = "differentiable"
