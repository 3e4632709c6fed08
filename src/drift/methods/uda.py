"""UDA, unsupervised data augmentation (Xie et al., 2020): a text and its other forms are to have the same class.

    L = L_sup(θ) + λ mean over x of 1[max_j p_j(x) > β] KL(p~(x) ‖ f(x', θ)),   p~ ∝ p^(1/τ),   p = f(x, θ), no gradient

x' is x in other words, from `drift.data.augmentation`. Training-signal annealing leaves a labelled row out of L_sup
while the class it has is more likely than η_t, so that few labels are not learnt by heart before the rest is learnt;
L_sup is the mean over the rows that are left, the consistency term that over all rows:

    η_t = a_t (1 - 1/C) + 1/C,   a_t = t/T (linear), 1 - exp(-5 t/T) (log), exp(5 (t/T - 1)) (exp)

The original settings for texts: λ = 1, τ = 0.85, no β, linear annealing, back-translation, dropout in both forwards;
for images τ = 0.4, β = 0.8. With coupling="differentiable" p comes from DRIFT's teacher, the moving average of the
student, and the student anticipates it; the original is the same game with a teacher that is the student, α = 0, taken
as given.

Differs from paper: the start is the supervised student of every method here, which has learnt its labels already; so
annealing is off unless asked for.
Differs from paper: words are replaced by TF-IDF unless a column or translation models are given; several views count by
their mean; they are made once, not anew for each epoch.
Differs from paper: a run takes τ and λ from the defaults of its kind of model, on fixed vectors τ = 0.5 and λ = 2.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

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
from drift.methods.method import Backward, Method
from drift.methods.self_training import GameMethod

SHARPNESS = 5  # of the log and exp schedules

SCHEDULES: dict[str, Callable[[float], float]] = {
    "none": lambda t: 1.0,
    "linear": lambda t: t,
    "log": lambda t: 1 - math.exp(-SHARPNESS * t),
    "exp": lambda t: math.exp(SHARPNESS * (t - 1)),
}


class UDASettings(AugmentationSettings):
    """What consistency is asked for."""

    tau: float = Field(0.85, gt=0, description="Temperature of the answer on the text itself, below 1 sharpens.")
    threshold: float = Field(
        0.0, ge=0, lt=1, description="Texts whose likeliest class is less likely do not count; β there."
    )
    unlabeled_weight: float = Field(1.0, ge=0, description="Weight of the consistency term; λ there, and 1.")
    annealing: Literal["none", "linear", "log", "exp"] = Field(
        "none", description="How soon labelled texts count that are classified with confidence already; none: always."
    )
    annealing_steps: int = Field(400, ge=1, description="Steps until all labelled texts count; best training.steps.")
    teacher_mode: TeacherMode = Field("train", description="Whether the text itself is read with dropout (train).")
    coupling: Coupling = Field(
        "detached",
        description="detached takes the student's own answer on the text as given, as published; differentiable takes"
        " that of DRIFT's teacher, and the student anticipates it.",
    )
    alpha: float = Field(0.9, ge=0, le=1, description="Of coupling differentiable: weight of the old teacher.")


@dataclass(frozen=True)
class Confident(Strategy):
    """Sharpened labels, each for itself, and weight 1 where a class is likelier than `threshold`, else 0."""

    tau: float
    threshold: float

    def respond(self, log_p: Tensor) -> Response:
        confident = log_p.max(-1).values.exp() > self.threshold
        return Response(log_softmax(log_p / self.tau), confident.to(log_p.dtype))


class UDA(GameMethod):
    """See the module."""

    name = "uda"
    summary = "unsupervised data augmentation: the same answer on a text and on the text in other words"
    settings_type = UDASettings
    tasks = ("text",)
    relative_cost = 7 / 3

    def __init__(
        self,
        student: nn.Module,
        settings: UDASettings,
        *,
        teacher: nn.Module | None = None,
        stacked: bool = False,
        single_process: bool = False,
    ) -> None:
        self.settings = settings
        game = Game(
            student,
            alpha=settings.alpha if settings.coupling == "differentiable" else 0.0,
            strategy=Confident(settings.tau, settings.threshold),
            coupling=settings.coupling,
            unlabeled_weight=settings.unlabeled_weight,
            teacher=teacher,
            teacher_mode=settings.teacher_mode,
            stacked=stacked,
            single_process=single_process,
        )
        super().__init__(game)

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
            told = supervised.detach() * batch.pieces  # a mean again, of pieces of one size
            parts, loss = replace(parts, supervised=told), supervised + loss
        self.game.last = parts
        return loss.sum()

    def _annealed(self, batch: Batch) -> Tensor:
        """L_sup over the labelled rows whose class is not more likely than η_t yet, one value a trial."""
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
                f"annealing={self.settings.annealing} is a mean over rows that only a whole batch knows;"
                " set training.exact_accumulation=false, or annealing=none"
            )
        return Method.accumulate(self, batches, backward=backward)  # a mean over rows: the game's masses are not in it
