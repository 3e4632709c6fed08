"""FreeMatch (Wang et al., 2023): a threshold per class that rises with the student's confidence.

    τ_c = (p̃_c / max_j p̃_j) τ,   τ and p̃ moving averages of mean max_j p_j and of mean p, from 1/C
    L_u = mean over x of 1[max_j p_j > τ_ŷ] H(ŷ, f(x', θ)),   ŷ = argmax_j p_j,   p = f(x, θ), no gradient
    L_f = Σ_c a_c log b_c,   a ∝ p̃ / h̃,   b ∝ q̄ / h̄
    L = L_sup(θ) + w (L_u + w_f L_f)

q̄ is the mean prediction of the strong views of texts above the threshold, h̄ the shares of the classes they predict, and
h̃ a moving average, from 1/C, of the shares of ŷ. As published, averages keep 0.999 of their old values, w = 1 and
w_f = 0.01 (0.05 with very few labels). L_f is minimised, in the paper (as -H(a, b)) and in the authors' code. See
`drift.methods.matching` for the views.

Differs from paper: averages keep 0.99 of their old values by default, because a run here has hundreds of steps.
Differs from paper: L_f has no term of classes that no strong view predicts; in the authors' code it is a constant.
"""

from collections.abc import Sequence

import torch
from pydantic import Field
from torch import Tensor

from drift.data.examples import Batch
from drift.errors import ConfigError
from drift.methods.matching import Averages, Matching, one_hot_of
from drift.methods.method import Backward


class FreeMatchSettings(Averages):
    """Weight of the fairness term."""

    fairness_weight: float = Field(0.01, ge=0, description="Weight of the fairness term, w_f.")


class FreeMatch(Matching):
    """Hard labels above a threshold per class. See the module's docstring."""

    name = "freematch"
    summary = "labels above a threshold per class that rises with the student's confidence (FreeMatch)"
    settings_type = FreeMatchSettings
    settings: FreeMatchSettings

    def observe(self, p: Tensor, p_labeled: Tensor | None) -> None:
        first = 1 / p.shape[-1]
        self.average("threshold", p.amax(-1).mean(-1, keepdim=True), first)
        self.average("mean", p.mean(-2), first)
        self.average("shares", one_hot_of(p).mean(-2), first)

    def judge(self, p: Tensor) -> tuple[Tensor, Tensor]:
        mean = self.averages["mean"]
        thresholds = self.averages["threshold"] * mean / mean.amax(-1, keepdim=True)  # (..., C)
        confidence, labels = p.max(-1)
        return one_hot_of(p), (confidence > thresholds.gather(-1, labels)).to(p)

    def penalty(self, labels: Tensor, weights: Tensor, log_q: Sequence[Tensor]) -> Tensor | None:
        if not self.settings.fairness_weight:
            return None
        everywhere = self.objective.everywhere
        kept = weights.unsqueeze(-1)
        q = torch.cat([everywhere(each.exp() * kept) for each in log_q], dim=-2)
        predicted = torch.cat([everywhere(one_hot_of(each) * kept) for each in log_q], dim=-2)
        counts = predicted.sum(-2).detach()
        seen = counts > 0  # (..., C)
        size = counts.sum(-1, keepdim=True).clamp(min=1)
        b = _divided(q.sum(-2) / size, counts / size)
        a = _divided(self.averages["mean"], self.averages["shares"])
        log_b = torch.where(seen, b, 1.0).log()
        return self.settings.fairness_weight * (a * log_b).sum(-1)

    def accumulate(self, batches: Sequence[Batch], *, backward: Backward | None = None) -> Tensor:
        if self.settings.fairness_weight:
            raise ConfigError(
                "freematch's fairness term is of the whole batch, but micro-batches are computed one at a time;"
                " set training.exact_accumulation=false, or method.fairness_weight=0"
            )
        return super().accumulate(batches, backward=backward)


def _divided(p: Tensor, shares: Tensor) -> Tensor:
    """p / shares, normalised; 0 where the share is 0. All shares may be 0."""
    ratio = torch.where(shares > 0, p / torch.where(shares > 0, shares, 1.0), 0.0)
    return ratio / ratio.sum(-1, keepdim=True).clamp(min=torch.finfo(p.dtype).tiny)
