"""SoftMatch (Chen et al., 2023): labels weighted by a truncated Gaussian of their confidence.

    ω = exp(-(max_j p'_j - μ)² / (2 σ²/n²)) if max_j p'_j < μ, else 1,   p' = normalize(p · (1/C) / E[p])
    L = L_sup(θ) + w mean over x of ω H(argmax_j p_j, f(x', θ)),   p = f(x, θ), no gradient

μ and σ² are moving averages of mean and variance (unbiased) of max_j p'_j over the batch, from 1/C and 1; E[p] is one,
too, from 1/C. p' aligns predictions uniformly; it decides the weights, and the labels stay those of p. As published,
the averages keep 0.999 of their old values. The paper's equation has n = 1; the authors' code and runs have n = 2. See
`drift.methods.matching` for the views.

Differs from paper: averages keep 0.99 of their old values by default, because a run here has hundreds of steps.
"""

import torch
from pydantic import Field
from torch import Tensor

from drift.methods.matching import Averages, Matching, normalized, one_hot_of


class SoftMatchSettings(Averages):
    """Shape of the weights."""

    narrowing: float = Field(2.0, gt=0, description="Divisor of the Gaussian's standard deviation, n.")


class SoftMatch(Matching):
    """Hard labels with weights of a truncated Gaussian. See the module's docstring."""

    name = "softmatch"
    summary = "labels weighted by a truncated Gaussian of their confidence (SoftMatch)"
    settings_type = SoftMatchSettings
    settings: SoftMatchSettings

    def observe(self, p: Tensor, p_labeled: Tensor | None) -> None:
        self.average("mean", p.mean(-2, keepdim=True), 1 / p.shape[-1])
        confidence = self._aligned(p).amax(-1)
        self.average("mu", confidence.mean(-1, keepdim=True), 1 / p.shape[-1])
        variance = confidence.var(-1, keepdim=True) if p.shape[-2] > 1 else torch.zeros_like(confidence)
        self.average("variance", variance, 1.0)

    def judge(self, p: Tensor) -> tuple[Tensor, Tensor]:
        below = (self._aligned(p).amax(-1) - self.averages["mu"]).clamp(max=0)
        tiny = torch.finfo(p.dtype).tiny
        scale = (self.averages["variance"] / self.settings.narrowing**2).clamp(min=tiny)
        return one_hot_of(p), torch.exp(-below.square() / (2 * scale))

    def _aligned(self, p: Tensor) -> Tensor:
        return normalized(p / self.averages["mean"])
