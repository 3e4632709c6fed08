"""What a run learns from, and what it chooses by."""

from dataclasses import dataclass

from drift.data.budget import LabelBudget
from drift.data.examples import Labeled, Unlabeled


@dataclass(frozen=True)
class TrainingData:
    """What a run learns from and chooses by.

    labeled: rows with gold labels, or with weak ones if `weak`: those make the start and are then thrown away.
    unlabeled: rows for the second phase; in the weak setting usually all. dev: gold labels to choose by, if any.
    gold_labels: how many were used to train, where that is not to be seen from the others.
    """

    labeled: Labeled
    unlabeled: Unlabeled | None = None
    dev: Labeled | None = None
    weak: bool = False
    gold_labels: int | None = None

    @property
    def budget(self) -> LabelBudget:
        used = self.gold_labels
        if used is None:
            used = 0 if self.weak else self.labeled.size
        return LabelBudget(used, 0 if self.dev is None else self.dev.size)
