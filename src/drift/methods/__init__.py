"""Every method there is, by the name users call it."""

from drift.methods.bond import Bond
from drift.methods.cosine import Cosine
from drift.methods.graphmix import GraphMix
from drift.methods.graphvat import GraphVAT
from drift.methods.hard_self_training import HardSelfTraining
from drift.methods.mean_teacher import MeanTeacher
from drift.methods.method import Method
from drift.methods.mixtext import MixText
from drift.methods.self_training import Drift, SelfTraining
from drift.methods.supervised import Supervised
from drift.methods.train_on_dev import TrainOnDev
from drift.methods.uast import UAST
from drift.methods.uda import UDA
from drift.methods.vampire import Vampire
from drift.methods.westclass import WestClass

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        Drift,
        SelfTraining,
        Supervised,
        TrainOnDev,
        HardSelfTraining,
        MeanTeacher,
        Bond,
        UAST,
        UDA,
        MixText,
        Cosine,
        GraphVAT,
        GraphMix,
        WestClass,
        Vampire,
    )
}
