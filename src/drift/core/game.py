"""The Stackelberg game of student and teacher (Eqs. 3, 4 and 9, Algorithm 1), around any module that returns logits."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from drift.core.accumulation import Forward, send_back, whole
from drift.core.checks import (
    check_alpha,
    check_choice,
    check_kind,
    check_labels,
    check_micro_batches,
    check_pair,
    is_number,
)
from drift.core.diagnostics import Diagnostics, mass_shares, terms
from drift.core.forward import Inputs, joined, log_probabilities
from drift.core.labels import hard_labels
from drift.core.losses import supervised_loss
from drift.core.merging import Merger
from drift.core.objective import Objective, Parts, Totals
from drift.core.randomness import random_state, set_random_state
from drift.core.strategy import Response, SoftStrategy, Strategy
from drift.core.teacher import Follower, copy_of, in_evaluation, undisturbed_buffers
from drift.errors import ConfigError, ShapeError, StateError

Coupling = Literal["differentiable", "detached"]
PseudoLabel = Literal["unlabeled", "all"]
TeacherMode = Literal["eval", "train"]
Player = Literal["student", "teacher"]


class Game:
    """Play differentiable self-training: the student leads, the teacher follows as its moving average.

        min over θS of  L = L_sup(θS) + λ mean ℓ_S(x, F(θT(θS)), θS),   θT(θS) = α θT_prev + (1 - α) θS

    One step of Algorithm 1, with any optimiser over the student's parameters:

        loss = game.loss(unlabeled=x_u, labeled=(x_l, y_l))   # semi-supervised, Eq. 3
        game.backward(loss)                                   # student.grad = leader + (1 - α) interaction, Eq. 4
        optimizer.step(); optimizer.zero_grad()
        game.follow()                                         # θT <- α θT + (1 - α) θS, Eq. 2

    Leave `labeled` out for the weakly supervised form (Eq. 9): pseudo-labels on everything, no supervised term. Leave
    `unlabeled` out for plain supervised learning or, with `pseudo_label="all"`, for self-distillation.

    student: any module whose call returns logits `(N, C)`, or an object with `.logits`.
    alpha: weight of the old teacher in the average; α in the paper.
    tau, class_mass, prior, reweight, differentiate_labels, differentiate_weights, unbalanced_class: see `SoftStrategy`.
    strategy: another follower's strategy in place of the one those seven describe.
    coupling: "differentiable" anticipates the teacher; "detached" is conventional self-training.
    pseudo_label: which rows get pseudo-labels: "unlabeled" as in Eq. 4, or "all", B_u ∪ B_l, as in Algorithm 1.
    unlabeled_weight: λ, 1 in the paper.
    teacher: a second module like the student, when a copy will not do (wrapped or sharded models).
    teacher_mode: "eval" switches dropout off and uses the averaged BatchNorm statistics; "train" does neither.
    full_graph: the student answers labelled and unlabelled rows in one call. For models of a whole graph, which compute
        every node whichever are asked for; inputs are then row numbers, `(N,)` or `(trials, N)`.
    stacked: the first dimension of logits, labels and parameters is independent trials; losses are summed over it.
    single_process: this process plays by itself. Otherwise, where torch.distributed is in use, a batch is spread over all
        processes: each calls with its own rows, and class masses and means are those of all of them together.
    """

    def __init__(
        self,
        student: nn.Module,
        *,
        alpha: float = 0.9,
        tau: float = 0.5,
        class_mass: bool = True,
        prior: Sequence[float] | None = None,
        reweight: bool = True,
        differentiate_labels: bool = True,
        differentiate_weights: bool = True,
        unbalanced_class: int | None = None,
        strategy: Strategy | None = None,
        coupling: Coupling = "differentiable",
        pseudo_label: PseudoLabel = "unlabeled",
        unlabeled_weight: float = 1.0,
        teacher: nn.Module | None = None,
        teacher_mode: TeacherMode = "eval",
        full_graph: bool = False,
        stacked: bool = False,
        single_process: bool = False,
    ) -> None:
        check_kind("student", student, nn.Module, "give a torch module that returns logits")
        if teacher is not None:
            check_kind("teacher", teacher, nn.Module, "give a second module like the student, or None for a copy")
        if strategy is not None:
            check_kind("strategy", strategy, Strategy, "give an instance of a drift.Strategy, such as HardStrategy()")
        described = SoftStrategy(
            tau, class_mass, prior, reweight, differentiate_labels, differentiate_weights, unbalanced_class
        )
        if strategy is not None and described != SoftStrategy():
            raise ConfigError(
                "strategy is given and so are settings it replaces (tau, class_mass, ...); set them there"
            )
        check_choice("coupling", coupling, Coupling)
        check_choice("pseudo_label", pseudo_label, PseudoLabel)
        check_choice("teacher_mode", teacher_mode, TeacherMode)
        if not (is_number(unlabeled_weight) and unlabeled_weight >= 0):
            raise ConfigError(f"unlabeled_weight={unlabeled_weight!r}: give a weight of 0 or more; the paper uses 1")

        self.student = student
        self.teacher = copy_of(student) if teacher is None else teacher
        self.alpha = alpha
        self.strategy: Strategy = strategy or described
        self.coupling, self.pseudo_label, self.teacher_mode = coupling, pseudo_label, teacher_mode
        self.unlabeled_weight, self.stacked, self.single_process = unlabeled_weight, stacked, single_process
        self.full_graph = full_graph
        self.steps = 0
        self.last: Parts | None = None

        self._follower = Follower(self.teacher, student)
        self._merger = Merger(self._follower)
        self.teacher.train(teacher_mode == "train")
        self._classes: int | None = None
        self._owed = False  # a backward has reached, or will reach, the teacher, and was not merged yet
        self._everywhere = Parts()  # the teacher's part of the last loss, over all processes' rows
        self._last_inputs: tuple[Inputs, ...] = ()
        self._probe: Inputs = None
        self._probe_labels: Tensor | None = None

    @property
    def _objective(self) -> Objective:
        # Built anew each time: strategy and weight may be changed between steps, as schedules do.
        return Objective(self.strategy, self.unlabeled_weight, self.stacked, self.single_process)

    @property
    def probe(self) -> Inputs:
        """The inputs on which `diagnostics` counts flips; setting others starts the count anew."""
        return self._probe

    @probe.setter
    def probe(self, inputs: Inputs) -> None:
        self._probe, self._probe_labels = inputs, None

    @property
    def probe_labels(self) -> Tensor | None:
        """The teacher's hard labels of the probe at the last `diagnostics`, `(N,)`; None before the first."""
        return self._probe_labels

    @property
    def alpha(self) -> float:
        """Weight of the old teacher, in [0, 1]; may be changed between steps."""
        return self._alpha

    @alpha.setter
    def alpha(self, value: float) -> None:
        self._alpha = check_alpha(value)

    @property
    def couples(self) -> bool:
        """Whether the interaction term can be other than zero."""
        return self.coupling == "differentiable" and self.alpha < 1.0 and self.strategy.differentiable

    def loss(
        self,
        unlabeled: Inputs = None,
        labeled: tuple[Inputs, Tensor] | None = None,
        *,
        totals: Totals | None = None,
    ) -> Tensor:
        """The student's loss L on one batch (Eq. 3; Eq. 9 without `labeled`), a scalar; its parts are in `last`.

        unlabeled: inputs without labels. labeled: inputs and class indices `(N,)`. totals: rows of the whole step, of
        which this is a micro-batch: their losses then sum to a mean over all of its rows, however many each has.
        """
        self._merger.begin()
        return self._score(self._forward(unlabeled, labeled), totals)

    def initial_loss(self, labeled: tuple[Inputs, Tensor] | None) -> Tensor:
        """L_sup alone (Eq. 1), a scalar: for finding θinit, before there is a teacher to speak of."""
        x, y = check_pair(labeled)
        log_q = self._log_f(self.student, x)
        return self._objective.mean(supervised_loss(log_q, check_labels(y, log_q))).sum()

    def respond(self, *inputs: Inputs) -> Response:
        """The follower's move F(θT) on these inputs as one batch: pseudo-labels and weights, differentiable in θT.

        For losses of your own: build them on the response, then call `backward` on the result as usual. Over several
        processes it answers the rows of all of them together, and gives back this process's.
        """
        log_p = self._teach(*inputs)
        response, rows, omega = self._objective.answer(log_p)
        self._everywhere = Parts(log_p=rows.log_p.detach(), omega=omega)
        self._owed |= log_p.requires_grad
        return response

    def _forward(self, unlabeled: Inputs = None, labeled: tuple[Inputs, Tensor] | None = None) -> Forward:
        """Both players on one batch."""
        if unlabeled is None and labeled is None:
            raise ShapeError("loss() was given no data; pass unlabeled=, labeled=, or both")
        log_q_l = log_q_u = y = None
        inputs, log_q = [], []  # what gets a pseudo-label, and log f(x, θS) on it
        if labeled is not None:
            x_l, y = check_pair(labeled)
            if self.full_graph and unlabeled is not None:
                together = self._log_f(self.student, torch.cat([x_l, unlabeled], dim=-1))
                log_q_l, log_q_u = torch.split(together, [x_l.shape[-1], unlabeled.shape[-1]], dim=-2)
            else:
                log_q_l = self._log_f(self.student, x_l)
            y = check_labels(y, log_q_l)
            if self.pseudo_label == "all":
                inputs.append(x_l)
                log_q.append(log_q_l)
        if unlabeled is not None:
            inputs.append(unlabeled)
            log_q.append(self._log_f(self.student, unlabeled) if log_q_u is None else log_q_u)
        if not inputs:
            return Forward(log_q_l, y)
        return Forward(log_q_l, y, joined(log_q), self._teach(*inputs))

    def _teach(self, *inputs: Inputs) -> Tensor:
        """log f(x, θT), `(..., N, C)`, with a gradient if the student is to anticipate it."""
        self._follower.require_gradients(self.couples)
        with torch.set_grad_enabled(self.couples and torch.is_grad_enabled()), undisturbed_buffers(self.teacher):
            log_p = joined([self._log_f(self.teacher, x) for x in inputs])
        self._last_inputs = inputs
        return log_p

    def _score(self, played: Forward, totals: Totals | None = None) -> Tensor:
        pseudo = totals and totals.unlabeled + (totals.labeled if self.pseudo_label == "all" else 0)
        loss, self.last, self._everywhere = self._objective(played, totals and totals.labeled, pseudo)
        self._owed |= played.log_p is not None and played.log_p.requires_grad
        return loss

    def backward(self, loss: Tensor, *, backward: Callable[[Tensor], None] | None = None, merge: bool = True) -> None:
        """Fill student.grad with the Stackelberg gradient (Eq. 4): leader + (1 - α) ∂L/∂θT.

        backward: what to call in place of `loss.backward()`, such as `accelerator.backward`.
        merge: with gradient accumulation under a wrapper that reduces gradients, pass False for all but the last
            micro-batch: the two terms are merged once an optimiser step, after reductions and before clipping.
        """
        if not isinstance(loss, Tensor) or not loss.requires_grad:
            raise StateError("backward() needs the loss as game.loss() returned it, computed with gradients on")
        self._merger.begin()
        (backward or torch.autograd.backward)(loss)
        if merge:
            self._merge()
        self._merger.note()

    def accumulate(
        self, batches: Sequence[Mapping[str, Any]], *, backward: Callable[[Tensor], None] | None = None
    ) -> Tensor:
        """`loss` and `backward` over micro-batches, equal to those of the whole batch; returns the loss, detached.

        batches: the arguments of `loss` for each, all with the same keys. Class masses and means are those of all rows
        together; it takes two passes (see `drift.core.accumulation`). For micro-batch class masses, which cost nothing
        more, call `loss` and `backward` on each instead.
        """
        batches = list(batches)
        check_micro_batches(batches)
        self._merger.begin()
        states, leaves = [], []
        with torch.no_grad(), undisturbed_buffers(self.student):
            for batch in batches:
                states.append(random_state())
                leaves.append(self._forward(**batch).leaves(self.couples))
        loss = self._score(whole(leaves))
        torch.autograd.backward(loss)
        for batch, state, collected in zip(batches, states, leaves, strict=True):
            set_random_state(state)
            send_back(self._forward(**batch), collected, backward or torch.autograd.backward)
        self._merge()
        self._merger.note()
        return loss.detach()

    def _merge(self) -> None:
        self._merger.merge(1.0 - self.alpha)
        self._owed = False

    def follow(self) -> None:
        """Move the teacher after the optimiser's step: θT <- α θT + (1 - α) θS (Eq. 2)."""
        if self._owed:
            raise StateError(
                "follow() before the teacher's gradient was merged: call game.backward(loss), not loss.backward(),"
                " else this is plain self-training (for that, say coupling='detached')"
            )
        self._follower.follow(self.alpha)
        self.steps += 1

    def reset(self) -> None:
        """Start the game from the student as it is now: θT <- θS = θinit."""
        self._follower.reset()
        self._follower.take_gradients()
        self.steps, self._probe_labels, self._owed = 0, None, False

    @torch.no_grad()
    def predict_proba(self, inputs: Inputs, *, by: Player = "student") -> Tensor:
        """Class probabilities `(N, C)` in evaluation mode, by the student unless asked otherwise."""
        check_choice("by", by, Player)
        module = self.student if by == "student" else self.teacher
        with in_evaluation(module):
            return self._log_f(module, inputs).exp()

    def diagnostics(self) -> Diagnostics:
        """How the game stands, measured now: call it after `backward`, before gradients are clipped or cleared.

        Flips are counted on `game.probe`, the inputs of the first call unless you set them, since the call before; over
        processes, on each one's own. Sharded models need the call on every process.
        """
        log_p, omega = self._everywhere.log_p, self._everywhere.omega
        if log_p is None or omega is None:
            raise StateError("diagnostics() before any loss with pseudo-labels; call loss() and backward() first")
        if not self._merger.untouched:
            raise StateError(
                "diagnostics() needs the gradients as backward() left them; call it before clipping or zero_grad()"
            )
        if self.probe is None:
            self.probe = self._last_inputs[-1]
        with torch.no_grad(), in_evaluation(self.teacher):  # looking draws no random numbers, and sees no noise
            labels = hard_labels(self.strategy.respond(self._log_f(self.teacher, self.probe)).log_y)
        before, self._probe_labels = self._probe_labels, labels
        flips = None
        if before is not None and before.shape == labels.shape:
            flips = int((before.to(labels.device) != labels).sum())
        leader_norm, interaction_norm, angle = terms(
            self._merger.parameters, self._merger.interaction, self._merger.scale
        )
        return Diagnostics(
            leader_norm=leader_norm,
            interaction_norm=interaction_norm,
            angle=angle,
            mean_omega=float(omega.mean()),
            class_mass=mass_shares(log_p, getattr(self.strategy, "tau", 1.0)),
            flips=flips,
            probe_size=labels.numel(),
        )

    def state_dict(self) -> dict[str, Any]:
        """Everything `load_state_dict` needs to go on exactly; the student and the optimiser save themselves.

        Of the probe only its labels: set `game.probe` to the same inputs before loading, and flips go on too.
        """
        return {
            "teacher": self._follower.state(),
            "alpha": self.alpha,
            "steps": self.steps,
            "probe_labels": self._probe_labels,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` gave, onto a game over the same architecture."""
        if not isinstance(state, Mapping):
            raise StateError(f"not a game's state but a {type(state).__name__}; pass what game.state_dict() returned")
        missing = {"teacher", "alpha", "steps", "probe_labels"} - set(state)
        if missing:
            raise StateError(f"not a game's state: {sorted(missing)} missing; pass what game.state_dict() returned")
        alpha = check_alpha(state["alpha"])
        self._follower.load_state(state["teacher"])
        self.alpha, self.steps, self._probe_labels = alpha, state["steps"], state["probe_labels"]
        self._owed = False
        self._merger.forget()

    def _log_f(self, module: nn.Module, inputs: Inputs) -> Tensor:
        log_p = log_probabilities(module, inputs, stacked=self.stacked)
        classes = log_p.shape[-1]
        if self._classes not in (None, classes):
            raise ShapeError(
                f"logits have {classes} classes, earlier ones had {self._classes}; keep the class set fixed"
            )
        self._classes = classes
        return log_p
