"""DRIFT, detached or not: the same game, in which the student ignores or anticipates its teacher's response.

    L = L_sup(θS) + λ mean ω KL(ỹ ‖ f(x, θS)),   ỹ and ω from the teacher, θT <- α θT + (1 - α) θS

Detached (`self-training`), ỹ and ω are constants; DRIFT (the paper's Eqs. 3, 4 and 9) adds the gradient through the
teacher, (1 - α) ∂L/∂θT; with `coupling="shared"`, through the student's Jacobian (see `Game`). Semi-supervised batches
have both terms; weakly supervised batches have no labelled part in the second phase.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from drift.core import Game
from drift.core.forward import Inputs
from drift.core.game import Coupling, PseudoLabel, TeacherMode
from drift.core.strategy import SoftStrategy
from drift.data.examples import Batch
from drift.errors import ConfigError
from drift.methods.materials import Pool
from drift.methods.method import Backward, Context, Method
from drift.methods.shares import (
    NOISE,
    LabelsAre,
    Shares,
    estimate_shares,
    label_shares,
    predicted_shares,
    refine_shares,
)
from drift.models.linear import is_linear
from drift.models.protocols import computes_full_graph, has_regularizer
from drift.settings import Settings

SHARES = ("shares", "first_shares")  # in the state of a method
PRIORS = ("auto", "uniform", "labels")  # a prior by name
MOST_PREDICTED = 4096  # unlabelled rows from whose predictions shares are estimated
REFINE_EVERY, MOST_REFINED = 100, 1024  # steps between refinements of the estimate, and rows that are predicted for one


class SelfTrainingSettings(Settings):
    """Settings of the game."""

    renamed: ClassVar[Mapping[str, str]] = {"spared": "unbalanced_class"}

    alpha: float = Field(0.9, ge=0, le=1, description="Weight of the old teacher in the average; α in the paper.")
    tau: float = Field(
        0.5, gt=0, description="Temperature of the pseudo-labels; values below 1 sharpen. τ in the paper."
    )
    class_mass: bool = Field(True, description="Balance the pseudo-labels of each batch by class.")
    prior: tuple[float, ...] | dict[str, float] | Literal["auto", "uniform", "labels"] | None = Field(
        "auto",
        description="Class shares to balance towards: auto (estimated from the start's predictions), uniform (the"
        " paper), labels (shares among the labels), a list in class order, or {class: share}.",
    )
    prior_noise: float = Field(
        NOISE,
        ge=0,
        description="prior=auto: variance of the start's class shares, times the number of labels. Larger values shrink"
        " the estimate more towards equal shares.",
    )
    unbalanced_class: int | None = Field(
        None, ge=0, description="Index of a class to exclude from the balancing; for token tagging, 0 is the tag O."
    )
    reweight: bool = Field(True, description="Weight examples by the teacher's certainty; ω in the paper.")
    differentiate_labels: bool = Field(
        True, description="DRIFT: differentiate through the pseudo-labels; DrPL in the paper."
    )
    differentiate_weights: bool = Field(
        True, description="DRIFT: differentiate through the sample weights; DrW in the paper."
    )
    pseudo_label: PseudoLabel = Field("unlabeled", description="Which rows get pseudo-labels: unlabeled or all.")
    unlabeled_weight: float = Field(1.0, ge=0, description="Weight of the self-training term, λ; 1 in the paper.")
    own_loss: bool = Field(
        False, description="Add the model's own regulariser to the loss, such as GRAND's consistency."
    )
    teacher_mode: TeacherMode = Field(
        "eval", description="Mode of the teacher's forward pass: eval, or train (with dropout)."
    )

    @field_validator("prior", mode="before")
    @classmethod
    def _one_share_per_class(cls, prior: Any) -> Any:
        # Checked by hand, because pydantic would report all types of the union for every mistake.
        if prior is None or prior in PRIORS:  # None: a configuration of 0.1, in which it meant uniform
            return "uniform" if prior is None else prior
        if isinstance(prior, Mapping):
            prior = {str(name): share for name, share in prior.items()}
        shares = prior.values() if isinstance(prior, dict) else prior
        if isinstance(prior, (dict, list, tuple)) and all(map(_is_finite, shares)):
            return prior
        raise ValueError(
            f"a prior is {', '.join(PRIORS)}, or one number per class: a list in class order, or {{class: share}}"
        )


def _is_finite(share: Any) -> bool:
    try:
        return math.isfinite(float(share))
    except (TypeError, ValueError):
        return False


class GameMethod(Method):
    """Base of methods that play a `Game`. A subclass builds its game in `make_game`."""

    has_teacher = True

    def __init__(self, student: nn.Module, settings: Any, context: Context = Context()) -> None:
        super().__init__(student, settings, context)
        self.game = self.make_game(settings, context)
        self.game.checks_loss = (
            False  # losses may be the method's own, and the trainer's guard names the rows of a bad one
        )
        self.own_loss = bool(getattr(settings, "own_loss", False))  # not every method has this setting

    @abstractmethod
    def make_game(self, settings: Any, context: Context) -> Game:
        """Build the game of `self.student`. settings, context: as for the constructor."""

    @classmethod
    def around(cls, game: Game) -> "GameMethod":
        """Return a method that plays an existing game, for training loops without method settings."""
        return _ExistingGame(game.student, game, Context(game.teacher, game.stacked, game.single_process))

    @property
    def teacher(self) -> nn.Module:
        return self.game.teacher

    def start(self, probe: Inputs = None) -> None:
        self.game.reset()
        self.game.probe = probe

    def loss(self, batch: Batch) -> Tensor:
        loss = self.game.loss(unlabeled=batch.unlabeled, labeled=batch.labeled, totals=batch.totals)
        regularizer = self._regularizer()
        return loss if regularizer is None else loss + regularizer

    def _regularizer(self) -> Tensor | None:
        """Return the student's own regulariser, summed over trials; None if it has none or `own_loss` is off."""
        if not self.own_loss or not has_regularizer(self.student):
            return None
        return torch.as_tensor(self.student.regularizer().sum())

    def backward(self, loss: Tensor, *, backward: Backward | None = None, merge: bool = True) -> None:
        self.game.backward(loss, backward=backward, merge=merge)

    def accumulate(self, batches: Sequence[Batch], *, backward: Backward | None = None) -> Tensor:
        regularizer = self._regularizer()
        if regularizer is not None:
            (backward or torch.autograd.backward)(regularizer)  # first: the game's backward records complete gradients
        loss = self.game.accumulate(
            [{"unlabeled": batch.unlabeled, "labeled": batch.labeled} for batch in batches], backward=backward
        )
        return loss if regularizer is None else loss + regularizer.detach()

    def follow(self) -> None:
        self.game.follow()

    def copy_every(self, steps: int) -> None:
        """Make the next `follow` copy the student if so many steps are complete, and otherwise keep the teacher."""
        self.game.alpha = 0.0 if (self.game.steps + 1) % steps == 0 else 1.0

    def diagnostics(self) -> dict[str, Any]:
        last = self.game.last
        if last is None or last.self_trained is None:
            return {}
        parts = {"self_trained": float(last.self_trained.mean())}
        if last.supervised is not None:
            parts["supervised"] = float(last.supervised.mean())
        return {**parts, **self.game.diagnostics().as_dict()}

    def probe_labels(self) -> Tensor | None:
        return self.game.probe_labels

    def state_dict(self) -> dict[str, Any]:
        return self.game.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.game.load_state_dict(state)


class _ExistingGame(GameMethod):
    """Plays the game that it gets in place of settings."""

    def make_game(self, settings: Game, context: Context) -> Game:
        return settings


class SelfTraining(GameMethod):
    """DRIFT with a detached teacher: soft, balanced and weighted labels of a moving average, treated as constants.

    Conventional self-training has hard labels: `HardSelfTraining`.
    """

    name = "self-training"
    summary = "DRIFT, detached: soft, balanced labels of a moving-average teacher, treated as constants"
    inherited = None
    settings_type = SelfTrainingSettings
    relative_cost = 7 / 3

    def __init__(self, student: nn.Module, settings: Any, context: Context = Context()) -> None:
        super().__init__(student, settings, context)
        self.known_labels = context.labels
        self.first_shares: list[Shares] = []  # estimated at the start of the game; `shares` are refined
        estimated = settings.class_mass and settings.prior == "auto" and settings.unbalanced_class is None
        if estimated and context.labels is not None and not context.labels.weak:
            self.refresh_every = REFINE_EVERY

    def coupling_of(self, settings: Any) -> Coupling:
        """How the student's gradient goes through the teacher. Self-training has no setting for it."""
        return "detached"

    def make_game(self, settings: SelfTrainingSettings, context: Context) -> Game:
        if isinstance(settings.prior, dict):
            raise ConfigError(
                f"prior names classes ({', '.join(settings.prior)}), which the method does not know;"
                " give one share per class, in class order"
            )
        return Game(
            self.student,
            **settings.model_dump(exclude={"own_loss", "prior", "prior_noise", "coupling"}),
            prior=None if isinstance(settings.prior, str) else settings.prior,
            coupling=self.coupling_of(settings),
            teacher=context.teacher,
            full_graph=computes_full_graph(self.student),
            stacked=context.stacked,
            single_process=context.single_process,
        )

    def refresh(self, pool: Pool) -> None:
        """Estimate the class shares that pseudo-labels are balanced towards; refine the estimate during the game."""
        settings, known = self.settings, self.known_labels
        if not settings.class_mass or settings.prior not in ("auto", "labels") or known is None:
            return
        if self.first_shares:
            if any(each.refinable for each in self.first_shares):
                self._refine(self._predicted(pool, MOST_REFINED))
            return
        trials = len(pool.rows) if self.stacked else 1
        codes = known.codes.expand(trials, -1).cpu().numpy()
        labels = [row[row >= 0] for row in codes]  # words without a tag have -1
        predicted = self._predicted(pool, MOST_PREDICTED)
        if settings.prior == "labels":
            self.first_shares = [label_shares(row, predicted.shape[-1]) for row in labels]
        elif settings.unbalanced_class is not None:  # only the ratios among the other classes count
            self.first_shares = list(map(predicted_shares, predicted))
        else:
            estimate = partial(
                estimate_shares,
                labels_are=known.labels_are,
                weak=known.weak,
                biased=known.biased,
                noise=settings.prior_noise,
            )
            self.first_shares = list(map(estimate, predicted, labels))
        self._balance_towards(self.first_shares)

    def _refine(self, predicted: np.ndarray) -> None:
        pairs = zip(predicted, self.first_shares, strict=True)
        self._balance_towards([refine_shares(p, first) if first.refinable else first for p, first in pairs])

    def _predicted(self, pool: Pool, most: int) -> np.ndarray:
        """The student's probabilities on rows spread evenly over the pool, `(trials, n, C)`. most: rows."""
        rows = pool.rows.shape[-1]
        places = torch.linspace(0, rows - 1, min(rows, most)).round().long()
        self.student.eval()
        probabilities = pool.ask(self.predict_proba, places.expand(*pool.rows.shape[:-1], -1))
        self.student.train()
        return (probabilities if self.stacked else probabilities.unsqueeze(0)).cpu().numpy()

    def _balance_towards(self, shares: list[Shares]) -> None:
        self.shares = shares
        values = tuple(each.values for each in shares)
        assert isinstance(self.game.strategy, SoftStrategy)
        self.game.strategy = replace(self.game.strategy, prior=values if self.stacked else values[0])

    def state_dict(self) -> dict[str, Any]:
        shares = {name: [asdict(each) for each in getattr(self, name)] for name in SHARES}
        return {**super().state_dict(), **shares}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict({name: value for name, value in state.items() if name not in SHARES})
        shares, first = ([_shares(**each) for each in state.get(name, ())] for name in SHARES)  # 0.1 had none
        self.first_shares = first or shares
        if shares:
            self._balance_towards(shares)


def _shares(values: Sequence[float], source: str, trust: float = 0.0, labels_are: LabelsAre | None = None) -> Shares:
    return Shares(tuple(map(float, values)), source, float(trust), labels_are)


class DriftSettings(SelfTrainingSettings):
    """Settings of the game, and how the student's gradient goes through the teacher."""

    coupling: Coupling | Literal["auto"] = Field(
        "auto",
        description="differentiable: a backward through the teacher, as in the paper; shared: through the student's"
        " Jacobian instead, without that backward; detached: none, which is self-training. auto: shared for linear"
        " heads on fixed vectors, where both are the same, and otherwise differentiable.",
    )


class Drift(SelfTraining):
    """Differentiable self-training: the student anticipates its teacher's response. The paper's method."""

    name = "drift"
    summary = "differentiable self-training: the student anticipates its teacher's response (the paper's method)"
    settings_type = DriftSettings
    relative_cost = 3

    def coupling_of(self, settings: DriftSettings) -> Coupling:
        coupling: Coupling | Literal["auto"] = getattr(
            settings, "coupling", "auto"
        )  # settings of self-training have none
        if coupling != "auto":
            return coupling
        return "shared" if is_linear(self.student) else "differentiable"
