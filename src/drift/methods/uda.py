"""UDA, unsupervised data augmentation (Xie et al., 2020): a text and its augmentations should get the same prediction.

    L = L_sup(θ) + λ mean over x of 1[max_j p_j(x) > β] KL(p~(x) ‖ f(x', θ)),   p~ ∝ p^(1/τ),   p = f(x, θ), no gradient

x' is an augmentation of x, from `drift.data.augmentation`. Training-signal annealing leaves a labelled row out of L_sup
while the probability of its class is above η_t, so that a few labels are not overfitted early. L_sup is the mean over
the remaining rows; the consistency term is the mean over all rows:

    η_t = a_t (1 - 1/C) + 1/C,   a_t = t/T (linear), 1 - exp(-5 t/T) (log), exp(5 (t/T - 1)) (exp)

The original settings for texts are λ = 1, τ = 0.85, no β, linear annealing, back-translation, and dropout in both
forward passes; for images τ = 0.4, β = 0.8. With coupling="differentiable" p comes from DRIFT's teacher, the moving
average of the student, and the student anticipates it. The original is the same game with α = 0, so that the teacher
equals the student, and with p treated as a constant.

Differs from paper: the first phase is supervised, as for every method here, so the student has already learnt its
labels; annealing is off by default.
Differs from paper: words are replaced by TF-IDF unless a column or translation models are given. With several views
their losses are averaged. Views are made once, and not again for each epoch.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from drift.core import Game
from drift.core.checks import check_labels, check_pair
from drift.core.forward import log_probabilities
from drift.core.game import Coupling, TeacherMode
from drift.core.losses import supervised_loss
from drift.core.objective import Parts
from drift.core.softmax import log_softmax
from drift.core.strategy import Response, Strategy
from drift.data.augmentation import AugmentationSettings
from drift.data.examples import Batch
from drift.errors import ConfigError
from drift.methods.augmented import augmented
from drift.methods.materials import Materials, Texts
from drift.methods.method import TEXTS, Backward, Context, Method
from drift.methods.self_training import GameMethod

SHARPNESS = 5  # of the log and exp schedules

SCHEDULES: dict[str, Callable[[float], float]] = {
    "none": lambda t: 1.0,
    "linear": lambda t: t,
    "log": lambda t: 1 - math.exp(-SHARPNESS * t),
    "exp": lambda t: math.exp(SHARPNESS * (t - 1)),
}


class UDASettings(AugmentationSettings):
    """Settings of the consistency term and of the annealing."""

    tau: float = Field(
        0.85, gt=0, description="Temperature of the prediction on the original text; values below 1 sharpen."
    )
    threshold: float = Field(
        0.0, ge=0, lt=1, description="Texts whose most likely class has a probability up to this do not count, β."
    )
    unlabeled_weight: float = Field(1.0, ge=0, description="Weight of the consistency term, λ; 1 in the original work.")
    annealing: Literal["none", "linear", "log", "exp"] = Field(
        "none", description="Schedule by which confidently classified labelled texts begin to count; none: always."
    )
    annealing_steps: int = Field(
        400, ge=1, description="Steps until all labelled texts count, T; set it to training.steps."
    )
    teacher_mode: TeacherMode = Field(
        "train", description="Mode of the forward pass on the original text: train (with dropout) or eval."
    )
    coupling: Coupling = Field(
        "detached",
        description="detached: the student's own prediction on the text, treated as a constant, as published;"
        " differentiable: the prediction of DRIFT's teacher, which the student anticipates; shared: the same through"
        " the student's Jacobian, which costs as much here, because the student must predict the text, too.",
    )
    alpha: float = Field(0.9, ge=0, le=1, description="Weight of the old teacher unless coupling is detached.")


@dataclass(frozen=True)
class Confident(Strategy):
    """Labels sharpened row by row; weight 1 if the most likely class is above `threshold`, else 0."""

    tau: float
    threshold: float

    def respond(self, log_p: Tensor) -> Response:
        confident = log_p.max(-1).values.exp() > self.threshold
        return Response(log_softmax(log_p / self.tau), confident.to(log_p.dtype))


class UDA(GameMethod):
    """Consistency between a text and its augmentations. See the module's docstring."""

    name = "uda"
    summary = "unsupervised data augmentation: the same prediction for a text and its augmentations (UDA)"
    settings_type = UDASettings
    needs = frozenset({TEXTS})
    relative_cost = 7 / 3
    settings: UDASettings

    def make_game(self, settings: UDASettings, context: Context) -> Game:
        return Game(
            self.student,
            alpha=settings.alpha if settings.coupling != "detached" else 0.0,
            strategy=Confident(settings.tau, settings.threshold),
            coupling=settings.coupling,
            unlabeled_weight=settings.unlabeled_weight,
            teacher=context.teacher,
            teacher_mode=settings.teacher_mode,
            stacked=context.stacked,
            single_process=context.single_process,
        )

    @classmethod
    def prepare_texts(cls, settings: UDASettings, texts: Texts) -> Materials:
        return augmented(settings, texts)

    def loss(self, batch: Batch) -> Tensor:
        if batch.unlabeled is None:
            self.game.last = None
            return self._annealed(batch).sum()
        response = self.game.respond(batch.unlabeled)
        losses = [
            self.game.strategy.loss(response, log_probabilities(self.student, view, stacked=self.stacked))
            for view in batch.views or (batch.unlabeled,)
        ]
        consistency = torch.stack(losses).mean(0)  # over views
        parts = Parts(self_trained=consistency.detach().mean(-1))
        loss = self.game.unlabeled_weight * self.mean(consistency, batch.unlabeled_total)
        if batch.labeled is not None:
            supervised = self._annealed(batch)
            mean = supervised.detach() * batch.pieces  # undo the division, for micro-batches of equal size
            parts, loss = replace(parts, supervised=mean), supervised + loss
        self.game.last = parts
        return loss.sum()

    def _annealed(self, batch: Batch) -> Tensor:
        """Return L_sup over the labelled rows whose class has a probability of at most η_t, one value per trial."""
        x, y = check_pair(batch.labeled)
        log_q = log_probabilities(self.student, x, stacked=self.stacked)
        losses = supervised_loss(log_q, check_labels(y, log_q))
        if self.settings.annealing == "none":
            return self.mean(losses, batch.labeled_total)
        progress = SCHEDULES[self.settings.annealing](min(1.0, self.game.steps / self.settings.annealing_steps))
        chance = 1 / log_q.shape[-1]
        counts = (-losses).exp() <= progress * (1 - chance) + chance
        counted = self.objective.everywhere(counts.unsqueeze(-1).to(losses)).sum((-2, -1)).clamp(min=1)
        return self.mean(losses * counts, counted) / batch.pieces

    def accumulate(self, batches: Sequence[Batch], *, backward: Backward | None = None) -> Tensor:
        if self.settings.annealing != "none":
            raise ConfigError(
                f"annealing={self.settings.annealing} takes a mean over rows that depend on the whole batch;"
                " set training.exact_accumulation=false, or annealing=none"
            )
        return Method.accumulate(self, batches, backward=backward)  # the loss is a mean over rows, without class masses
