"""Uncertainty-aware self-training (UAST; Mukherjee and Awadallah, 2020): learn from rows whose labels bear dropout.

Every so many steps the student answers a sample of the unlabelled rows T times with dropout, p_1 ... p_T:

    ŷ = argmax_j mean_t p_tj,   v = Var_t p_tŷ,   BALD = H(mean_t p_t) - mean_t H(p_t)

Rows are drawn without replacement with probability ∝ 1 - BALD (easy) or ∝ BALD (hard), as many of every class ŷ; a
class with too few rows has them again. Until the next time the student learns from those:

    L = L_sup(θS) + λ mean -0.1 log(v + 1e-10) · -log f_ŷ(x, θS)

Where several targets are classified in a row, words of a sentence, a row has the mean BALD of its words and no class,
and labels and weights are the words' own. In the original work T is 30, and 4,096 of 16,384 sampled rows are drawn.

With `coupling="differentiable"` the rows and weights stay and the labels are soft, ỹ ∝ p^(1/τ) by DRIFT's teacher: the
student's moving average, which the student anticipates. L then has KL(ỹ ‖ f(x, θS)) in the place of -log f_ŷ(x, θS).

Differs from paper: v is of the label's own class; the published code takes the first class, the same only for two.
Differs from paper: ŷ is of the mean over passes; the published code's is of one pass without dropout.
Differs from paper: labelled rows, where there are gold ones, keep their supervised term.
Differs from paper: fewer passes and rows, more often, as there are hundreds of steps here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from drift.core import Game
from drift.core.forward import Inputs, log_probabilities
from drift.core.game import Coupling
from drift.core.losses import kl_divergence, supervised_loss
from drift.core.strategy import SoftStrategy
from drift.core.teacher import undisturbed_buffers
from drift.data.examples import Batch
from drift.methods.materials import Pool
from drift.methods.method import Backward, Method
from drift.methods.self_training import GameMethod
from drift.settings import Settings

SMALLEST = 1e-10  # variance
SCALE = 0.1  # of the weights, α in the published code


class UASTSettings(Settings):
    """What is looked at, what is learnt from, and by which labels."""

    passes: int = Field(10, ge=2, description="Answers with dropout, T; 30 in the original work.")
    sample: int = Field(4096, ge=1, description="Rows that are looked at each time; 16,384 there.")
    chosen: int = Field(2048, ge=1, description="Rows that are learnt from until the next time; 4,096 there.")
    every: int = Field(100, ge=1, description="Steps between looks.")
    prefer: Literal["easy", "hard"] = Field("easy", description="Rows whose answers bear dropout, or those that vary.")
    by_class: bool = Field(True, description="As many rows of every class.")
    unbalanced_class: int | None = Field(
        None, ge=0, description="A class that keeps its share; for words, 0 is the tag O."
    )
    confidence: bool = Field(True, description="Weigh rows by -log of the variance of their label's probability.")
    unlabeled_weight: float = Field(1.0, ge=0, description="Weight of the self-training term, λ.")
    coupling: Coupling = Field("detached", description="differentiable: soft labels of a teacher that is anticipated.")
    alpha: float = Field(0.9, ge=0, le=1, description="Weight of the old teacher, where coupling is differentiable.")
    tau: float = Field(0.5, gt=0, description="Temperature of the soft labels there.")
    seed: int = Field(0, ge=0, description="Of the rows that are drawn.")

    @model_validator(mode="after")
    def _chosen_from_sample(self) -> "UASTSettings":
        if self.chosen > self.sample:
            raise ValueError(f"chosen={self.chosen} rows of a sample={self.sample}; choose fewer, or look at more")
        return self


@dataclass(frozen=True)
class Found:
    """What a look found: rows `(..., n)`, sorted; labels and weights of what is in them; counts of that, if many."""

    rows: Tensor
    labels: Tensor
    weights: Tensor
    counts: Tensor | None

    def of(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Labels and weights of the targets in these rows."""
        # searchsorted copies strided tensors, and says so
        at = torch.searchsorted(self.rows.contiguous(), rows.contiguous())
        if self.counts is not None:
            at = _targets(self.counts, at)
        return self.labels.gather(-1, at), self.weights.gather(-1, at)


class UAST(GameMethod):
    """See the module."""

    name = "uast"
    summary = "learns from rows whose pseudo-labels bear dropout, drawn by class and weighed by their variance"
    settings_type = UASTSettings
    tasks = ("text", "tokens")
    relative_cost = 2  # of a step; a look costs a third of one a row and pass
    head_dropout = 0.1

    def __init__(self, student: nn.Module, settings: UASTSettings, **options: Any) -> None:
        strategy = SoftStrategy(settings.tau, class_mass=False, reweight=False)  # rows are balanced and weighed already
        super().__init__(Game(student, alpha=settings.alpha, strategy=strategy, coupling=settings.coupling, **options))
        self.settings, self.refresh_every = settings, settings.every
        self._generator = torch.Generator().manual_seed(settings.seed)
        self._found: Found | None = None
        self._last: Tensor | None = None  # the self-training term

    def start(self, probe: Inputs = None) -> None:
        super().start(probe)
        self._found = None

    def loss(self, batch: Batch) -> Tensor:
        terms = []
        self._last = None
        if batch.labeled is not None:
            terms.append(self.initial_loss(batch))
        if batch.unlabeled is not None:
            terms.append(self.settings.unlabeled_weight * self._self_trained(batch))
        return torch.stack(terms).sum()

    def _self_trained(self, batch: Batch) -> Tensor:
        log_q = log_probabilities(self.student, batch.unlabeled, stacked=self.stacked)
        if self._found is not None and batch.unlabeled_rows is not None:
            labels, weights = self._found.of(batch.unlabeled_rows)
        else:  # a loop without a pool: rows are looked at as they come
            labels, weights = self._judged(self._looked_at(batch.unlabeled))[:2]
        labels, weights = labels.to(log_q.device), weights.to(log_q.device)
        if self.settings.coupling == "differentiable":
            losses = kl_divergence(self.game.respond(batch.unlabeled).log_y, log_q)
        else:
            losses = supervised_loss(log_q, labels)
        weighed = weights * losses
        self._last = weighed.detach().mean()
        return self.mean(weighed, batch.unlabeled_total).sum()

    @torch.no_grad()
    def _looked_at(self, inputs: Inputs) -> Tensor:
        """Label, its variance and BALD of each thing, `(..., n, 3)`, from answers with dropout."""
        answers = []
        with undisturbed_buffers(self.student):
            for _ in range(self.settings.passes):
                answers.append(log_probabilities(self.student, inputs, stacked=self.stacked))
        log_p = torch.stack(answers)  # (T, ..., n, C)
        p = log_p.exp()
        mean = p.mean(0)
        labels = mean.argmax(-1, keepdim=True)
        variance = p.var(0, correction=0).gather(-1, labels)
        bald = _entropy(mean, mean.log()) - _entropy(p, log_p).mean(0)
        return torch.cat([labels.to(mean), variance, bald.unsqueeze(-1)], dim=-1)

    def _judged(self, looked_at: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Labels, weights and BALD, each `(..., n)`."""
        labels, variance, bald = looked_at.unbind(-1)
        weights = -SCALE * (variance + SMALLEST).log() if self.settings.confidence else torch.ones_like(variance)
        return labels.long(), weights, bald

    def refresh(self, pool: Pool) -> Tensor:
        """Look at a sample of all rows, and give the places of those to learn from."""
        settings = self.settings
        drawn = self._noise(pool.rows.shape).argsort(-1)[..., : settings.sample]
        drawn = drawn.gather(-1, pool.rows.gather(-1, drawn).argsort(-1))
        self.student.train()
        labels, weights, bald = self._judged(pool.ask(self._looked_at, drawn))
        counts = None if pool.counts is None else torch.from_numpy(pool.counts)[drawn]
        self._found = Found(pool.rows.gather(-1, drawn), labels, weights, counts)
        groups = labels if settings.by_class else torch.zeros_like(labels)
        if counts is not None:
            owners = torch.arange(len(counts)).repeat_interleave(counts)
            bald = bald.new_zeros(len(counts)).index_add(0, owners, bald) / counts
            groups = torch.zeros_like(counts)
        easy = settings.prefer == "easy"
        # Gumbel noise on log-weights: the largest are a draw without replacement.
        keys = (1 - bald if easy else bald).clamp(min=torch.finfo(bald.dtype).tiny).log()
        keys = keys - (-self._noise(keys.shape).log()).log()
        unbalanced_class = settings.unbalanced_class if settings.by_class else None
        return drawn.gather(-1, drawn_by_group(keys, groups, min(settings.chosen, keys.shape[-1]), unbalanced_class))

    def _noise(self, shape: Sequence[int]) -> Tensor:
        """In (0, 1), by the method's own generator: the same on every process."""
        return torch.rand(shape, generator=self._generator, dtype=torch.float64).clamp(min=1e-300)

    def accumulate(self, batches: Sequence[Batch], *, backward: Backward | None = None) -> Tensor:
        return Method.accumulate(self, batches, backward=backward)  # a mean over rows: the game's masses are not in it

    def diagnostics(self) -> dict[str, Any]:
        if self._last is None:
            return {}
        game = self.game.diagnostics().as_dict() if self.game.couples else {}
        return {"self_trained": float(self._last), **game}

    def state_dict(self) -> dict[str, Any]:
        found = None if self._found is None else asdict(self._found)
        return {"game": super().state_dict(), "generator": self._generator.get_state(), "found": found}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state["game"])
        self._generator.set_state(state["generator"])
        self._found = None if state["found"] is None else Found(**state["found"])


def drawn_by_group(keys: Tensor, groups: Tensor, size: int, unbalanced_class: int | None = None) -> Tensor:
    """Places `(..., size)` of the largest keys of each group, as many of each; those of small groups come repeatedly.

    keys, groups: `(..., n)`. unbalanced_class: a group that has its share of all n instead.
    """
    rows = torch.zeros(*groups.shape[:-1], int(groups.max()) + 1, dtype=torch.long)
    rows = rows.scatter_add(-1, groups, torch.ones_like(groups))  # (..., groups)
    shares = (rows > 0).double()
    if unbalanced_class is not None and unbalanced_class < rows.shape[-1]:
        kept = rows[..., unbalanced_class] / groups.shape[-1]
        shares[..., unbalanced_class] = 0
        shares *= ((1 - kept) / shares.sum(-1).clamp(min=1)).unsqueeze(-1)
        shares[..., unbalanced_class] = kept
    bounds = (shares / shares.sum(-1, keepdim=True)).cumsum(-1)
    slots = ((torch.arange(size, dtype=torch.float64) + 0.5) / size).expand(*groups.shape[:-1], size).contiguous()
    of_slot = torch.searchsorted(bounds, slots).clamp(max=rows.shape[-1] - 1)  # (..., size)
    taken = torch.zeros_like(rows).scatter_add(-1, of_slot, torch.ones_like(of_slot))
    rank = torch.arange(size) - (taken.cumsum(-1) - taken).gather(-1, of_slot)
    order = keys.argsort(-1, descending=True)
    order = order.gather(-1, groups.gather(-1, order).argsort(dim=-1, stable=True))  # group by group, large keys first
    first = (rows.cumsum(-1) - rows).gather(-1, of_slot)
    return order.gather(-1, first + rank % rows.gather(-1, of_slot))


def _entropy(p: Tensor, log_p: Tensor) -> Tensor:
    """H(p) over the last dimension; 0 log 0 is 0."""
    return -torch.where(p > 0, p * log_p, 0.0).sum(-1)


def _targets(counts: Tensor, rows: Tensor) -> Tensor:
    """Places of all targets of these rows, row after row. counts: of every row."""
    own = counts[rows]
    first = (counts.cumsum(0) - counts)[rows]
    return torch.arange(int(own.sum())) + (first - (own.cumsum(0) - own)).repeat_interleave(own)
