"""What a run learns from, and what it chooses by."""

from dataclasses import dataclass

from drift.data.budget import LabelBudget
from drift.tasks.examples import Labeled, Unlabeled


@dataclass(frozen=True)
class TrainingData:
    """What a run learns from and chooses by.

    labeled: rows with gold labels, or with weak ones if `weak`: those make the start and are then thrown away.
    unlabeled: rows for the second phase; in the weak setting usually all. dev: gold labels to choose by, if any.
    """

    labeled: Labeled
    unlabeled: Unlabeled | None = None
    dev: Labeled | None = None
    weak: bool = False

    @property
    def budget(self) -> LabelBudget:
        return LabelBudget(0 if self.weak else self.labeled.size, 0 if self.dev is None else self.dev.size)
