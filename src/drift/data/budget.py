"""The label budget: every gold label a run saw, those for choosing included."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LabelBudget:
    """Gold labels by what they were used for. Weak labels cost nobody's time and do not count; test is scored once."""

    train: int = 0
    dev: int = 0

    @property
    def total(self) -> int:
        return self.train + self.dev

    def __str__(self) -> str:
        return f"{self.total:,} gold labels ({self.train:,} to train, {self.dev:,} dev to choose)"
