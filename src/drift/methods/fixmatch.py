"""FixMatch (Sohn et al., 2020): confident labels of a text train its augmentation.

    L = L_sup(θ) + w mean over x of 1[max_j p_j ≥ τ] H(argmax_j p_j, f(x', θ)),   p = f(x, θ), no gradient

As published, τ = 0.95 and w = 1. See `drift.methods.matching` for the views.
"""

from pydantic import Field
from torch import Tensor

from drift.methods.matching import Matching, MatchingSettings, one_hot_of


class FixMatchSettings(MatchingSettings):
    """Which labels count."""

    threshold: float = Field(0.95, ge=0, lt=1, description="Least probability of a label that counts, τ.")


class FixMatch(Matching):
    """Hard labels above a fixed threshold. See the module's docstring."""

    name = "fixmatch"
    summary = "a text's confident label trains its augmentation (FixMatch)"
    settings_type = FixMatchSettings
    settings: FixMatchSettings

    def judge(self, p: Tensor) -> tuple[Tensor, Tensor]:
        return one_hot_of(p), (p.amax(-1) >= self.settings.threshold).to(p)
