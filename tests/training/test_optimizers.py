"""Optimisers move what may move; schedules pass known points."""

import copy

import pytest
import torch
from torch import nn

from drift.models.stacked import Stacked
from drift.tasks.heads import MANY, decay_scale, linear_head
from drift.training.optimizers import make_optimizer, make_schedule
from drift.training.settings import TrainingSettings


def rates(steps: int, **settings: object) -> list[float]:
    """The learning rate that every step is taken with."""
    resolved = TrainingSettings(learning_rate=1.0, **settings)
    optimizer = make_optimizer(nn.Linear(2, 2), resolved, initial=False)
    schedule = make_schedule(optimizer, resolved, steps)
    found = []
    for _ in range(steps):
        found.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return found


def test_schedules_pass_known_points() -> None:
    assert rates(4, schedule="constant") == [1.0] * 4
    assert rates(4, schedule="linear") == [1.0, 0.75, 0.5, 0.25]
    assert rates(4, schedule="cosine") == pytest.approx([1.0, 0.5 + 0.125**0.5, 0.5, 0.5 - 0.125**0.5])


def test_with_less_time_than_steps_the_rate_reaches_0_when_time_is_up() -> None:
    settings = TrainingSettings(learning_rate=1.0, schedule="linear")
    optimizer = make_optimizer(nn.Linear(2, 2), settings, initial=False)
    passed = [0.0]
    schedule = make_schedule(optimizer, settings, 1000, lambda: passed[0])
    found = [schedule.get_last_lr()[0]]
    for passed[0] in (0.5, 0.9, 1.2):
        optimizer.step()
        schedule.step()
        found.append(schedule.get_last_lr()[0])
    assert found == pytest.approx([1.0, 0.5, 0.1, 0.0])


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_a_warm_up_rises_in_a_line_and_then_the_schedule_begins(schedule: str) -> None:
    found = rates(8, schedule=schedule, warmup_steps=3)
    assert found[:4] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert found[3:] == pytest.approx(rates(5, schedule=schedule))


def test_a_warm_up_longer_than_the_phase_never_ends() -> None:
    assert rates(2, schedule="linear", warmup_steps=9) == pytest.approx([0.1, 0.2])


def groups_of(student: nn.Module, *, initial: bool = False, **settings: object) -> list[dict]:
    return make_optimizer(student, TrainingSettings(**settings), initial=initial).param_groups


@pytest.mark.parametrize(("name", "kind"), [("adamw", "AdamW"), ("adam", "Adam"), ("sgd", "SGD")])
def test_the_optimiser_is_the_one_asked_for_with_its_numbers(name: str, kind: str) -> None:
    settings = TrainingSettings(optimizer=name, learning_rate=0.3, momentum=0.7)
    optimizer = make_optimizer(nn.Linear(2, 2), settings, initial=False)
    assert type(optimizer).__name__ == kind
    for group in optimizer.param_groups:
        assert group["lr"] == 0.3
        assert group.get("momentum") == (0.7 if name == "sgd" else None)


def test_what_a_module_names_is_not_decayed_inside_a_wrapper_either() -> None:
    class Pair(nn.Module):
        undecayed = ("second",)

        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(3))

    for student in (Pair(), nn.Sequential(Pair())):
        groups = groups_of(student, weight_decay=0.2)
        assert {parameter.numel(): group["weight_decay"] for group in groups for parameter in group["params"]} == {
            2: 0.2,
            3: 0.0,
        }


@pytest.mark.parametrize("name", ["adamw", "adam", "sgd"])
def test_weights_are_decayed_and_biases_and_scales_are_not(name: str) -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dense, self.norm = nn.Linear(2, 2), nn.LayerNorm(2)

    block = Block()
    groups = groups_of(block, optimizer=name, weight_decay=0.2)
    decay = {id(parameter): group["weight_decay"] for group in groups for parameter in group["params"]}
    assert {key: decay[id(parameter)] for key, parameter in block.named_parameters()} == {
        "dense.weight": 0.2,
        "dense.bias": 0.0,
        "norm.weight": 0.0,
        "norm.bias": 0.0,
    }


def test_each_phase_has_its_learning_rate_and_decay() -> None:
    def numbers(initial: bool, **settings: float) -> tuple[float, float]:
        group = groups_of(nn.Linear(2, 2), initial=initial, learning_rate=0.3, weight_decay=0.2, **settings)[0]
        return group["lr"], group["weight_decay"]

    assert numbers(True) == numbers(False) == (0.3, 0.2)
    other = dict(initial_learning_rate=0.1, initial_weight_decay=0.0)
    assert numbers(True, **other) == (0.1, 0.0)
    assert numbers(False, **other) == (0.3, 0.2)


def test_a_module_scales_its_decay_and_that_of_biases_stays_0() -> None:
    student = nn.Sequential(Stacked([linear_head(2, 3)] * 2, decay_scale=0.25))
    assert [group["weight_decay"] for group in groups_of(student, weight_decay=0.2)] == [0.05, 0.0]


def test_the_decay_of_heads_falls_in_proportion_to_the_classes_beyond_those_it_was_measured_with() -> None:
    assert [decay_scale(classes) for classes in (1, 2, MANY)] == [1.0] * 3
    assert [MANY / decay_scale(classes) for classes in (MANY + 1, 10 * MANY)] == pytest.approx([MANY + 1, 10 * MANY])


@pytest.mark.parametrize(("scale", "least", "most"), [(1.0, 2.0, 4.0), (decay_scale(300), 0.0, 0.2)])
def test_a_head_of_many_classes_learns_with_its_part_of_the_decay(scale: float, least: float, most: float) -> None:
    """Each class has a feature of its own; with all of the decay, the loss stays high."""
    C, settings = 300, TrainingSettings(optimizer="adam", learning_rate=0.01, weight_decay=0.3)
    student = Stacked([linear_head(C, C)], decay_scale=scale)
    optimizer = make_optimizer(student, settings, initial=True)
    for _ in range(60):
        loss = nn.functional.cross_entropy(student(C**0.5 * torch.eye(C)[None])[0], torch.arange(C))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert least < loss.item() < most


@pytest.mark.parametrize("name", ["adamw", "adam", "sgd"])
def test_frozen_parameters_are_left_alone(name: str) -> None:
    student = nn.Sequential(nn.Linear(2, 2).requires_grad_(False), nn.Linear(2, 2))
    before = [parameter.clone() for parameter in student.parameters()]
    optimizer = make_optimizer(student, TrainingSettings(optimizer=name, weight_decay=0.5), initial=True)
    student(torch.ones(3, 2)).sum().backward()
    optimizer.step()
    moved = [not torch.equal(parameter, kept) for parameter, kept in zip(student.parameters(), before, strict=True)]
    assert moved == [False, False, True, True]


@pytest.mark.parametrize(("name", "kind"), [("adamw", torch.optim.AdamW), ("adam", torch.optim.Adam)])
def test_steps_are_those_of_torchs_own_optimiser_to_the_bit(name: str, kind: type[torch.optim.Optimizer]) -> None:
    torch.manual_seed(0)
    modules = [nn.Linear(3, 2)]
    modules.append(copy.deepcopy(modules[0]))
    ours = make_optimizer(modules[0], TrainingSettings(optimizer=name, weight_decay=0.1), initial=False)
    groups = [{"params": [modules[1].weight], "weight_decay": 0.1}, {"params": [modules[1].bias], "weight_decay": 0.0}]
    theirs = kind(groups, lr=TrainingSettings().learning_rate, fused=True)  # type: ignore[call-arg]
    for _ in range(3):
        for module, optimizer in zip(modules, (ours, theirs), strict=True):
            module(torch.arange(6.0).reshape(2, 3)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        ours.load_state_dict(copy.deepcopy(ours.state_dict()))
    assert torch.equal(modules[0].weight, modules[1].weight)
    assert torch.equal(modules[0].bias, modules[1].bias)
    assert all(parameter.grad is None for parameter in modules[0].parameters())
