"""The training data of a run."""

from dataclasses import dataclass

from drift.data.examples import Labeled, Unlabeled
from drift.data.labels import LabelBudget
from drift.methods.shares import LabelsAre


@dataclass(frozen=True)
class TrainingData:
    """What a run is trained on, and what its model selection uses.

    labeled: rows with gold labels, or with weak ones if `weak`: those are used only to initialise the model.
    unlabeled: rows for the second phase; with weak labels usually all rows.
    dev: gold labels for model selection, if any.
    gold_labels: how many gold labels were used to train, if the other fields do not say so.
    labels_are: how labelled rows were chosen, see `estimate_shares`; None if nobody said.
    left_out: gold labels that a trial is not trained on, `(trials, h)`, for cross-fitting; see `drift.data.folds`.
    biased: whether weak labels may cover some classes better than others.
    second: with weak labels, labelled rows of the second phase: gold labels that there are beside them.
    start_suffices: why a second phase is not expected to help, for a reader; empty if it may.
    begun: the student is θinit already, so that there is no first phase if a second one follows.
    """

    labeled: Labeled
    unlabeled: Unlabeled | None = None
    dev: Labeled | None = None
    weak: bool = False
    gold_labels: int | None = None
    labels_are: LabelsAre | None = None
    left_out: Labeled | None = None
    second: Labeled | None = None
    biased: bool = True
    start_suffices: str = ""
    begun: bool = False

    @property
    def budget(self) -> LabelBudget:
        used = self.gold_labels
        if used is None:
            used = 0 if self.weak else self.labeled.size
        return LabelBudget(used, 0 if self.dev is None else self.dev.size)
