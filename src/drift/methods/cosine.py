"""COSINE (Yu et al., 2021): self-training on confident rows, with a contrastive term on their representations.

    ỹ_j ∝ p_j² / f_j,  f_j = Σ_batch p_j²      soft pseudo-labels of the teacher, a copy of the student every T3 steps
    ω = 1 - H(ỹ) / log C,  𝒞 = {x : ω ≥ ξ}     confidence, and the rows used for training
    L_c = 1/|𝒞| Σ_𝒞 ω KL(ỹ ‖ f(x, θ))
    R_1 = mean over pairs of 𝒞 of  d² if their ỹ agree in class, else max(0, γ - d)²,   d = ‖v - v'‖ / √dim
    R_2 = 1/|𝒞| Σ_𝒞 KL(uniform ‖ f(x, θ))
    L = L_c + R_1 + λ R_2

v is the input of the last layer. The authors' code uses for AG News: ξ = 0.6, γ = 1, λ = 0.1, and T3 = 250 of 2500
steps. Here T3 is 50, because a run has a few hundred steps.

Differs from paper: L is added to the supervised loss if there are gold labels; the paper has only weak labels, which
are used in the first phase only.
Differs from paper: if no row of a batch reaches ξ, its most confident row counts; otherwise the step would have no
loss.
Differs from paper: a confident row is compared with one other row of its batch, as in the authors' code, and not with
all; a batch of words would have millions of pairs. If n rows are confident, the other one is n/3 positions further on:
batches are drawn at random, and for words that position is in another sentence. With several processes it is another
row than with one.
Differs from paper: with a fixed encoder representations cannot change, so R_1 compares predicted probabilities instead.
Differs from the official code: equations are those of the paper; there f_j = Σ p_j, H is divided by the logarithm of
the batch size, losses are sums over the batch, and R_1 compares the teacher's representations, which gives the student
no gradient.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from drift.core import Game, Parts, Response, kl_divergence, supervised_loss
from drift.core.checks import check_labels, check_pair
from drift.core.forward import joined, log_probabilities
from drift.core.randomness import random_state, set_random_state
from drift.core.teacher import undisturbed_buffers
from drift.data.examples import Batch
from drift.methods.method import INDEPENDENT_ROWS, Backward, Context
from drift.methods.self_training import GameMethod
from drift.models.hidden import representations, representations_move
from drift.settings import Settings


class CosineSettings(Settings):
    """Confidence threshold, and weights of the regularisers."""

    teacher_every: int = Field(50, ge=1, description="Steps after which the student becomes the teacher, T3.")
    threshold: float = Field(0.6, ge=0, le=1, description="Minimum confidence of a row to be trained on, ξ.")
    contrastive_weight: float = Field(
        1.0, ge=0, description="Weight of the contrastive term, which compares representations."
    )
    margin: float = Field(1.0, ge=0, description="Minimum distance between rows of different classes, γ.")
    uniform_weight: float = Field(
        0.1, ge=0, description="Weight of the term that keeps predictions close to uniform, λ."
    )
    unlabeled_weight: float = Field(
        1.0, ge=0, description="Weight of all unlabelled terms relative to the supervised loss."
    )


class Cosine(GameMethod):
    """Contrastive self-training. See the module's docstring."""

    name = "cosine"
    summary = "self-training on confident rows with a contrastive term on representations (COSINE)"
    settings_type = CosineSettings
    needs = frozenset({INDEPENDENT_ROWS})
    relative_cost = 7 / 3
    settings: CosineSettings

    def __init__(self, student: nn.Module, settings: CosineSettings, context: Context = Context()) -> None:
        super().__init__(student, settings, context)
        self._regularizers: dict[str, Tensor] = {}
        self._moves = representations_move(student)

    def make_game(self, settings: CosineSettings, context: Context) -> Game:
        return Game(
            self.student,
            tau=0.5,
            coupling="detached",
            teacher=context.teacher,
            stacked=context.stacked,
            single_process=context.single_process,
        )

    def loss(self, batch: Batch) -> Tensor:
        return self._score(self._forward(batch), [batch], batch.labeled_total, batch.pieces)

    def accumulate(self, batches: Sequence[Batch], *, backward: Backward | None = None) -> Tensor:
        """Take two passes: class masses, confidence and pairs are those of the whole batch.

        See `drift.core.accumulation`.
        """
        states, leaves = [], []
        with torch.no_grad(), undisturbed_buffers(self.student):
            for batch in batches:
                states.append(random_state())
                outputs = self._forward(batch)
                leaves.append({name: tensor.detach().requires_grad_() for name, tensor in outputs.items()})
        loss = self._score({name: joined([part[name] for part in leaves]) for name in leaves[0]}, batches)
        torch.autograd.backward(loss)
        for batch, state, collected in zip(batches, states, leaves, strict=True):
            set_random_state(state)
            terms = [
                (tensor * leaf.grad).sum()
                for tensor, leaf in zip(self._forward(batch).values(), collected.values(), strict=True)
                if leaf.grad is not None
            ]
            self.backward(torch.stack(terms).sum(), backward=backward)
        return loss.detach()

    def follow(self) -> None:
        updated = (self.game.steps + 1) % self.settings.teacher_every == 0
        self.game.alpha = 0.0 if updated else 1.0  # the teacher becomes the student, or does not change
        self.game.follow()

    def diagnostics(self) -> dict[str, Any]:
        return {**super().diagnostics(), **{name: float(term.mean()) for name, term in self._regularizers.items()}}

    def _forward(self, batch: Batch) -> dict[str, Tensor]:
        """Return the student's log-probabilities of labelled and unlabelled rows, and vectors of the unlabelled."""
        outputs = {}
        if batch.labeled is not None:
            outputs["labeled"] = log_probabilities(self.student, check_pair(batch.labeled)[0], stacked=self.stacked)
        if batch.unlabeled is not None and self._moves:
            log_q, vectors = representations(self.student, batch.unlabeled, stacked=self.stacked)
            outputs["unlabeled"], outputs["vectors"] = log_q, vectors
        elif batch.unlabeled is not None:
            outputs["unlabeled"] = log_probabilities(self.student, batch.unlabeled, stacked=self.stacked)
        return outputs

    def _score(
        self, outputs: dict[str, Tensor], batches: Sequence[Batch], labeled_total: int | None = None, pieces: int = 1
    ) -> Tensor:
        """Return the loss of the outputs of `_forward`, concatenated over these micro-batches.

        With several processes each computes the loss over the rows of all, because confident rows and pairs are chosen
        among all. Gathering passes every process's gradient back, and the average of these is the gradient.
        """
        supervised = self_trained = None
        losses, self._regularizers = [], {}
        if "labeled" in outputs:
            y = torch.cat([check_pair(batch.labeled)[1] for batch in batches], dim=-1)
            supervised = supervised_loss(outputs["labeled"], check_labels(y, outputs["labeled"]))
            losses.append(self.mean(supervised, labeled_total))
        if "unlabeled" in outputs:
            everywhere, settings = self.objective.everywhere, self.settings
            log_q = everywhere(outputs["unlabeled"])
            vectors = everywhere(outputs["vectors"]) if "vectors" in outputs else log_q.exp()
            local = self.game.respond(*(batch.unlabeled for batch in batches))  # of this process's rows
            response = Response(everywhere(local.log_y), everywhere(local.omega.unsqueeze(-1)).squeeze(-1))
            self_trained, contrastive, uniform = self.terms(response, log_q, vectors)
            regularized = self_trained + settings.contrastive_weight * contrastive + settings.uniform_weight * uniform
            losses.append(settings.unlabeled_weight * regularized / pieces)
            self._regularizers = {"contrastive": contrastive.detach(), "uniform": uniform.detach()}
        self.game.last = Parts(
            supervised=None if supervised is None else supervised.detach().mean(-1),
            self_trained=None if self_trained is None else self_trained.detach(),
        )
        return torch.stack(losses).sum()

    def terms(self, response: Response, log_q: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return L_c, R_1 and R_2, one value per trial.

        response: the teacher's labels and confidence. log_q: the student's log-probabilities, `(..., N, C)`.
        vectors: representations, `(..., N, D)`.
        """
        most = response.omega.amax(-1, keepdim=True)
        confident = response.omega >= most.clamp(max=self.settings.threshold)
        count = confident.sum(-1)
        to_uniform = -log_q.mean(-1) - math.log(log_q.shape[-1])
        labels = response.log_y.argmax(-1)
        return (
            (confident * response.omega * kl_divergence(response.log_y, log_q)).sum(-1) / count,
            contrastive_loss(vectors, labels, confident, self.settings.margin),
            (confident * to_uniform).sum(-1) / count,
        )


def contrastive_loss(vectors: Tensor, labels: Tensor, confident: Tensor, margin: float) -> Tensor:
    """Return R_1, one value per trial. Each of the n confident rows is paired with the one n/3 positions further on.

    vectors: `(..., N, D)`. labels, confident: `(..., N)`, with at least one confident row. margin: γ.
    """
    count = confident.sum(-1, keepdim=True)
    one = confident.long().argsort(dim=-1, descending=True, stable=True)  # (..., N), confident rows first
    position = torch.arange(one.shape[-1], device=one.device)
    other = one.gather(-1, (position + (count // 3).clamp(min=1)) % count)
    alike = labels.gather(-1, one) == labels.gather(-1, other)
    squared = (_rows(vectors, one) - _rows(vectors, other)).square().mean(-1)
    distance = squared.clamp(min=torch.finfo(squared.dtype).tiny).sqrt()  # at 0 its gradient would be infinite
    losses = torch.where(alike, squared, (margin - distance).clamp(min=0).square())
    return (losses * (position < count)).sum(-1) / count.squeeze(-1)


def _rows(vectors: Tensor, index: Tensor) -> Tensor:
    return vectors.gather(-2, index.unsqueeze(-1).expand(*index.shape, vectors.shape[-1]))
