"""MixText (Chen et al., 2020): hidden states of labelled, unlabelled and augmented texts are mixed, and labels alike.

    ŷ ∝ p̄^(1/τ),   p̄ ∝ Σ_k w_k f(x_k, θ)                   guessed from a text and its other forms, without a gradient
    h = λ h_i + (1 - λ) h_j,   y = λ y_i + (1 - λ) y_j      TMix, at one layer; λ ~ Beta(a, a), at least 1/2
    L = mean CE(y, f(h)) over labelled i + c(t) [ λ_u mean KL(y ‖ f(h)) over the others i + λ_m L_margin ]
    L_margin = mean over unlabelled x of max(0, γ - ‖f(x, θ)‖²)

Texts of all three kinds are mixed with one another. A step draws one λ and one layer, the 7th, 9th or 12th of BERT's.
Other forms come from `drift.data.augmentation`. Settings of the original recipe: a = 16, τ = 0.5, λ_u = 1, λ_m = 0
(γ = 0.7), two translations with weights w by their quality, c(t) rising to 1 over all of training. With
coupling="differentiable" the guesses come from DRIFT's teacher, the moving average of the student, and the student
anticipates them; the original is the same game with a teacher that is the student, α = 0, taken as given.

Differs from paper: layers are scaled to the depth of the encoder; fixed vectors, and texts in TextCNN, are mixed where
the last layer reads them.
Differs from paper: texts of two lengths are mixed as far as both go, see `drift.models.hidden`; the original mixes
padding along and attends to it.
Differs from paper: c(t) rises over `ramp_steps`, and labels are guessed without dropout.
Differs from paper: L_margin is as it is written there; the authors' code has the entropy in its place.
Differs from paper: the start is the supervised student of every method here; words are replaced by TF-IDF unless a
column or translation models are given.
"""

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from drift.core import Game, Parts
from drift.core.checks import check_pair
from drift.core.forward import Inputs
from drift.core.game import Coupling
from drift.data.augmentation import AugmentationSettings
from drift.data.examples import Batch
from drift.errors import ConfigError
from drift.methods.augmented import augmented
from drift.methods.materials import Materials, Texts
from drift.methods.method import Backward
from drift.methods.self_training import GameMethod
from drift.models.hidden import class_count, depth, mixed_log_probabilities

OF_TWELVE = 12  # layers of the encoder that `layers` are counted in


class MixTextSettings(AugmentationSettings):
    """How texts are mixed, and how labels are guessed."""

    layers: tuple[Annotated[int, Field(ge=1, le=OF_TWELVE)], ...] = Field(
        (7, 9, 12), min_length=1, description="Where to mix, of twelve layers; scaled to those of the encoder."
    )
    beta: float = Field(16.0, gt=0, description="Of the distribution of shares; high ones mix half and half.")
    tau: float = Field(0.5, gt=0, description="Temperature of guessed labels, below 1 sharpens; T there.")
    weights: tuple[Annotated[float, Field(ge=0)], ...] | None = Field(
        None, description="In a guessed label: of the text itself, then of each of its views; alike if left out."
    )
    unlabeled_weight: float = Field(1.0, ge=0, description="Of texts with guessed labels; λ_u there.")
    ramp_steps: int = Field(100, ge=1, description="Steps over which the weight of unlabelled texts rises.")
    margin: float = Field(0.7, ge=0, le=1, description="Up to which squared norm predictions are made surer; γ.")
    margin_weight: float = Field(0.0, ge=0, description="Of the term that makes them surer; 0 spares its forward.")
    coupling: Coupling = Field(
        "detached",
        description="detached takes the student's own guesses as given, as published; differentiable takes those of"
        " DRIFT's teacher, and the student anticipates them.",
    )
    alpha: float = Field(0.9, ge=0, le=1, description="Of coupling differentiable: weight of the old teacher.")

    @model_validator(mode="after")
    def _a_weight_each(self) -> "MixTextSettings":
        forms = 1 + (len(self.column) if self.augment == "column" else self.views)
        if self.weights is not None and (len(self.weights) != forms or not sum(self.weights)):
            raise ValueError(f"weights={self.weights}: give {forms}, the text's own and one a view, not all 0")
        return self


class MixText(GameMethod):
    """See the module."""

    name = "mixtext"
    summary = "hidden states of labelled, unlabelled and augmented texts mixed, and labels with them"
    settings_type = MixTextSettings
    tasks = ("text",)
    relative_cost = 11 / 3  # labelled, unlabelled and one view learnt from; guesses on the last two

    def __init__(
        self,
        student: nn.Module,
        settings: MixTextSettings,
        *,
        teacher: nn.Module | None = None,
        stacked: bool = False,
        single_process: bool = False,
    ) -> None:
        game = Game(
            student,
            alpha=settings.alpha if settings.coupling == "differentiable" else 0.0,
            tau=1.0,
            class_mass=False,
            reweight=False,  # with these three the response is the teacher's prediction itself
            coupling=settings.coupling,
            teacher=teacher,
            stacked=stacked,
            single_process=single_process,
        )
        super().__init__(game)
        self.settings = settings
        self.layers = [math.ceil(layer * depth(student) / OF_TWELVE) for layer in settings.layers]

    @classmethod
    def prepare_texts(cls, settings: MixTextSettings, texts: Texts) -> Materials:
        return augmented(settings, texts)

    def loss(self, batch: Batch) -> Tensor:
        parts: list[tuple[Inputs, Tensor]] = []  # inputs and their labels (..., N, C)
        labeled = 0
        if batch.labeled is not None:
            x, y = check_pair(batch.labeled)
            parts, labeled = [(x, nn.functional.one_hot(y, class_count(self.student)))], y.shape[-1]
        if batch.unlabeled is not None:
            forms = (batch.unlabeled, *batch.views)
            guess = self.guess(forms)
            parts += [(form, guess) for form in forms]
        inputs, target = [each for each, _ in parts], torch.cat([each for _, each in parts], dim=-2)
        share, layer, order = self._draw(target.shape[-2])
        order = order.to(target.device)
        target = share * target + (1 - share) * target.index_select(-2, order)
        if self.settings.margin_weight and batch.unlabeled is not None:  # once more, each mixed with itself
            inputs.append(batch.unlabeled)
            order = torch.cat([order, len(order) + torch.arange(guess.shape[-2], device=order.device)])
        log_q = mixed_log_probabilities(self.student, inputs, layer, share, order, stacked=self.stacked)
        return self._score(target, log_q, labeled, batch)

    def guess(self, forms: Sequence[Inputs]) -> Tensor:
        """Labels of texts from their forms, the text itself first: `(..., N, C)`."""
        weights = self.settings.weights or (1.0,) * len(forms)
        asked = [(form, weight) for form, weight in zip(forms, weights, strict=True) if weight]
        log_p = self.game.respond(*(form for form, _ in asked)).log_y.chunk(len(asked), dim=-2)
        weighted = [each + math.log(weight) for each, (_, weight) in zip(log_p, asked, strict=True)]
        return (torch.stack(weighted).logsumexp(0) / self.settings.tau).softmax(-1)

    def _draw(self, rows: int) -> tuple[float, int, Tensor]:
        """One share, layer and order for all trials: each is mixed as if it were alone."""
        generator = np.random.default_rng(int(torch.randint(2**62, ())))  # torch draws Beta from no generator of ours
        share = generator.beta(self.settings.beta, self.settings.beta)
        layer = int(generator.choice(self.layers))
        return max(share, 1 - share), layer, torch.from_numpy(generator.permutation(rows))

    def _score(self, target: Tensor, log_q: Tensor, labeled: int, batch: Batch) -> Tensor:
        """The loss of mixed rows, the first `labeled` of them, and after them the rows of the margin, not mixed."""
        settings, rows = self.settings, target.shape[-2]
        losses, parts = [], {}
        cross_entropy = -(target * log_q[..., :rows, :]).sum(-1)
        if labeled:
            parts["supervised"] = cross_entropy[..., :labeled].detach().mean(-1)
            losses.append(self.mean(cross_entropy[..., :labeled], batch.labeled_total))
        if labeled < rows:
            guessed = target[..., labeled:, :]
            # 0 log 0 = 0, with a finite gradient
            log_guessed = guessed.clamp(min=torch.finfo(guessed.dtype).tiny).log()
            divergence = (guessed * log_guessed).sum(-1) + cross_entropy[..., labeled:]
            total = batch.unlabeled_total and batch.unlabeled_total * (1 + len(batch.views))
            guessing = settings.unlabeled_weight * self.mean(divergence, total)
            parts["self_trained"] = settings.unlabeled_weight * divergence.detach().mean(-1)
            if settings.margin_weight:
                norm = log_q[..., rows:, :].exp().square().sum(-1)
                hinge = (settings.margin - norm).clamp(min=0)
                guessing = guessing + settings.margin_weight * self.mean(hinge, batch.unlabeled_total)
                parts["self_trained"] = parts["self_trained"] + settings.margin_weight * hinge.detach().mean(-1)
            losses.append(min(1.0, (self.game.steps + 1) / settings.ramp_steps) * guessing)
        self.game.last = Parts(**parts)
        return torch.stack(losses).sum()

    def accumulate(self, batches: Sequence[Batch], *, backward: Backward | None = None) -> Tensor:
        raise ConfigError(
            "mixtext mixes texts of a whole batch, whose micro-batches are not there at once;"
            " set training.exact_accumulation=false to mix within each"
        )
