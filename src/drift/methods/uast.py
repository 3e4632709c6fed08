"""Uncertainty-aware self-training (UAST; Mukherjee and Awadallah, 2020): selects rows by their variance under dropout.

Every `every` steps the student predicts a sample of the unlabelled rows T times with dropout, p_1 ... p_T:

    ŷ = argmax_j mean_t p_tj,   v = Var_t p_tŷ,   BALD = H(mean_t p_t) - mean_t H(p_t)

Rows are drawn without replacement with probability ∝ 1 - BALD (easy) or ∝ BALD (hard), the same number for every class
ŷ; rows of a class with too few of them are repeated. Until the next selection the student is trained on these rows:

    L = L_sup(θS) + λ mean -0.1 log(v + 1e-10) · -log f_ŷ(x, θS)

If a row has several targets (the words of a sentence), its BALD is the mean over its words, classes are not balanced,
and labels and weights are per word. In the original work T is 30, and 4,096 of 16,384 sampled rows are drawn.

With `coupling="differentiable"` rows and weights are the same and labels are soft: ỹ ∝ p^(1/τ) of DRIFT's teacher, the
moving average of the student, which the student anticipates. L then has KL(ỹ ‖ f(x, θS)) in place of -log f_ŷ(x, θS).

Differs from paper: v is the variance of the label's class; the published code takes the first class, which is the same
only for two classes.
Differs from paper: ŷ comes from the mean over passes; in the published code it comes from one pass without dropout.
Differs from paper: labelled rows with gold labels keep their supervised term.
Differs from the official code: dropout of a fine-tuned encoder is its own; there it is 0.2, and 0.5 before the last
layer.
Differs from the official code: a round is `every` steps; there up to 25 epochs, ended early by dev, whose best epoch
begins the next round. Here dev selects among all rounds.
Differs from paper: fewer passes and rows, and more frequent selections, because a run here has hundreds of steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

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
from drift.methods.method import INDEPENDENT_ROWS, Backward, Context, Method
from drift.methods.self_training import GameMethod
from drift.settings import Settings

SMALLEST = 1e-10  # variance
SCALE = 0.1  # of the weights, α in the published code


class UASTSettings(Settings):
    """How rows are selected, weighted and labelled."""

    renamed: ClassVar[Mapping[str, str]] = {"spared": "unbalanced_class"}

    passes: int = Field(10, ge=2, description="Predictions with dropout per row, T; 30 in the original work.")
    sample: int = Field(4096, ge=1, description="Rows sampled at each selection; 16,384 in the original work.")
    chosen: int = Field(2048, ge=1, description="Rows selected for training from them; 4,096 in the original work.")
    every: int = Field(100, ge=1, description="Steps between selections.")
    prefer: Literal["easy", "hard"] = Field(
        "easy", description="Prefer rows whose predictions vary little under dropout (easy) or much (hard)."
    )
    by_class: bool = Field(True, description="Select the same number of rows for every class.")
    unbalanced_class: int | None = Field(
        None, ge=0, description="Index of a class that keeps its share of rows; for token tagging, 0 is the tag O."
    )
    confidence: bool = Field(True, description="Weight rows by -log of the variance of their label's probability.")
    unlabeled_weight: float = Field(1.0, ge=0, description="Weight of the self-training term, λ.")
    coupling: Coupling = Field(
        "detached",
        description="detached: hard labels, as published; differentiable: soft labels of DRIFT's teacher, which the"
        " student anticipates; shared: the same through the student's Jacobian.",
    )
    alpha: float = Field(0.9, ge=0, le=1, description="Weight of the old teacher unless coupling is detached.")
    tau: float = Field(0.5, gt=0, description="Temperature of the soft labels unless coupling is detached.")
    seed: int = Field(0, ge=0, description="Seed for drawing rows.")

    @model_validator(mode="after")
    def _chosen_from_sample(self) -> "UASTSettings":
        if self.chosen > self.sample:
            raise ValueError(f"chosen={self.chosen} rows of a sample={self.sample}; choose fewer, or sample more")
        return self


@dataclass(frozen=True)
class Judgements:
    """Pseudo-labels of the rows sampled last.

    rows: row numbers `(..., n)`, sorted. labels, weights: of every target in these rows, `(..., targets)`. counts:
    targets per row, `(n,)`; None if each row is one target.
    """

    rows: Tensor
    labels: Tensor
    weights: Tensor
    counts: Tensor | None

    def of(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return labels and weights of the targets in these rows."""
        # searchsorted copies strided tensors, with a warning
        at = torch.searchsorted(self.rows.contiguous(), rows.contiguous())
        if self.counts is not None:
            at = _targets(self.counts, at)
        return self.labels.gather(-1, at), self.weights.gather(-1, at)


class UAST(GameMethod):
    """Self-training on rows selected by uncertainty. See the module's docstring."""

    name = "uast"
    summary = "self-training on rows with stable predictions under dropout, weighted by their variance (UAST)"
    settings_type = UASTSettings
    needs = frozenset({INDEPENDENT_ROWS})
    relative_cost = 2  # without selections, each of which costs a third of a step per row and pass
    head_dropout = 0.5  # as before the last layer in the authors' code
    settings: UASTSettings

    def __init__(self, student: nn.Module, settings: UASTSettings, context: Context = Context()) -> None:
        super().__init__(student, settings, context)
        self.refresh_every = settings.every
        self._generator = torch.Generator().manual_seed(settings.seed)
        self._judgements: Judgements | None = None
        self._last: Tensor | None = None  # the self-training term

    def make_game(self, settings: UASTSettings, context: Context) -> Game:
        return Game(
            self.student,
            alpha=settings.alpha,
            strategy=SoftStrategy(settings.tau, class_mass=False, reweight=False),  # selection balances and weights
            coupling=settings.coupling,
            teacher=context.teacher,
            stacked=context.stacked,
            single_process=context.single_process,
        )

    def start(self, probe: Inputs = None) -> None:
        super().start(probe)
        self._judgements = None

    def loss(self, batch: Batch) -> Tensor:
        terms = []
        self._last = None
        if batch.labeled is not None:
            terms.append(self.initial_loss(batch))
        if batch.unlabeled is not None:
            terms.append(self.settings.unlabeled_weight * self._self_trained(batch))
        return torch.stack(terms).sum()

    def _self_trained(self, batch: Batch) -> Tensor:
        response = None
        if self.settings.coupling == "detached":
            log_q = log_probabilities(self.student, batch.unlabeled, stacked=self.stacked)
        else:
            log_q, response = self.game.play(batch.unlabeled)
        if self._judgements is not None and batch.unlabeled_rows is not None:
            labels, weights = self._judgements.of(batch.unlabeled_rows)
        else:  # a loop without a pool: judge the rows of this batch
            labels, weights = self._judge(self._measure(batch.unlabeled))[:2]
        labels, weights = labels.to(log_q.device), weights.to(log_q.device)
        losses = supervised_loss(log_q, labels) if response is None else kl_divergence(response.log_y, log_q)
        weighted = weights * losses
        self._last = weighted.detach().mean()
        return self.mean(weighted, batch.unlabeled_total).sum()

    @torch.no_grad()
    def _measure(self, inputs: Inputs) -> Tensor:
        """Return label, variance and BALD of each target, `(..., n, 3)`, from predictions with dropout."""
        passes = []
        with undisturbed_buffers(self.student):
            for _ in range(self.settings.passes):
                passes.append(log_probabilities(self.student, inputs, stacked=self.stacked))
        log_p = torch.stack(passes)  # (T, ..., n, C)
        p = log_p.exp()
        mean = p.mean(0)
        labels = mean.argmax(-1, keepdim=True)
        variance = p.var(0, correction=0).gather(-1, labels)
        bald = _entropy(mean, mean.log()) - _entropy(p, log_p).mean(0)
        return torch.cat([labels.to(mean), variance, bald.unsqueeze(-1)], dim=-1)

    def _judge(self, measured: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return labels, weights and BALD, each `(..., n)`, from what `_measure` returned."""
        labels, variance, bald = measured.unbind(-1)
        weights = -SCALE * (variance + SMALLEST).log() if self.settings.confidence else torch.ones_like(variance)
        return labels.long(), weights, bald

    def refresh(self, pool: Pool) -> Tensor:
        """Judge a sample of all rows, and return the positions of those to train on."""
        settings = self.settings
        drawn = self._noise(pool.rows.shape).argsort(-1)[..., : settings.sample]
        drawn = drawn.gather(-1, pool.rows.gather(-1, drawn).argsort(-1))
        self.student.train()
        labels, weights, bald = self._judge(pool.ask(self._measure, drawn))
        counts = None if pool.counts is None else torch.from_numpy(pool.counts)[drawn]
        self._judgements = Judgements(pool.rows.gather(-1, drawn), labels, weights, counts)
        groups = labels if settings.by_class else torch.zeros_like(labels)
        if counts is not None:
            owners = torch.arange(len(counts)).repeat_interleave(counts)
            bald = bald.new_zeros(len(counts)).index_add(0, owners, bald) / counts
            groups = torch.zeros_like(counts)
        easy = settings.prefer == "easy"
        # Gumbel noise on log-weights: taking the largest samples without replacement.
        keys = (1 - bald if easy else bald).clamp(min=torch.finfo(bald.dtype).tiny).log()
        keys = keys - (-self._noise(keys.shape).log()).log()
        unbalanced_class = settings.unbalanced_class if settings.by_class else None
        return drawn.gather(-1, drawn_by_group(keys, groups, min(settings.chosen, keys.shape[-1]), unbalanced_class))

    def _noise(self, shape: Sequence[int]) -> Tensor:
        """Draw from (0, 1) with the method's generator: the same on every process."""
        return torch.rand(shape, generator=self._generator, dtype=torch.float64).clamp(min=1e-300)

    def accumulate(self, batches: Sequence[Batch], *, backward: Backward | None = None) -> Tensor:
        return Method.accumulate(self, batches, backward=backward)  # the loss is a mean over rows, without class masses

    def diagnostics(self) -> dict[str, Any]:
        if self._last is None:
            return {}
        game = self.game.diagnostics().as_dict() if self.game.couples else {}
        return {"self_trained": float(self._last), **game}

    def state_dict(self) -> dict[str, Any]:
        judgements = None if self._judgements is None else asdict(self._judgements)
        return {"game": super().state_dict(), "generator": self._generator.get_state(), "found": judgements}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state["game"])
        self._generator.set_state(state["generator"])
        self._judgements = None if state["found"] is None else Judgements(**state["found"])


def drawn_by_group(keys: Tensor, groups: Tensor, size: int, unbalanced_class: int | None = None) -> Tensor:
    """Return the positions `(..., size)` of the largest keys, the same number per group.

    Positions of a group with too few keys are repeated.

    keys, groups: `(..., n)`. size: how many positions to return. unbalanced_class: a group that gets its share of all n
    instead.
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
    order = order.gather(-1, groups.gather(-1, order).argsort(dim=-1, stable=True))  # by group, large keys first
    first = (rows.cumsum(-1) - rows).gather(-1, of_slot)
    return order.gather(-1, first + rank % rows.gather(-1, of_slot))


def _entropy(p: Tensor, log_p: Tensor) -> Tensor:
    """Return H(p) over the last dimension, with 0 log 0 = 0."""
    return -torch.where(p > 0, p * log_p, 0.0).sum(-1)


def _targets(counts: Tensor, rows: Tensor) -> Tensor:
    """Return the positions of all targets of these rows, in the order of the rows. counts: targets per row."""
    sizes = counts[rows]
    first = (counts.cumsum(0) - counts)[rows]
    return torch.arange(int(sizes.sum())) + (first - (sizes.cumsum(0) - sizes)).repeat_interleave(sizes)
