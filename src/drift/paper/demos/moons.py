"""The paper's first example (section TwoMoon, figures 1 and 2): forms of self-training and DRIFT on two moons.

A two-layer network with 50 tanh units, 50 supervised epochs, then self-training with Adam at 0.01, α = τ = 0.5. Data,
start and batches are the same for every method; DRIFT and its detached form differ only in the coupling. All trials of
a configuration are trained at once.
"""

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat

import numpy as np
import torch
from torch import Tensor, nn

from drift.data.examples import Batch
from drift.errors import ConfigError
from drift.methods import METHODS
from drift.methods.method import Context, Method
from drift.methods.self_training import SelfTraining
from drift.models.mlp import mlp
from drift.models.stacked import Stacked
from drift.paper.demos.two_moons import two_moons
from drift.paper.self_training import COPIED, DETACHED, FORMS, LEE, Form
from drift.training.loop import Phase
from drift.training.seeding import seeded
from drift.training.threads import threads

STUDIED_METHODS = {**FORMS, "DRIFT": Form("drift", {"coupling": "differentiable"})}
COMPARED_METHODS = (LEE, COPIED, DETACHED, "DRIFT")  # of these, those of the figures


@dataclass(frozen=True)
class MoonsConfig:
    """The paper's settings. It does not give noise and batch size; docs/two-moons.md explains the values used here."""

    noise: float = 0.1
    batch_size: int = 250
    hidden: int = 50
    initial_epochs: int = 50
    epochs: int = 150
    learning_rate: float = 0.01
    alpha: float = 0.5
    tau: float = 0.5


@dataclass
class Trials:
    """The trials of one method.

    accuracy: on test, `(trials, epochs + 1)`; epoch 0 is θinit. students: stacked students by epoch, if kept.
    """

    accuracy: np.ndarray
    students: dict[int, Stacked] = field(default_factory=dict)


@threads(1)
def run(
    config: MoonsConfig,
    seeds: Sequence[int],
    name: str,
    *,
    keep: Sequence[int] = (),
    tick: Callable[[], None] = lambda: None,
    stacked: bool = True,
    networks: Sequence[nn.Module] = (),
) -> Trials:
    """Train one trial per seed, all at once.

    name: of the method, in `STUDIED_METHODS`.
    keep: epochs whose stacked students are kept.
    tick: called after every epoch.
    stacked: False trains a single seed as a plain module, for tests and timing.
    networks: initial networks, one per seed; default: new ones.
    """
    if not stacked and len(seeds) != 1:
        raise ConfigError(f"{len(seeds)} seeds without stacking; call run once per seed")

    def joined(parts: Sequence[Tensor]) -> Tensor:
        return torch.stack(list(parts)) if stacked else parts[0]

    data = [two_moons(seed=seed, noise=config.noise) for seed in seeds]
    x_l, y_l = joined([d.x_labeled for d in data]), joined([d.y_labeled for d in data])
    x_test, y_test = joined([d.x_test for d in data]), joined([d.y_test for d in data])
    networks = networks or [_network(config, seed) for seed in seeds]
    student = Stacked(networks) if stacked else networks[0]
    method = _method(STUDIED_METHODS[name], student, config, stacked=stacked)
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    Phase(method, repeat([Batch((x_l, y_l))]), _adam(student, config), initial=True).run(range(config.initial_epochs))
    method.start()
    optimizer = _adam(student, config)
    trials = Trials(np.empty((len(seeds), config.epochs + 1)))
    for epoch in range(config.epochs + 1):
        if epoch:
            x_u = joined([_shuffled(d.x_unlabeled, generator) for d, generator in zip(data, generators, strict=True)])
            batches = torch.split(x_u, config.batch_size, dim=-2)
            feed = ([Batch((x_l, y_l), x)] for x in batches)
            Phase(method, feed, optimizer).run(range(len(batches)))
            tick()
        student.eval()
        predicted = method.predict_proba(x_test).argmax(-1)
        trials.accuracy[:, epoch] = (predicted == y_test).double().mean(-1).numpy()
        if epoch in keep and isinstance(student, Stacked):
            trials.students[epoch] = copy.deepcopy(student)
    return trials


def compare(
    config: MoonsConfig,
    seeds: Sequence[int],
    names: Sequence[str] = COMPARED_METHODS,
    *,
    keep: Sequence[int] = (),
    tick: Callable[[], None] = lambda: None,
) -> dict[str, Trials]:
    """Train several methods on the same trials, each in its own thread: torch releases Python's lock.

    names: of the methods. keep, tick: as for `run`.
    """
    # Not in the threads: they would share torch's global generator.
    networks = [_network(config, seed) for seed in seeds]
    with ThreadPoolExecutor() as pool:
        runs = {name: pool.submit(run, config, seeds, name, keep=keep, tick=tick, networks=networks) for name in names}
        return {name: future.result() for name, future in runs.items()}


def stuck_trial(results: dict[str, Trials]) -> int:
    """The trial in which conventional self-training ends furthest behind DRIFT, for figure 2."""
    return int((results["DRIFT"].accuracy[:, -1] - results[LEE].accuracy[:, -1]).argmax())


def _method(form: Form, student: nn.Module, config: MoonsConfig, *, stacked: bool) -> Method:
    """The method with the paper's α and τ, which hard labels do not have, and with equal class shares."""
    kind = METHODS[form.method]
    papers = {"alpha": config.alpha, "tau": config.tau, "prior": "uniform"} if issubclass(kind, SelfTraining) else {}
    return kind(student, kind.settings_type.read({**papers, **form.settings}), Context(stacked=stacked))


def _network(config: MoonsConfig, seed: int) -> nn.Module:
    with seeded(seed):
        return mlp(2, 2, hidden=(config.hidden,), activation="tanh")


def _adam(student: nn.Module, config: MoonsConfig) -> torch.optim.Optimizer:
    return torch.optim.Adam(student.parameters(), lr=config.learning_rate, fused=True)


def _shuffled(x: Tensor, generator: torch.Generator) -> Tensor:
    return x[torch.randperm(len(x), generator=generator)]
