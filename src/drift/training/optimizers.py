"""The optimizer and the learning-rate schedule of a phase."""

import inspect
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from drift.core.sharded import is_sharded
from drift.models.protocols import HasDecayScale, HasUndecayed
from drift.training.settings import TrainingSettings


def make_optimizer(student: nn.Module, settings: TrainingSettings, *, initial: bool) -> Optimizer:
    """The optimizer of the first or the second phase; each has its own, because the game starts afresh at θinit.

    Weight decay is not applied to biases (a decayed bias cannot learn that classes are skewed), to the scales of
    normalisation layers, and to what a module names in `undecayed`. A module's `decay_scale` multiplies it.
    """
    rate, decay = settings.learning_rate, settings.weight_decay
    if initial:
        rate = rate if settings.initial_learning_rate is None else settings.initial_learning_rate
        decay = decay if settings.initial_weight_decay is None else settings.initial_weight_decay
    undecayed_parameters: set[nn.Parameter] = set()
    for module in student.modules():  # all of them: the student itself may be inside a wrapper
        if "norm" in type(module).__name__.lower():
            undecayed_parameters.update(module.parameters(recurse=False))
        if isinstance(module, HasUndecayed):
            undecayed_parameters.update(module.get_parameter(name) for name in module.undecayed)
        if isinstance(module, HasDecayScale):
            decay *= module.decay_scale
    groups: list[dict[str, Any]] = [{"params": [], "weight_decay": decay}, {"params": [], "weight_decay": 0.0}]
    for name, parameter in student.named_parameters():
        if parameter.requires_grad:
            groups[name.endswith("bias") or parameter in undecayed_parameters]["params"].append(parameter)
    groups = [group for group in groups if group["params"]]
    # fused: one kernel over all parameters; on CPUs too several times faster than a loop over them.
    options: dict[str, Any] = {"lr": rate, "fused": True}
    if settings.optimizer == "sgd":
        sharded = any(map(is_sharded, student.parameters()))
        options |= {"momentum": settings.momentum, "fused": not sharded}  # torch has none for shards
    return OPTIMIZERS[settings.optimizer](groups, **options)


def _uncompiled(optimizer: Any) -> Any:
    """The same optimizer without torch's precautions against its compiler, which import it and so take a second.

    Ours are never inside compiled code. The methods below are decorated in torch; what they decorate is kept.
    """
    names = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    methods = {name: inspect.unwrap(getattr(optimizer, name)) for name in names}
    methods["step"] = torch.no_grad()(inspect.unwrap(optimizer.step))
    return type(optimizer.__name__, (optimizer,), methods)


OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    "adamw": _uncompiled(AdamW),
    "adam": _uncompiled(Adam),
    "sgd": _uncompiled(SGD),
}


def make_schedule(
    optimizer: Optimizer, settings: TrainingSettings, steps: int, spent: Callable[[], float] = lambda: 0.0
) -> LambdaLR:
    """A warm-up from 0, then a constant rate, or a linear or cosine decay to 0 at the last step.

    spent: the share of the phase's time that has passed. If time will be up before the last step, the rate decays with
    it.
    """

    def share(step: int) -> float:
        if step < settings.warmup_steps:
            return (step + 1) / (settings.warmup_steps + 1)
        done = max((step - settings.warmup_steps) / max(1, steps - settings.warmup_steps), min(1.0, spent()))
        if settings.schedule == "linear":
            return max(0.0, 1.0 - done)
        if settings.schedule == "cosine":
            return 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))
        return 1.0

    return LambdaLR(optimizer, share)
