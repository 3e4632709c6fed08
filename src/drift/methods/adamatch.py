"""AdaMatch (Berthelot et al., 2021): aligned labels, and a threshold relative to the confidence on labelled texts.

    ỹ = normalize(p · E[p_L] / E[p]),   c = τ mean over labelled x of max_j p_Lj,   p, p_L = f(x, θ), no gradient
    L = L_sup(θ) + w(t) mean over x of 1[max_j ỹ_j ≥ c] H(ỹ, f(x', θ)),   w(t) = w (1 - cos(π min(1, t/R))) / 2

E is the mean over the batch. As published, τ = 0.9, and R is half of training. See `drift.methods.matching` for the
views.

Differs from paper: no random interpolation of logits, which works through batch normalisation.
Differs from paper: labelled texts have one view.
Differs from paper: without labelled rows, as with weak labels, E[p_L] is uniform and c is relative to the confidence on
unlabelled texts.
Differs from paper: R is 200 steps; set it to half of training.steps.
"""

import math

from pydantic import Field
from torch import Tensor

from drift.methods.matching import Matching, MatchingSettings, normalized


class AdaMatchSettings(MatchingSettings):
    """Which labels count, and from when."""

    threshold: float = Field(
        0.9, ge=0, le=1, description="Least probability of a label that counts, relative to labelled texts, τ."
    )
    ramp_steps: int = Field(200, ge=1, description="Steps over which the weight of unlabelled texts rises, R.")


class AdaMatch(Matching):
    """Aligned labels above a relative threshold. See the module's docstring."""

    name = "adamatch"
    summary = "labels aligned with the labelled texts, above a threshold relative to them (AdaMatch)"
    settings_type = AdaMatchSettings
    reads_labeled = True
    settings: AdaMatchSettings

    def observe(self, p: Tensor, p_labeled: Tensor | None) -> None:
        mean = p.mean(-2, keepdim=True)
        known = mean.new_ones(mean.shape) / mean.shape[-1] if p_labeled is None else p_labeled.mean(-2, keepdim=True)
        confidence = (p if p_labeled is None else p_labeled).amax(-1).mean(-1, keepdim=True)
        self.averages = {"ratio": known / mean, "threshold": self.settings.threshold * confidence}

    def judge(self, p: Tensor) -> tuple[Tensor, Tensor]:
        aligned = normalized(p * self.averages["ratio"])
        return aligned, (aligned.amax(-1) >= self.averages["threshold"]).to(p)

    @property
    def weight(self) -> float:
        share = min(1.0, (self.steps + 1) / self.settings.ramp_steps)
        return self.settings.unlabeled_weight * (1 - math.cos(math.pi * share)) / 2
