"""COSINE (Yu et al., 2021): self-training on confident rows, whose representations are drawn together or apart.

    ỹ_j ∝ p_j² / f_j,  f_j = Σ_batch p_j²      soft pseudo-labels of the teacher, who is the student of every T3-th step
    ω = 1 - H(ỹ) / log C,  𝒞 = {x : ω ≥ ξ}     confidence, and the rows that are learnt from
    L_c = 1/|𝒞| Σ_𝒞 ω KL(ỹ ‖ f(x, θ))
    R_1 = mean over pairs of 𝒞 of  d² where their ỹ agree in class, else max(0, γ - d)²,   d = ‖v - v'‖ / √dim
    R_2 = 1/|𝒞| Σ_𝒞 KL(uniform ‖ f(x, θ))
    L = L_c + R_1 + λ R_2

v is what the last layer reads. Defaults of the authors' code for AG News: ξ = 0.6, γ = 1, λ = 0.1, and T3 = 250 of 2500
steps; here, where a run has some hundred, 50.

Differs from paper: L is added to the supervised loss where there are gold labels; the paper has weak ones, used up by
the start.
Differs from paper: a batch without a row that confident has its most confident row; it would teach nothing.
Differs from paper: a confident row is compared with one other of its batch, not with all, as in the authors' code; a
batch of words would have millions of pairs. It is the row a third of the confident ones further on: batches are drawn
at random, and for words it is in another sentence. Over several processes it is another row than in one.
Differs from paper: over fixed vectors representations cannot move, and R_1 compares predicted probabilities instead.
Differs from the authors' code, in which f_j = Σ p_j, H is divided by the logarithm of the batch size, losses are sums
over the batch, and R_1 compares the teacher's representations, which teaches the student nothing.
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
from drift.methods.method import Backward
from drift.methods.self_training import GameMethod
from drift.models.hidden import representations, representations_move
from drift.settings import Settings


class CosineSettings(Settings):
    """What is confident, and how much the regularisers weigh."""

    teacher_every: int = Field(50, ge=1, description="Steps after which the student becomes the teacher; T3.")
    threshold: float = Field(0.6, ge=0, le=1, description="Rows of at least this confidence are learnt from; ξ.")
    contrastive_weight: float = Field(1.0, ge=0, description="Of the term that compares representations.")
    margin: float = Field(1.0, ge=0, description="How far apart rows of two classes are drawn; γ.")
    uniform_weight: float = Field(0.1, ge=0, description="Of the term that keeps predictions from being too sure; λ.")
    unlabeled_weight: float = Field(1.0, ge=0, description="Of all that beside the supervised loss.")


class Cosine(GameMethod):
    """See the module."""

    name = "cosine"
    summary = "self-training on confident rows, with representations drawn together by class (COSINE)"
    settings_type = CosineSettings
    tasks = ("text", "tokens")
    relative_cost = 7 / 3

    def __init__(
        self,
        student: nn.Module,
        settings: CosineSettings,
        *,
        teacher: nn.Module | None = None,
        stacked: bool = False,
        single_process: bool = False,
    ) -> None:
        super().__init__(
            Game(student, tau=0.5, coupling="detached", teacher=teacher, stacked=stacked, single_process=single_process)
        )
        self.settings, self._regularizers = settings, dict[str, Tensor]()
        self._moves = representations_move(student)

    def loss(self, batch: Batch) -> Tensor:
        return self._score(self._forward(batch), [batch], batch.labeled_total, batch.pieces)

    def accumulate(self, batches: Sequence[Batch], *, backward: Backward | None = None) -> Tensor:
        """In two passes, see `drift.core.accumulation`: class masses, confidence and pairs are of the whole batch."""
        states, leaves = [], []
        with torch.no_grad(), undisturbed_buffers(self.student):
            for batch in batches:
                states.append(random_state())
                found = self._forward(batch)
                leaves.append({name: tensor.detach().requires_grad_() for name, tensor in found.items()})
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
        self.game.alpha = 0.0 if updated else 1.0  # the teacher becomes the student, or stays as it is
        self.game.follow()

    def diagnostics(self) -> dict[str, Any]:
        return {**super().diagnostics(), **{name: float(term.mean()) for name, term in self._regularizers.items()}}

    def _forward(self, batch: Batch) -> dict[str, Tensor]:
        """The student's log-probabilities of labelled and unlabelled rows, and what represents the latter."""
        found = {}
        if batch.labeled is not None:
            found["labeled"] = log_probabilities(self.student, check_pair(batch.labeled)[0], stacked=self.stacked)
        if batch.unlabeled is not None and self._moves:
            found["unlabeled"], found["vectors"] = representations(self.student, batch.unlabeled, stacked=self.stacked)
        elif batch.unlabeled is not None:
            found["unlabeled"] = log_probabilities(self.student, batch.unlabeled, stacked=self.stacked)
        return found

    def _score(
        self, found: dict[str, Tensor], batches: Sequence[Batch], labeled_total: int | None = None, pieces: int = 1
    ) -> Tensor:
        """The loss of these predictions, which are those of these micro-batches one after another.

        Over processes each has the loss of all rows, as confident ones and pairs are those of all: gathering hands
        every process's gradient back, and the average of these is the gradient.
        """
        supervised = self_trained = None
        losses, self._regularizers = [], {}
        if "labeled" in found:
            y = torch.cat([check_pair(batch.labeled)[1] for batch in batches], dim=-1)
            supervised = supervised_loss(found["labeled"], check_labels(y, found["labeled"]))
            losses.append(self.mean(supervised, labeled_total))
        if "unlabeled" in found:
            everywhere, settings = self.objective.everywhere, self.settings
            log_q = everywhere(found["unlabeled"])
            vectors = everywhere(found["vectors"]) if "vectors" in found else log_q.exp()
            own = self.game.respond(*(batch.unlabeled for batch in batches))
            response = Response(everywhere(own.log_y), everywhere(own.omega.unsqueeze(-1)).squeeze(-1))
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
        """L_c, R_1 and R_2, one value a trial. log_q: `(..., N, C)`; vectors: `(..., N, D)`."""
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
    """R_1, one value a trial: each confident row with the one a third of them further on.

    vectors: `(..., N, D)`. labels, confident: `(..., N)`, at least one confident.
    """
    count = confident.sum(-1, keepdim=True)
    one = confident.long().argsort(dim=-1, descending=True, stable=True)  # (..., N), confident rows first
    place = torch.arange(one.shape[-1], device=one.device)
    other = one.gather(-1, (place + (count // 3).clamp(min=1)) % count)
    alike = labels.gather(-1, one) == labels.gather(-1, other)
    squared = (_rows(vectors, one) - _rows(vectors, other)).square().mean(-1)
    distance = squared.clamp(min=torch.finfo(squared.dtype).tiny).sqrt()  # at 0 its gradient would be infinite
    losses = torch.where(alike, squared, (margin - distance).clamp(min=0).square())
    return (losses * (place < count)).sum(-1) / count.squeeze(-1)


def _rows(vectors: Tensor, places: Tensor) -> Tensor:
    return vectors.gather(-2, places.unsqueeze(-1).expand(*places.shape, vectors.shape[-1]))
