"""The paper's algorithm: pseudo-labels, weights, losses, teacher, game. Depends on torch only."""

from drift.core.game import Game
from drift.core.labels import hard_labels, log_class_mass, log_soft_labels, sample_weight
from drift.core.losses import kl_divergence, student_loss, supervised_loss
from drift.core.objective import Parts, Totals
from drift.core.strategy import HardStrategy, Response, SoftStrategy, Strategy

__all__ = [
    "Game",
    "HardStrategy",
    "Parts",
    "Response",
    "SoftStrategy",
    "Strategy",
    "Totals",
    "hard_labels",
    "kl_divergence",
    "log_class_mass",
    "log_soft_labels",
    "sample_weight",
    "student_loss",
    "supervised_loss",
]
