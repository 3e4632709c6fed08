"""The result of a training run."""

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from drift.data.examples import Labeled
from drift.methods.shares import Shares
from drift.training.convergence import PhaseEnd
from drift.training.flips import Flips
from drift.training.start import Choice


@dataclass
class Outcome:
    """The result of a run. Scores are lists with one dictionary per trial; None without a dev set.

    start: dev scores of θinit. best, best_steps: of the student that was kept, and the step it was kept from.
    start_predictions: probabilities of θinit on the parts that were observed. left_out: labels that were left out for
        cross-fitting, and probabilities of the final student on them. choice: start or game, without a dev set.
    shares: estimated class shares, one entry per trial.
    flips: which unlabelled rows changed class between θinit and the end; None without a second phase.
    entries: the trace. ends: why each phase ended, and after how many steps.
    """

    steps: int
    seconds: float
    start: list[dict[str, float]] | None
    best: list[dict[str, float]] | None
    best_steps: list[int] | None
    flips: Flips | None = None
    entries: list[dict[str, Any]] = field(default_factory=list)
    ends: list[PhaseEnd] = field(default_factory=list)
    start_predictions: dict[str, Tensor] = field(default_factory=dict)
    left_out: tuple[Labeled, Tensor] | None = None
    choice: Choice | None = None
    shares: list[Shares] = field(default_factory=list)
