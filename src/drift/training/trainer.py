"""A training run from beginning to end: both phases of the paper, with model selection on dev and exact resume."""

import time
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from drift.core.teacher import copy_of
from drift.data.examples import Labeled, moved
from drift.errors import ConfigError, StateError
from drift.methods.method import Context, KnownLabels, Method
from drift.models.protocols import computes_full_graph, has_own_loss, has_regularizer
from drift.settings import Settings
from drift.training import snapshot
from drift.training.callbacks import GAME, PHASES, START, Callback, TrainingState
from drift.training.checkpoints import CHECKPOINTS, Checkpointer, Checkpoints
from drift.training.convergence import Convergence
from drift.training.data import TrainingData
from drift.training.devices import SingleProcess, Trackers
from drift.training.evaluation import Score, evaluate
from drift.training.feeds import Feed
from drift.training.flips import Flips, find_flips, watched_classes
from drift.training.guard import Guard
from drift.training.interrupt import interruptible
from drift.training.loop import Phase
from drift.training.optimizers import make_optimizer, make_schedule
from drift.training.outcome import Outcome
from drift.training.pool import AllUnlabeled
from drift.training.progress_bar import ProgressBar
from drift.training.run_folder import TRACE, RunFolder
from drift.training.schedule import Schedule
from drift.training.seeding import seeded
from drift.training.selection import Selection
from drift.training.settings import TrainingSettings
from drift.training.start import Observe, Start, back_to_start, choose, predictions_on
from drift.training.trace import Trace

PROBE = 32  # unlabelled rows on which changed pseudo-labels are counted


class Trainer:
    """Trains one student, or stacked trials of one, by one method.

    student: the module to start from; it is trained in place.
    method, method_settings: the class of the method, and its settings.
    score: scores from probabilities and labels; model selection uses the first.
    seeds: one per trial of a stacked student.
    machine: device, precision and processes.
    folder: where trace, checkpoints and predictions go; without one, nothing is written.
    callbacks: called after the built-in ones, and before a checkpoint is written.
    prepared_in: seconds that went before training and count towards `training.minutes`.
    observe: returns parts on which the start predicts when it is finished, for comparison with the end.
    """

    def __init__(
        self,
        student: nn.Module,
        data: TrainingData,
        settings: TrainingSettings,
        method: type[Method],
        method_settings: Settings,
        score: Score,
        *,
        seeds: tuple[int, ...] | None = None,
        machine: SingleProcess | None = None,
        folder: RunFolder | None = None,
        callbacks: Sequence[Callback] = (),
        observe: Observe | None = None,
        quiet: bool = True,
        prepared_in: float = 0.0,
    ) -> None:
        self.prepared_in = prepared_in
        self.observed_in = 0.0  # seconds of the start's predictions, which do not count towards them
        self.data, self.settings, self.score, self.folder, self.observe = data, settings, score, folder, observe
        self.machine = machine or SingleProcess()
        self.seeds, self.trials = seeds or (settings.seed,), None if seeds is None else len(seeds)
        self._check_parts(student)
        teacher = self.machine.wrap(copy_of(student)) if method.has_teacher else None
        known = KnownLabels(data.labeled.labels, data.weak, data.labels_are, data.biased)
        alone = type(self.machine) is SingleProcess
        context = Context(teacher, stacked=seeds is not None, single_process=alone, labels=known)
        self.method = method(self.machine.wrap(student), method_settings, context)
        plays = method.has_second_phase and not self.keeps_start
        begun = data.begun and plays and data.unlabeled is not None
        self.lengths = (0 if begun else settings.initial_steps, settings.steps if plays else 0)
        if self.lengths[1] and data.unlabeled is None and data.weak:
            raise ConfigError("weak labels are used only for the start; give unlabelled rows for the second phase")
        self.state = TrainingState(self.method)
        self.places: Tensor | None = None  # which unlabelled rows batches are drawn from, if the method chose some
        self.start_scores: list[dict[str, float]] | None = None  # on dev
        self.first_classes: Tensor | None = None  # of the watched unlabelled rows, at θinit
        self.start = Start()
        self.began = time.monotonic()
        self.seconds_before = 0.0  # seconds of training before the run was resumed
        self._make_callbacks(callbacks, quiet=quiet or self.machine.process != 0)

    def _make_callbacks(self, callbacks: Sequence[Callback], *, quiet: bool) -> None:
        folder, settings = self.folder, self.settings
        checkpoints = folder and Checkpoints(
            folder.path / CHECKPOINTS,
            keep=settings.keep_checkpoints,
            fingerprint=folder.fingerprint(),
            machine=self.machine,
        )
        writes = folder is not None and self.machine.process == 0
        self.trace = Trace(folder.path / TRACE if folder and writes else None, by_seed=self.trials is not None)
        self.guard = Guard(self.machine, folder)
        self.convergence = Convergence(self)
        self.user_callbacks = list(callbacks)
        self.checkpointer = Checkpointer(
            checkpoints or None,
            self.machine,
            every=settings.checkpoint_every,
            take=lambda: snapshot.take(self),
            resume=f"drift fit --resume -o {folder.path}" if folder else None,
        )
        self.callbacks: list[Callback] = [
            self.guard,
            self.trace,
            Trackers(self.machine),
            self.convergence,  # before the schedule, which evaluates the last student of a phase
            Schedule(self),
            *([] if quiet else [ProgressBar()]),
            *self.user_callbacks,
            self.checkpointer,  # last, so that a checkpoint holds the state of all the others
        ]

    def run(self, *, resume: bool = False) -> Outcome:
        """Train to the end. Ctrl-C saves a checkpoint and raises Interrupted, whose message says how to continue."""
        self.began = time.monotonic()
        try:
            with seeded(self.settings.seed + self.machine.process), interruptible() as self.checkpointer.interrupt:
                checkpoint = self.checkpointer.newest() if resume else None
                self.enter(checkpoint.state["at"] if checkpoint else 0)
                if checkpoint:
                    try:
                        snapshot.put_back(self, checkpoint.state, checkpoint.own)
                    except KeyError as error:
                        raise StateError(
                            f"the checkpoint lacks {error}: it was written by another version of drift; continue with"
                            " that version, or start again in another folder"
                        ) from error
                else:
                    self.trace.rewind(0)
                self.notify("on_run_begin")
                self._play()
                if self.state.phase == START:
                    before = self.seconds
                    self.start = Start.of(self)
                    self.observed_in = self.seconds - before
                    self.enter(1)
                    self.checkpointer.save(self.state)  # θinit is worth keeping
                    self._play()
        finally:
            self.notify("on_run_end")
        has_dev = self.data.dev is not None
        choice = choose(self) if self.may_return or self.keeps_start else None
        if choice is not None and not self.keeps_start:
            back_to_start(self, choice)
        left_out = self.data.left_out
        return Outcome(
            steps=self.state.total_steps,
            seconds=self.seconds,
            start=self.start_scores,
            best=self.selection.best_scores if has_dev else None,
            best_steps=self.selection.steps.tolist() if has_dev else None,
            flips=self._flips(),
            entries=self.trace.entries,
            ends=self.convergence.ends,
            start_predictions=self.start.predictions,
            left_out=None if left_out is None else (left_out, predictions_on(self, left_out)),
            choice=choice,
            shares=self.method.shares,
        )

    @property
    def keeps_start(self) -> bool:
        """Whether there is no second phase because the start suffices. With a dev set, dev scores decide that."""
        return bool(self.data.start_suffices) and self.settings.return_to_start and self.data.dev is None

    @property
    def may_return(self) -> bool:
        """Whether the start may be kept in place of the game: there is no dev set to choose the student by."""
        plays = self.lengths[1] > 0 and self.data.unlabeled is not None
        return self.settings.return_to_start and plays and self.data.dev is None and not self.machine.sharded

    def notify(self, hook: str, *arguments: Any) -> None:
        """Call a hook of every callback."""
        for callback in self.callbacks:
            getattr(callback, hook)(self.state, *arguments)

    @property
    def seconds(self) -> float:
        """Seconds of training so far, including before a resume; steps that were lost in a crash do not count."""
        return self.seconds_before + time.monotonic() - self.began

    def enter(self, at: int) -> None:
        """Set up a phase: each has an optimizer, a schedule and batches of its own."""
        settings, data, machine, initial = self.settings, self.data, self.machine, at == 0
        state = self.state
        state.phase, state.step, state.last_step, state.stop = PHASES[at], 0, self.lengths[at], False
        state.best_score = float("-inf")
        self.feed = Feed(
            data.labeled if initial else self._second_phase_labels,
            None if initial else data.unlabeled,
            batch_size=settings.batch_size,
            unlabeled_batch_size=settings.unlabeled_batch_size or settings.batch_size,
            seeds=self.seeds,
            by_length=settings.bucket_by_length,
            process=machine.process,
            processes=machine.processes,
            micro_batches=settings.accumulation,
            device=machine.device,
        )
        plain = make_optimizer(self.method.student, settings, initial=initial)
        self.optimizer = machine.wrap_optimizer(plain)
        self.convergence.enter()
        self.schedule = make_schedule(plain, settings, self.lengths[at], self.convergence.spent)
        self.selection = Selection(self.method.student, trials=self.trials, patience=settings.patience)
        self.guard.average = None
        if not initial:
            self.method.start(self._probe())

    @property
    def _second_phase_labels(self) -> Labeled | None:
        """The labelled rows of the second phase: with weak labels only gold ones beside them, unless all are kept."""
        data = self.data
        return data.second if data.weak and not self.settings.keep_weak_labels else data.labeled

    def phase(self) -> Phase:
        """The loop over the phase that was entered last."""
        return Phase(
            self.method,
            self.feed,
            self.optimizer,
            initial=self.state.phase == START,
            schedule=self.schedule,
            clip=self.settings.clip,
            exact=self.settings.exact_accumulation,
            machine=self.machine,
        )

    def _play(self) -> None:
        """Take the remaining steps of the phase, then restore the student that was best on dev."""
        state, done = self.state, self.selection.exhausted
        self.notify("on_phase_begin")
        if state.phase == GAME and not state.step:
            self.evaluate()  # θinit may be the best student
            self.start_scores = self.selection.best_scores if self.data.dev else None
            if self.data.unlabeled is not None and state.last_step:
                self.first_classes = watched_classes(self.method, self.data.unlabeled, self.machine)
                self.refresh()
        steps = range(0) if done or state.stop else range(state.step + 1, state.last_step + 1)
        self.phase().run(steps, self.callbacks, state)
        self.notify("on_phase_end")
        self.selection.restore()

    def evaluate(self) -> None:
        """Score the student on dev, if there is a dev set."""
        if self.data.dev is None:
            return
        scores = evaluate(self.method, self.data.dev, self.score, self.machine, trials=self.trials)
        self.selection.look(self.state.step, scores)
        self.state.best_score = self.selection.scores.mean().item()
        self.notify("on_evaluate", scores)

    def refresh(self) -> None:
        """Let the method read all unlabelled rows, and choose which of them to draw batches from."""
        if self.data.unlabeled is not None:
            self.draw_from(self.method.refresh(AllUnlabeled(self.data.unlabeled, self.machine)))

    def draw_from(self, places: Tensor | None) -> None:
        """Draw unlabelled batches from these rows only, until others are chosen."""
        self.places = places
        if places is not None and self.data.unlabeled is not None and self.feed.unlabeled is not None:
            self.feed.unlabeled.over(self.data.unlabeled.only(places))

    def _check_parts(self, student: nn.Module) -> None:
        """Refuse to split the steps of a model that computes every row in each call, as models of a whole graph do."""
        whole = computes_full_graph(student) or has_own_loss(student) or has_regularizer(student)
        if whole and (self.machine.processes > 1 or self.settings.accumulation > 1):
            raise ConfigError(
                f"{type(student).__name__} computes all rows at every call, so that parts of a step save nothing;"
                " use one process and training.accumulation=1"
            )

    def _probe(self) -> Any:
        """Inputs of the probe: the same rows before and after a resume."""
        if self.data.unlabeled is None:
            return None
        rows = self.data.unlabeled.rows[..., :PROBE]
        return moved(self.data.unlabeled.examples.inputs(rows), self.machine.device)

    def pseudo_label_accuracy(self) -> dict[str, float]:
        """Accuracy of the pseudo-labels of the probe, where gold labels are known. Nothing is selected by it."""
        labels, unlabeled = self.method.probe_labels(), self.data.unlabeled
        gold = None if unlabeled is None else unlabeled.first_gold(PROBE)
        if labels is None or gold is None:
            return {}
        known = gold >= 0
        return {"pseudo_label_accuracy": float((labels.cpu() == gold)[known].double().mean())} if known.any() else {}

    def _flips(self) -> Flips | None:
        if self.data.unlabeled is None or self.first_classes is None:
            return None
        last = watched_classes(self.method, self.data.unlabeled, self.machine)
        return find_flips(self.data.unlabeled, self.first_classes, last)
