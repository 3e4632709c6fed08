"""The Stackelberg game of student and teacher (Eqs. 3, 4 and 9, Algorithm 1), around any module that returns logits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from drift.core.accumulation import Forward, accumulate
from drift.core.checks import (
    check_alpha,
    check_choice,
    check_finite,
    check_labels,
    check_micro_batches,
    check_pair,
    check_state,
    check_type,
    is_number,
    is_own,
    mark_own,
)
from drift.core.diagnostics import Diagnostics, changed_labels, mass_shares
from drift.core.forward import Inputs
from drift.core.labels import hard_labels
from drift.core.losses import supervised_loss
from drift.core.merging import Merger
from drift.core.objective import Objective, Parts, Totals
from drift.core.players import Players
from drift.core.renaming import renamed_arguments
from drift.core.repeating import Repeatable
from drift.core.strategy import Response, SoftStrategy, Strategy
from drift.core.teacher import copy_of, undisturbed_buffers
from drift.errors import ConfigError, StateError

Coupling = Literal["differentiable", "shared", "detached"]
PseudoLabel = Literal["unlabeled", "all"]
TeacherMode = Literal["eval", "train"]
Player = Literal["student", "teacher"]


@renamed_arguments(spared="unbalanced_class", one_call="full_graph", alone="single_process")
class Game:
    """Play differentiable self-training: the student leads, the teacher follows as its moving average.

        min over θS of  L = L_sup(θS) + λ mean ℓ_S(x, F(θT(θS)), θS),   θT(θS) = α θT_prev + (1 - α) θS

    One step of Algorithm 1, with any optimiser over the student's parameters:

        loss = game.loss(unlabeled=x_u, labeled=(x_l, y_l))   # semi-supervised, Eq. 3
        game.backward(loss)                                   # student.grad = leader + (1 - α) interaction, Eq. 4
        optimizer.step(); optimizer.zero_grad()
        game.follow()                                         # θT <- α θT + (1 - α) θS, Eq. 2

    Without `labeled` it is the weakly supervised form (Eq. 9): all rows get pseudo-labels, and there is no supervised
    term. Without `unlabeled` it is supervised learning or, with `pseudo_label="all"`, self-distillation.

    Parameters
    ----------
    student : torch.nn.Module
        Any module whose call returns logits `(N, C)`, or an object with `.logits`.
    alpha : float, default=0.9
        Weight of the old teacher in the moving average; α in the paper.
    tau, class_mass, prior, reweight, differentiate_labels, differentiate_weights, unbalanced_class
        See `SoftStrategy`, which has the same defaults.
    strategy : Strategy, default=None
        Used instead of the `SoftStrategy` that those seven arguments describe.
    coupling : {"differentiable", "shared", "detached"}, default="differentiable"
        "differentiable": with the interaction term, by a backward through the teacher (Eq. 4). "shared": with the
        student's Jacobian in place of the teacher's, g_S + (1 - α) g_T through one backward of the student, where g are
        the gradients of L with respect to the logits of each player. It needs no backward through the teacher. It is
        exact if logits are linear in the parameters and both players see the same features (no dropout); see
        `drift.core.shared`. "detached": without the interaction, which is conventional self-training.
        Differs from paper: Eq. 4 is "differentiable".
    pseudo_label : {"unlabeled", "all"}, default="unlabeled"
        Which rows get pseudo-labels: those of Eq. 4, or all, B_u ∪ B_l, as in Algorithm 1.
    unlabeled_weight : float, default=1.0
        Weight of the unlabelled loss; λ in the paper.
    teacher : torch.nn.Module, default=None
        A second module of the same architecture, for students that cannot be copied (wrapped or sharded models).
    teacher_mode : {"eval", "train"}, default="eval"
        "eval" switches dropout off and uses the averaged BatchNorm statistics; "train" does neither.
    full_graph : bool, default=False
        Call the student once for labelled and unlabelled rows together. Use it for models of a whole graph, which
        compute all nodes in any case. Inputs are then row numbers, `(N,)` or `(trials, N)`.
    stacked : bool, default=False
        The first dimension of logits, labels and parameters is independent trials; losses are summed over it.
    single_process : bool, default=False
        Ignore other processes. By default, if torch.distributed is initialised, a batch is spread over all processes:
        each process passes its own rows, and class masses and means are taken over all rows.
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
        check_type("student", student, nn.Module, "give a torch module that returns logits")
        if teacher is not None:
            check_type("teacher", teacher, nn.Module, "give a second module like the student, or None for a copy")
        if strategy is not None:
            check_type("strategy", strategy, Strategy, "give an instance of a drift.Strategy, such as HardStrategy()")
        soft_strategy = SoftStrategy(
            tau, class_mass, prior, reweight, differentiate_labels, differentiate_weights, unbalanced_class
        )
        if strategy is not None and soft_strategy != SoftStrategy():
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
        self.strategy: Strategy = strategy or soft_strategy
        self.coupling, self.pseudo_label, self.teacher_mode = coupling, pseudo_label, teacher_mode
        self.unlabeled_weight, self.stacked, self.single_process = unlabeled_weight, stacked, single_process
        self.steps = 0
        self.last: Parts | None = None
        self.checks_loss = True  # finite, and of this game; False for callers with losses and checks of their own
        self._own = object()  # marks losses of this game
        self._responded = False  # whether a loss may be computed from `respond` or `play`, outside of this class

        self._players = Players(student, self.teacher, stacked=stacked, full_graph=full_graph)
        self._follower = self._players.follower
        self._merger = Merger(self._follower)
        self.teacher.train(teacher_mode == "train")
        self._unmerged = False  # whether the teacher has, or will get, a gradient that was not merged yet
        self._global_parts = Parts()  # the teacher's part of the last loss, over the rows of all processes
        self._probe: Inputs = None
        self._probe_labels: Tensor | None = None

    @property
    def _objective(self) -> Objective:
        # Built on each access: schedules may change strategy and weight between steps.
        return Objective(self.strategy, self.unlabeled_weight, self.stacked, self.single_process)

    @property
    def probe(self) -> Inputs:
        """The inputs on which `diagnostics` counts flips. Setting it restarts the count."""
        return self._probe

    @probe.setter
    def probe(self, inputs: Inputs) -> None:
        self._probe, self._probe_labels = inputs, None

    @property
    def probe_labels(self) -> Tensor | None:
        """The teacher's hard labels of the probe at the last call of `diagnostics`, `(N,)`; None before the first."""
        return self._probe_labels

    @property
    def alpha(self) -> float:
        """Weight of the old teacher, in [0, 1]. It may be changed between steps."""
        return self._alpha

    @alpha.setter
    def alpha(self, value: float) -> None:
        self._alpha = check_alpha(value)

    @property
    def full_graph(self) -> bool:
        """Whether the student is called once for labelled and unlabelled rows together."""
        return self._players.full_graph

    @property
    def couples(self) -> bool:
        """Whether the interaction term can be non-zero."""
        return self.coupling != "detached" and self.alpha < 1.0 and self.strategy.differentiable

    @property
    def _shares(self) -> bool:
        return self.couples and self.coupling == "shared"

    def loss(
        self,
        unlabeled: Inputs = None,
        labeled: tuple[Inputs, Tensor] | None = None,
        *,
        totals: Totals | None = None,
    ) -> Tensor:
        """The student's loss L on one batch (Eq. 3; Eq. 9 without `labeled`), a scalar. Its parts are in `game.last`.

        unlabeled: inputs without labels. labeled: inputs and class indices `(N,)`, or probabilities of the classes
        `(N, C)`. totals: number of rows in the whole step, if this batch is one micro-batch of it. The losses of the
        micro-batches then sum to the mean over all rows of the step, whatever their sizes.
        """
        self._merger.begin()
        loss = self._score(self._forward(unlabeled, labeled), totals)
        if self.checks_loss:
            check_finite(loss, unlabeled=unlabeled, labeled=labeled and labeled[0])
        return loss

    def initial_loss(self, labeled: tuple[Inputs, Tensor] | None) -> Tensor:
        """L_sup (Eq. 1), a scalar: the loss that trains θinit, before the teacher is used.

        labeled: inputs and class indices `(N,)`, or probabilities of the classes `(N, C)`.
        """
        x, y = check_pair(labeled)
        log_q = self._players.log_f(self.student, x)
        loss = self._objective.mean(supervised_loss(log_q, check_labels(y, log_q))).sum()
        mark_own([loss], self._own)
        if self.checks_loss:
            check_finite(loss, labeled=x)
        return loss

    def respond(self, *inputs: Inputs) -> Response:
        """The follower's strategy F(θT) on these inputs as one batch: pseudo-labels and weights, differentiable in θT.

        For custom losses: compute the loss from the response, then call `backward` on it as usual. With several
        processes, class masses are taken over the rows of all of them, and the response holds this process's rows.

        With coupling="shared" the student runs on these inputs, too, because its Jacobian there is needed. If the loss
        uses the student's predictions of the same inputs, call `play`, which runs it once.
        """
        if not self._shares:
            return self._answer(self._teach(inputs))
        with undisturbed_buffers(self.student):
            return self.play(*inputs)[1]

    def play(self, *inputs: Inputs) -> tuple[Tensor, Response]:
        """Both players on the same inputs as one batch: log f(x, θS), `(..., N, C)`, and F(θT); see `respond`."""
        lead = partial(self._players.predictions, inputs)
        before = self._merger.shared.before(lead) if self._shares else None
        log_q = lead()
        return log_q, self._answer(self._teach(inputs, log_q, before))

    def _teach(self, inputs: Sequence[Inputs], log_q: Tensor | None = None, before: Repeatable | None = None) -> Tensor:
        """log f(x, θT) with the gradient of the interaction. log_q, before: see `SharedJacobian.tie`."""
        log_p = self._players.teach(*inputs, differentiable=self.couples and not self._shares)
        if log_q is None or before is None:
            return log_p
        return self._merger.shared.tie(log_p, log_q, 1.0 - self.alpha, before)

    def _answer(self, log_p: Tensor) -> Response:
        response, rows, omega = self._objective.answer(log_p)
        self._global_parts = Parts(log_p=rows.log_p.detach(), omega=omega)
        self._unmerged |= log_p.requires_grad
        self._responded = True
        return response

    def _forward(self, unlabeled: Inputs = None, labeled: tuple[Inputs, Tensor] | None = None) -> Forward:
        lead = partial(self._players.lead, unlabeled, labeled, label_all=self.pseudo_label == "all")
        before = self._merger.shared.before(partial(_log_q, lead)) if self._shares else None
        forward, inputs = lead()
        return replace(forward, log_p=self._teach(inputs, forward.log_q, before)) if inputs else forward

    def _score(self, forward: Forward, totals: Totals | None = None) -> Tensor:
        pseudo = totals and totals.unlabeled + (totals.labeled if self.pseudo_label == "all" else 0)
        loss, self.last, self._global_parts = self._objective(forward, totals and totals.labeled, pseudo)
        self._unmerged |= forward.log_p is not None and forward.log_p.requires_grad
        mark_own([loss], self._own)
        return loss

    def backward(self, loss: Tensor, *, backward: Callable[[Tensor], None] | None = None, merge: bool = True) -> None:
        """Fill student.grad with the Stackelberg gradient (Eq. 4): leader + (1 - α) ∂L/∂θT.

        loss: as returned by `loss`, or computed from `respond`.
        backward: called instead of `loss.backward()`, for example `accelerator.backward`.
        merge: with gradient accumulation under a wrapper that reduces gradients, pass False for all but the last
            micro-batch: the two terms are merged once per optimiser step, after reductions and before clipping.
        """
        if not isinstance(loss, Tensor) or not loss.requires_grad:
            raise StateError("backward() needs the loss as game.loss() returned it, computed with gradients on")
        if self.checks_loss and not self._responded and not is_own(loss, self._own):
            raise StateError(
                "backward() was given a loss that this game did not compute; pass what game.loss() returned"
            )
        self._merger.begin()
        (backward or torch.autograd.backward)(loss)
        if merge:
            self._merge()
        self._merger.note()

    def accumulate(
        self, batches: Sequence[Mapping[str, Any]], *, backward: Callable[[Tensor], None] | None = None
    ) -> Tensor:
        """`loss` and `backward` over micro-batches, equal to those of the whole batch; returns the loss, detached.

        batches: the keyword arguments of `loss` for each micro-batch, all with the same keys. backward: see `backward`.

        Class masses and means are taken over all rows, which takes two passes (see `drift.core.accumulation`). For
        class masses per micro-batch, at no extra cost, call `loss` and `backward` on each micro-batch instead.
        """
        batches = list(batches)
        check_micro_batches(batches)
        self._merger.begin()
        loss = accumulate(
            batches,
            self._forward,
            self._score,
            student=self.student,
            differentiable_teacher=self.couples,
            backward=backward or torch.autograd.backward,
        )
        self._merge()
        self._merger.note()
        if self.checks_loss:
            check_finite(loss)
        return loss

    def _merge(self) -> None:
        self._merger.merge(1.0 - self.alpha)
        self._unmerged = False

    def follow(self) -> None:
        """Move the teacher after the optimiser's step: θT <- α θT + (1 - α) θS (Eq. 2)."""
        if self._unmerged:
            raise StateError(
                "follow() before the teacher's gradient was merged: call game.backward(loss), not loss.backward()"
                " (for plain self-training, set coupling='detached')"
            )
        self._follower.follow(self.alpha)
        self.steps += 1
        self._responded = False

    def reset(self) -> None:
        """Restart the game from the current student: θT <- θS = θinit."""
        self._follower.reset()
        self._follower.take_gradients()
        self.steps, self._probe_labels, self._unmerged = 0, None, False

    @torch.no_grad()
    def predict_proba(self, inputs: Inputs, *, by: Player = "student") -> Tensor:
        """Class probabilities `(N, C)` in evaluation mode.

        inputs: what the module is called with. by: which player predicts, "student" or "teacher".
        """
        check_choice("by", by, Player)
        module = self.student if by == "student" else self.teacher
        return self._players.predict(module, inputs).exp()

    def diagnostics(self) -> Diagnostics:
        """Measure the game. Call it after `backward`, before gradients are clipped or cleared.

        Flips are the pseudo-labels of `game.probe` that changed since the previous call. The probe defaults to the
        inputs of the first call; each process has its own. Sharded models need the call on every process.

        With coupling="shared" the two terms were never apart, so the interaction is computed here: the student's
        forward on the batch is repeated, with the same dropout, and one backward. This needs the call before the
        optimiser's step and, over several processes, on each of them.
        """
        log_p, omega = self._global_parts.log_p, self._global_parts.omega
        if log_p is None or omega is None:
            raise StateError("diagnostics() before any loss with pseudo-labels; call loss() and backward() first")
        if not self._merger.untouched:
            raise StateError(
                "diagnostics() needs the gradients as backward() left them; call it before clipping or zero_grad()"
            )
        if self.probe is None:
            self.probe = self._players.last_inputs[-1]
        with torch.no_grad():
            labels = hard_labels(self.strategy.respond(self._players.predict(self.teacher, self.probe)).log_y)
        flips, self._probe_labels = changed_labels(self._probe_labels, labels), labels
        leader_norm, interaction_norm, angle = self._merger.terms()
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
        """The state that `load_state_dict` needs to resume exactly, without the student and the optimiser.

        Of the probe, only the labels are included: set `game.probe` to the same inputs before loading to resume flips.
        """
        return {
            "teacher": self._follower.state(),
            "alpha": self.alpha,
            "steps": self.steps,
            "probe_labels": self._probe_labels,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of `state_dict` in a game over the same architecture."""
        check_state(state, ("teacher", "alpha", "steps", "probe_labels"))
        alpha = check_alpha(state["alpha"])
        self._follower.load_state(state["teacher"])
        self.alpha, self.steps, self._probe_labels = alpha, state["steps"], state["probe_labels"]
        self._unmerged = False
        self._merger.forget()


def _log_q(lead: Callable[[], tuple[Forward, Any]]) -> Tensor:
    log_q = lead()[0].log_q
    assert log_q is not None  # only forwards with pseudo-labelled rows are repeated
    return log_q
