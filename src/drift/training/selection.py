"""Model selection on dev: the best student so far, for each trial."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from drift.training.sharding import local, wrapped_like


class Selection:
    """Keeps the student with the best dev score, and tells when there was no improvement for long.

    trials: number of trials of a stacked student, the first dimension of its tensors; each has its own best. None for a
        plain student.
    patience: dev evaluations without improvement after which a phase ends; None: never.
    """

    def __init__(self, student: nn.Module, *, trials: int | None = None, patience: int | None = None) -> None:
        self.student, self.trials, self.patience = student, trials, patience
        self.scores = torch.full((trials or 1,), -torch.inf, dtype=torch.float64)
        self.steps = torch.zeros(trials or 1, dtype=torch.long)
        self.looks_without = torch.zeros(trials or 1, dtype=torch.long)
        self.best: dict[str, Tensor] = {}
        self.best_scores: list[dict[str, float]] = [{}] * (trials or 1)

    @property
    def exhausted(self) -> bool:
        """Whether every trial had `patience` evaluations without a better score."""
        return self.patience is not None and bool((self.looks_without >= self.patience).all())

    @torch.no_grad()
    def look(self, step: int, scores: list[dict[str, float]]) -> None:
        """Record dev scores, one dictionary per trial. The first score decides; an equal score is no improvement."""
        current = torch.tensor([next(iter(trial.values())) for trial in scores], dtype=torch.float64)
        better = current > self.scores
        self.scores = torch.where(better, current, self.scores)
        pairs = zip(better, scores, self.best_scores, strict=True)
        self.best_scores = [new if improved else old for improved, new, old in pairs]
        self.steps[better] = step
        self.looks_without = torch.where(better, 0, self.looks_without + 1)
        for name, value in local(dict(self.student.state_dict())).items() if better.any() else ():
            if self.trials is None or name not in self.best:
                self.best[name] = value.detach().to("cpu", copy=True)
            else:
                self.best[name][better] = value.detach()[better.to(value.device)].cpu()

    def restore(self) -> None:
        """Load the weights of the best student, if there was an evaluation."""
        if self.best:
            self.student.load_state_dict(wrapped_like(self.best, dict(self.student.state_dict())))

    def state_dict(self) -> dict[str, Any]:
        return {
            "scores": self.scores,
            "steps": self.steps,
            "looks_without": self.looks_without,
            "best": self.best,
            "best_scores": self.best_scores,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.scores, self.steps = state["scores"], state["steps"]
        self.looks_without, self.best = state["looks_without"], dict(state["best"])
        self.best_scores = state["best_scores"]
