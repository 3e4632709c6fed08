"""When a loss no longer falls: the rule that ends the first phase of runs and of `DriftClassifier`."""

from collections.abc import Mapping
from typing import Any, Literal

STABLE = 2  # looks in a row without progress after which a phase has converged


class Plateau:
    """Whether a loss still falls: means over windows of steps are compared.

    There is a plateau when `STABLE` windows in a row were no better than the best one before them by `tolerance` times
    the first loss, or times the best mean. The first loss suits a loss that goes to 0, which falls by half forever.

    window: steps. tolerance: share of the loss named by `relative_to`. begun: if given, a loss whose best mean is above
    this part of its first loss has no plateau, because learning may begin late.
    """

    def __init__(
        self,
        window: int,
        tolerance: float,
        *,
        relative_to: Literal["first", "best"] = "first",
        begun: float | None = None,
    ) -> None:
        self.window, self.tolerance = window, tolerance
        self.relative_to, self.begun = relative_to, begun
        self.reset()

    def reset(self) -> None:
        self.total, self.count, self.stale = 0.0, 0, 0
        self.first: float | None = None
        self.best: float | None = None

    def add(self, loss: float) -> bool:
        """Count the loss of one step; returns whether there is a plateau."""
        self.first = loss if self.first is None else self.first
        self.total, self.count = self.total + loss, self.count + 1
        if self.count == self.window:
            mean, self.total, self.count = self.total / self.count, 0.0, 0
            if self.best is not None:
                scale = self.first if self.relative_to == "first" else self.best
                self.stale = 0 if mean < self.best - self.tolerance * scale else self.stale + 1
            self.best = mean if self.best is None else min(self.best, mean)
        if self.stale < STABLE or self.best is None:
            return False
        return self.begun is None or self.best < self.begun * self.first

    def state_dict(self) -> dict[str, float | None]:
        return {name: getattr(self, name) for name in ("total", "count", "stale", "first", "best")}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
