"""MixText (Chen et al., 2020): mixes hidden states and labels of labelled, unlabelled and augmented texts.

    ŷ ∝ p̄^(1/τ),   p̄ ∝ Σ_k w_k f(x_k, θ)                   guessed from a text and its augmentations, without a gradient
    h = λ h_i + (1 - λ) h_j,   y = λ y_i + (1 - λ) y_j      TMix, at one layer; λ ~ Beta(a, a), at least 1/2
    L = mean CE(y, f(h)) over labelled i + c(t) [ λ_u mean KL(y ‖ f(h)) over the others i + λ_m L_margin ]
    L_margin = mean over unlabelled x of max(0, γ - ‖f(x, θ)‖²)

Any text may be mixed with any other. One λ and one layer are drawn per step; the layer is the 7th, 9th or 12th of BERT.
Augmentations come from `drift.data.augmentation`. Settings of the original recipe: a = 16, τ = 0.5, λ_u = 1, λ_m = 0
(γ = 0.7), two translations weighted by their quality (w), c(t) rising to 1 over all of training. With
coupling="differentiable" the guesses come from DRIFT's teacher, the moving average of the student, and the student
anticipates them. The original is the same game with α = 0, so that the teacher equals the student, and with guesses
treated as constants.

Differs from paper: layers are scaled to the depth of the encoder. Fixed vectors, and texts in TextCNN, are mixed at the
input of the last layer.
Differs from paper: texts of different lengths are mixed up to the length of the shorter, see `drift.models.hidden`; the
original also mixes padding, and attends to it.
Differs from paper: c(t) rises over `ramp_steps`, and labels are guessed without dropout.
Differs from paper: L_margin is as written in the paper; the authors' code uses the entropy instead.
Differs from paper: the first phase is supervised, as for every method here. Words are replaced by TF-IDF unless a
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
from drift.methods.method import TEXTS, Backward, Context
from drift.methods.self_training import GameMethod
from drift.models.hidden import class_count, depth, mixed_log_probabilities

BERT_LAYERS = 12  # `layers` are numbered as in an encoder of this depth


class MixTextSettings(AugmentationSettings):
    """How texts are mixed, and how labels are guessed."""

    layers: tuple[Annotated[int, Field(ge=1, le=BERT_LAYERS)], ...] = Field(
        (7, 9, 12),
        min_length=1,
        description="Layers at which to mix, numbered 1 to 12; scaled to the depth of the encoder.",
    )
    beta: float = Field(
        16.0, gt=0, description="Parameter a of the Beta(a, a) distribution of mixing shares; large values mix evenly."
    )
    tau: float = Field(0.5, gt=0, description="Temperature of guessed labels; values below 1 sharpen.")
    weights: tuple[Annotated[float, Field(ge=0)], ...] | None = Field(
        None, description="Weights in a guessed label: of the text, then of each view. Default: equal."
    )
    unlabeled_weight: float = Field(1.0, ge=0, description="Weight of texts with guessed labels, λ_u.")
    ramp_steps: int = Field(100, ge=1, description="Steps over which the weight of unlabelled texts rises.")
    margin: float = Field(0.7, ge=0, le=1, description="Squared norm up to which predictions are sharpened, γ.")
    margin_weight: float = Field(
        0.0, ge=0, description="Weight of the term that sharpens them, λ_m; 0 skips its forward pass."
    )
    coupling: Coupling = Field(
        "detached",
        description="detached: the student's own guesses, treated as constants, as published; differentiable: guesses"
        " of DRIFT's teacher, which the student anticipates; shared: the same through the student's Jacobian, which"
        " costs as much here, because the student must predict the unmixed texts, too.",
    )
    alpha: float = Field(0.9, ge=0, le=1, description="Weight of the old teacher unless coupling is detached.")

    @model_validator(mode="after")
    def _one_weight_per_form(self) -> "MixTextSettings":
        forms = 1 + (len(self.column) if self.augment == "column" else self.views)
        if self.weights is not None and (len(self.weights) != forms or not sum(self.weights)):
            raise ValueError(
                f"weights={self.weights}: give {forms} weights, one for the text and one per view, not all 0"
            )
        return self


class MixText(GameMethod):
    """Mixing of hidden states and labels. See the module's docstring."""

    name = "mixtext"
    summary = "mixes hidden states and labels of labelled, unlabelled and augmented texts (MixText)"
    settings_type = MixTextSettings
    needs = frozenset({TEXTS})
    relative_cost = 11 / 3  # trains on labelled rows, unlabelled rows and one view; guesses labels of the last two
    settings: MixTextSettings

    def __init__(self, student: nn.Module, settings: MixTextSettings, context: Context = Context()) -> None:
        super().__init__(student, settings, context)
        self.layers = [math.ceil(layer * depth(student) / BERT_LAYERS) for layer in settings.layers]

    def make_game(self, settings: MixTextSettings, context: Context) -> Game:
        return Game(
            self.student,
            alpha=settings.alpha if settings.coupling != "detached" else 0.0,
            tau=1.0,
            class_mass=False,
            reweight=False,  # with these three the response is the teacher's prediction itself
            coupling=settings.coupling,
            teacher=context.teacher,
            stacked=context.stacked,
            single_process=context.single_process,
        )

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
        if self.settings.margin_weight and batch.unlabeled is not None:  # each a second time, mixed with itself
            inputs.append(batch.unlabeled)
            order = torch.cat([order, len(order) + torch.arange(guess.shape[-2], device=order.device)])
        log_q = mixed_log_probabilities(self.student, inputs, layer, share, order, stacked=self.stacked)
        return self._score(target, log_q, labeled, batch)

    def guess(self, forms: Sequence[Inputs]) -> Tensor:
        """Return guessed labels `(..., N, C)`. forms: inputs of the texts, then of each view."""
        weights = self.settings.weights or (1.0,) * len(forms)
        weighted_forms = [(form, weight) for form, weight in zip(forms, weights, strict=True) if weight]
        log_p = self.game.respond(*(form for form, _ in weighted_forms)).log_y.chunk(len(weighted_forms), dim=-2)
        weighted = [each + math.log(weight) for each, (_, weight) in zip(log_p, weighted_forms, strict=True)]
        return (torch.stack(weighted).logsumexp(0) / self.settings.tau).softmax(-1)

    def _draw(self, rows: int) -> tuple[float, int, Tensor]:
        """Draw one share, layer and order for all trials, so that a trial is mixed as it would be on its own."""
        generator = np.random.default_rng(int(torch.randint(2**62, ())))  # torch cannot draw from Beta with a generator
        share = generator.beta(self.settings.beta, self.settings.beta)
        layer = int(generator.choice(self.layers))
        return max(share, 1 - share), layer, torch.from_numpy(generator.permutation(rows))

    def _score(self, target: Tensor, log_q: Tensor, labeled: int, batch: Batch) -> Tensor:
        """Return the loss.

        target: mixed labels `(..., N, C)`, the first `labeled` rows from labelled texts. log_q: log-probabilities of
        the N mixed rows and, after them, of the unmixed rows of the margin term.
        """
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
            unlabeled_loss = settings.unlabeled_weight * self.mean(divergence, total)
            parts["self_trained"] = settings.unlabeled_weight * divergence.detach().mean(-1)
            if settings.margin_weight:
                norm = log_q[..., rows:, :].exp().square().sum(-1)
                hinge = (settings.margin - norm).clamp(min=0)
                unlabeled_loss = unlabeled_loss + settings.margin_weight * self.mean(hinge, batch.unlabeled_total)
                parts["self_trained"] = parts["self_trained"] + settings.margin_weight * hinge.detach().mean(-1)
            losses.append(min(1.0, (self.game.steps + 1) / settings.ramp_steps) * unlabeled_loss)
        self.game.last = Parts(**parts)
        return torch.stack(losses).sum()

    def accumulate(self, batches: Sequence[Batch], *, backward: Backward | None = None) -> Tensor:
        raise ConfigError(
            "mixtext mixes the texts of a whole batch, but micro-batches are computed one at a time;"
            " set training.exact_accumulation=false to mix within each micro-batch"
        )
