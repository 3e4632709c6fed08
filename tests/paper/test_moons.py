"""Two moons: stacked trials equal single trials, and methods are what their titles say."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from drift.errors import ConfigError
from drift.models.mlp import mlp
from drift.paper.demos import moons
from drift.paper.demos.moons import STUDIED_METHODS, MoonsConfig, Trials, compare, run, stuck_trial
from drift.paper.demos.two_moons import two_moons
from drift.paper.self_training import DETACHED, LEE

SEEDS = (0, 1, 2)
SHORT = MoonsConfig(initial_epochs=10, epochs=3)


def weights(module: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def by_hand(config: MoonsConfig, seed: int, name: str) -> tuple[list[float], list[Tensor]]:
    """One seed as a plain loop: accuracies and weights, at the start and after every epoch."""
    hard, period = name.startswith("Self-training"), {"100)": 100, "250)": 250}.get(name.split()[-1], 1)
    soft = name.startswith("Soft")
    balanced, weighted = not soft or "class mass" in name, not soft or "weights" in name
    steps = 0
    data = two_moons(seed=seed, noise=config.noise)
    torch.manual_seed(seed)
    student = mlp(2, 2, hidden=(config.hidden,), activation="tanh")
    shuffle = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(student.parameters(), lr=config.learning_rate)
    for _ in range(config.initial_epochs):
        optimizer.zero_grad()
        nn.functional.cross_entropy(student(data.x_labeled), data.y_labeled).backward()
        optimizer.step()
    teacher = mlp(2, 2, hidden=(config.hidden,), activation="tanh")
    teacher.load_state_dict(student.state_dict())
    optimizer = torch.optim.Adam(student.parameters(), lr=config.learning_rate)

    def score() -> float:
        return float((student(data.x_test).argmax(1) == data.y_test).double().mean())

    accuracy, path = [score()], [weights(student)]
    for _ in range(config.epochs):
        x_u = data.x_unlabeled[torch.randperm(len(data.x_unlabeled), generator=shuffle)]
        for x in x_u.split(config.batch_size):
            student.zero_grad()
            teacher.zero_grad()
            sharp = torch.softmax(teacher(x), 1) ** (1 / config.tau)
            y = sharp / sharp.sum(0) if balanced else sharp
            y = y / y.sum(1, keepdim=True)
            omega = 1 + (y * y.log()).sum(1) / np.log(2) if weighted else torch.ones(len(x))
            ell = omega * (y * (y.log() - torch.log_softmax(student(x), 1))).sum(1)
            if hard:
                ell = nn.functional.cross_entropy(student(x), teacher(x).argmax(1), reduction="none")
            (nn.functional.cross_entropy(student(data.x_labeled), data.y_labeled) + ell.mean()).backward()
            with torch.no_grad():
                for s, t in zip(student.parameters(), teacher.parameters(), strict=True):
                    if name == "DRIFT":
                        s.grad += (1 - config.alpha) * t.grad
            optimizer.step()
            steps += 1
            kept = (0.0 if steps % period == 0 else 1.0) if hard else config.alpha
            with torch.no_grad():
                for s, t in zip(student.parameters(), teacher.parameters(), strict=True):
                    t.copy_(kept * t + (1 - kept) * s)
        accuracy.append(score())
        path.append(weights(student))
    return accuracy, path


@pytest.fixture(scope="module")
def short() -> dict[str, Trials]:
    return compare(SHORT, SEEDS, [*STUDIED_METHODS], keep=range(SHORT.epochs + 1))


@pytest.mark.parametrize("name", STUDIED_METHODS)
def test_stacked_trials_equal_a_plain_loop(short: dict[str, Trials], name: str) -> None:
    for trial, seed in enumerate(SEEDS):
        accuracy, path = by_hand(SHORT, seed, name)
        assert short[name].accuracy[trial].tolist() == pytest.approx(accuracy, rel=1e-4)
        for epoch, expected in enumerate(path):
            trained = weights(short[name].students[epoch].trial(trial))
            assert torch.allclose(trained, expected, rtol=1e-4, atol=1e-4), (seed, epoch)


@pytest.mark.parametrize("name", STUDIED_METHODS)
def test_stacked_trials_equal_runs_without_stacking(short: dict[str, Trials], name: str) -> None:
    for trial, seed in enumerate(SEEDS):
        alone = run(SHORT, [seed], name, stacked=False)
        assert short[name].accuracy[trial].tolist() == pytest.approx(alone.accuracy[0].tolist(), rel=1e-4)


def test_a_trial_does_not_depend_on_its_neighbours(short: dict[str, Trials]) -> None:
    other = run(SHORT, [7, 2], "DRIFT", keep=[SHORT.epochs])
    mine, theirs = short["DRIFT"].students[SHORT.epochs].trial(2), other.students[SHORT.epochs].trial(1)
    assert torch.allclose(weights(mine), weights(theirs), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(weights(mine), weights(other.students[SHORT.epochs].trial(0)), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("name", [name for name in STUDIED_METHODS if name != "DRIFT"])
def test_all_methods_start_from_the_same_student_and_then_part(short: dict[str, Trials], name: str) -> None:
    theirs, ours = short[name], short["DRIFT"]
    assert torch.equal(weights(theirs.students[0]), weights(ours.students[0]))
    assert np.array_equal(theirs.accuracy[:, 0], ours.accuracy[:, 0])
    assert not torch.allclose(weights(theirs.students[1]), weights(ours.students[1]), rtol=1e-3, atol=1e-3)


def test_drift_and_its_detached_form_differ_only_in_the_coupling() -> None:
    # With α = 1 the interaction is zero, so the results must be equal, including the order of the batches.
    frozen = compare(MoonsConfig(initial_epochs=5, epochs=2, alpha=1.0), SEEDS, (DETACHED, "DRIFT"), keep=[2])
    one, other = (trials.students[2] for trials in frozen.values())
    assert torch.equal(weights(one), weights(other))


def test_the_same_seeds_give_the_same_bits_whatever_the_threads(short: dict[str, Trials]) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        torch.manual_seed(99)
        state = torch.random.get_rng_state()
        again = run(SHORT, SEEDS, "DRIFT", keep=[SHORT.epochs])
        assert torch.get_num_threads() == 2
        assert torch.equal(state, torch.random.get_rng_state())
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(again.accuracy, short["DRIFT"].accuracy)
    assert torch.equal(weights(again.students[3]), weights(short["DRIFT"].students[3]))


def test_accuracy_is_measured_by_the_student_that_is_kept(short: dict[str, Trials]) -> None:
    for trial, seed in enumerate(SEEDS):
        data = two_moons(seed=seed, noise=SHORT.noise)
        for epoch, stack in short["DRIFT"].students.items():
            predicted = stack.trial(trial)(data.x_test).argmax(1)
            assert short["DRIFT"].accuracy[trial, epoch] == (predicted == data.y_test).double().mean()


def test_ticks_once_per_epoch_and_keeps_the_requested_epochs() -> None:
    ticks: list[int] = []
    results = compare(SHORT, [0], keep=[1], tick=lambda: ticks.append(1))
    assert len(ticks) == len(moons.COMPARED_METHODS) * SHORT.epochs
    assert all([*trials.students] == [1] for trials in results.values())
    assert all(trials.accuracy.shape == (1, SHORT.epochs + 1) for trials in results.values())


def test_the_stuck_trial_is_where_self_training_ends_furthest_behind() -> None:
    ends = {"DRIFT": [0.9, 0.95, 0.7], LEE: [0.8, 0.94, 0.9]}
    results = {name: Trials(np.array([[0.5, end] for end in values])) for name, values in ends.items()}
    assert stuck_trial(results) == 0


def test_several_seeds_without_stacking_are_refused() -> None:
    with pytest.raises(ConfigError, match="2 seeds without stacking"):
        run(SHORT, [0, 1], DETACHED, stacked=False)


def test_the_defaults_are_those_of_the_paper() -> None:
    config = moons.MoonsConfig()
    assert (config.hidden, config.initial_epochs, config.epochs) == (50, 50, 150)
    assert (config.learning_rate, config.alpha, config.tau) == (0.01, 0.5, 0.5)
