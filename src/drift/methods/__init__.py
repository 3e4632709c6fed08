"""Every method there is, by the name users call it."""

from drift.methods.method import Method
from drift.methods.self_training import Drift, SelfTraining
from drift.methods.supervised import Supervised
from drift.methods.train_on_dev import TrainOnDev

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        Drift,
        SelfTraining,
        Supervised,
        TrainOnDev,
    )
}
