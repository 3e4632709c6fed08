"""A run from beginning to end: both phases of the paper, watched, saved, chosen on dev, and taken up again."""

import math
import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from drift.core.teacher import copy_of
from drift.data.examples import Batch, moved
from drift.data.labels import UNLABELED
from drift.errors import ConfigError, Interrupted, StateError
from drift.methods import METHODS
from drift.methods.method import Method
from drift.settings import Settings
from drift.training import snapshot
from drift.training.checkpoints import Checkpoints
from drift.training.data import TrainingData
from drift.training.devices import SingleProcess
from drift.training.evaluation import Score, evaluate, predict
from drift.training.feeds import Feed
from drift.training.flips import Flips, find_flips, watched_classes
from drift.training.guard import Guard, batch_rows, shown
from drift.training.interrupt import interruptible
from drift.training.loop import Callback, Phase
from drift.training.optimizers import make_optimizer, make_schedule
from drift.training.pool import AllUnlabeled
from drift.training.progress import progress
from drift.training.run_folder import DIVERGED, TRACE, RunFolder
from drift.training.seeding import seeded
from drift.training.selection import Selection
from drift.training.settings import TrainingSettings
from drift.training.trace import Trace, write_predictions

PHASES = ("start", "game")
PROBE = 32  # unlabelled rows on which changed pseudo-labels are counted


@dataclass
class Outcome:
    """How a run went. Scores are lists, one dictionary a trial; None without a dev set.

    flips: None where there was nothing unlabelled to go on with.
    """

    steps: int
    seconds: float
    start: list[dict[str, float]] | None
    best: list[dict[str, float]] | None
    best_steps: list[int] | None
    flips: Flips | None = None
    entries: list[dict[str, Any]] = field(default_factory=list)


class Trainer(Callback):
    """Trains one student, or stacked trials of one, by one method.

    student: where to begin; it is trained in place. score: from probabilities and labels, the first is chosen by.
    seeds: one a trial of a stacked student. folder: where trace, checkpoints and predictions go; nothing is written
    without one.
    """

    def __init__(
        self,
        student: nn.Module,
        data: TrainingData,
        settings: TrainingSettings,
        method: str,
        method_settings: Settings,
        score: Score,
        *,
        seeds: tuple[int, ...] | None = None,
        machine: SingleProcess | None = None,
        folder: RunFolder | None = None,
        quiet: bool = True,
    ) -> None:
        self.data, self.settings, self.score, self.folder = data, settings, score, folder
        self.machine = machine or SingleProcess()
        self.seeds, self.trials = seeds or (settings.seed,), None if seeds is None else len(seeds)
        self.quiet = quiet or self.machine.process != 0
        kind = METHODS[method]
        self._check_parts(student)
        teacher = self.machine.wrap(copy_of(student)) if kind.has_teacher else None
        self.method: Method = kind(
            self.machine.wrap(student),
            method_settings,
            teacher=teacher,
            stacked=seeds is not None,
            single_process=type(self.machine) is SingleProcess,
        )
        self.lengths = (settings.initial_steps, settings.steps if kind.has_second_phase else 0)
        if self.lengths[1] and data.unlabeled is None and data.weak:
            raise ConfigError("weak labels are thrown away after the start; give unlabelled rows to go on with")
        self.checkpoints = (
            None
            if folder is None
            else Checkpoints(
                folder.path / "checkpoints",
                keep=settings.keep_checkpoints,
                fingerprint=folder.fingerprint(),
                machine=self.machine,
            )
        )
        self.trace = Trace(folder.path / TRACE if folder and self.machine.process == 0 else None)
        self.at, self.step, self.taken = 0, 0, 0  # phase, step in it, steps in all
        self.began, self.spent = time.monotonic(), 0.0  # of a run that goes on, seconds of the stretches before
        self.places: Tensor | None = None  # of the unlabelled rows that are drawn from, if the method chose some
        self.start_scores: list[dict[str, float]] | None = None  # on dev
        self.first_classes: Tensor | None = None  # of the unlabelled rows that are watched, at θinit

    def run(self, *, resume: bool = False) -> Outcome:
        """Train to the end. Ctrl-C saves a checkpoint first and raises Interrupted, which says how to go on."""
        self.began = time.monotonic()
        self.machine.begin_tracking()
        with closing(self), seeded(self.settings.seed + self.machine.process), interruptible() as self.interrupt:
            found = self.checkpoints.newest() if resume and self.checkpoints else None
            self.enter(found.state["at"] if found else 0)
            if found:
                try:
                    snapshot.put_back(self, found.state, found.own)
                except KeyError as error:
                    raise StateError(
                        f"the checkpoint lacks {error}, for it is of another version of drift; go on with that version,"
                        " or begin anew in another folder"
                    ) from error
            else:
                self.trace.rewind(0)
            while True:
                self._play()
                if self.at == len(PHASES) - 1:
                    break
                self.enter(self.at + 1)
                self._save()  # θinit is worth keeping
        return Outcome(
            steps=self.taken,
            seconds=self.seconds,
            start=self.start_scores,
            best=self.selection.best_scores if self.data.dev else None,
            best_steps=self.selection.steps.tolist() if self.data.dev else None,
            flips=self._flips(),
            entries=self.trace.entries,
        )

    def _check_parts(self, student: nn.Module) -> None:
        """Refuse to cut up steps of a model that computes every row whichever are asked for, as those of graphs do."""
        whole = any(getattr(student, name, None) for name in ("full_graph", "own_loss", "regularizer"))
        if whole and (self.machine.processes > 1 or self.settings.accumulation > 1):
            raise ConfigError(
                f"{type(student).__name__} computes all rows at every call, so that parts of a step save nothing;"
                " use one process and training.accumulation=1"
            )

    @property
    def seconds(self) -> float:
        """Of training so far, in all stretches; not of steps that were lost and taken again."""
        return self.spent + time.monotonic() - self.began

    def close(self) -> None:
        """Close trace and trackers: however a run ends, what it wrote is whole."""
        self.trace.close()
        self.machine.end_tracking()

    # The two phases.

    def enter(self, at: int) -> None:
        """Set up a phase: an optimiser, a schedule and batches of its own."""
        self.at, self.step = at, 0
        settings, data, machine = self.settings, self.data, self.machine
        initial = at == 0
        self.feed = Feed(
            None if data.weak and not initial else data.labeled,
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
        self.schedule = make_schedule(plain, settings, self.lengths[at])
        self.selection = Selection(self.method.student, trials=self.trials, patience=settings.patience)
        self.guard = Guard()
        if not initial:
            self.method.start(self._probe())

    def phase(self) -> Phase:
        """The loop over the phase entered last."""
        return Phase(
            self.method,
            self.feed,
            self.optimizer,
            initial=self.at == 0,
            schedule=self.schedule,
            clip=self.settings.clip,
            exact=self.settings.exact_accumulation,
            machine=self.machine,
        )

    def _play(self) -> None:
        """What is left of the phase, then back to the student that was best on dev."""
        steps = range(0) if self.selection.exhausted else range(self.step + 1, self.lengths[self.at] + 1)
        if self.at and not self.step:
            self._look()  # at θinit: it may be what is best
            self.start_scores = self.selection.best_scores if self.data.dev else None
            if self.data.unlabeled is not None and self.lengths[self.at]:
                self.first_classes = watched_classes(self.method, self.data.unlabeled, self.machine)
            self.refresh()
        title = ("Finding the start", self.method.name)[self.at]
        with progress(title, self.lengths[self.at], done=self.step, shown=not self.quiet) as self.tick:
            self.phase().run(steps, self)
        self.selection.restore()

    def refresh(self) -> None:
        """Let the method look at all unlabelled rows, and choose some to go on with."""
        if self.method.refresh_every is not None and self.data.unlabeled is not None:
            self.draw_from(self.method.refresh(AllUnlabeled(self.data.unlabeled, self.machine)))

    def draw_from(self, places: Tensor | None) -> None:
        """Take unlabelled rows of batches from these only, until others are named."""
        self.places = places
        if places is not None and self.data.unlabeled is not None and self.feed.unlabeled is not None:
            self.feed.unlabeled.over(self.data.unlabeled.only(places))

    def _probe(self) -> Any:
        """The same rows before and after a resume."""
        if self.data.unlabeled is None:
            return None
        rows = self.data.unlabeled.rows[..., :PROBE]
        return moved(self.data.unlabeled.examples.inputs(rows), self.machine.device)

    # What is watched.

    def before_move(self, step: int, loss: Tensor, batches: list[Batch]) -> None:
        value = self.machine.mean(loss.item())  # one number for all processes, so all stop or none
        if fault := self.guard.fault(value):
            self._diverged(step, fault, batches)
        self.loss = value
        if step % self.settings.trace_every == 0 or step == self.lengths[self.at]:
            entry = {"phase": PHASES[self.at], "step": step, "loss": value, "lr": self.schedule.get_last_lr()[0]}
            diagnostics = {**self.method.diagnostics(), **self._pseudo_label_accuracy()} if self.at else {}
            self.trace.write({**entry, **diagnostics})
            numbers = {name: number for name, number in {**entry, **diagnostics}.items() if isinstance(number, float)}
            self.machine.log({f"{PHASES[self.at]}/{name}": number for name, number in numbers.items()}, self.taken)

    def after_move(self, step: int) -> bool:
        self.step, self.taken = step, self.taken + 1
        last = step == self.lengths[self.at]
        if step % self.settings.evaluate_every == 0 or last:
            self._look()
        elif self.at and step in self.settings.predictions_at:
            self._write_predictions()
        if self.at and self.method.refresh_every is not None and step % self.method.refresh_every == 0 and not last:
            self.refresh()
        self.tick(self._beside())
        (interrupted,) = self.machine.any(self.interrupt.asked)
        if step % self.settings.checkpoint_every == 0 or last or interrupted or self.selection.exhausted:
            self._save()
        if interrupted:
            raise Interrupted(self._farewell())
        return self.selection.exhausted

    def _look(self) -> None:
        """Score the student on dev, if there is one; write every row's prediction where that was asked for."""
        if self.at and self.step in self.settings.predictions_at:
            self._write_predictions()
        if self.data.dev is None:
            return
        scores = evaluate(self.method, self.data.dev, self.score, self.machine, trials=self.trials)
        self.selection.look(self.step, scores)
        mean = {name: sum(trial[name] for trial in scores) / len(scores) for name in scores[0]}
        own = {"dev_by_seed": {name: [trial[name] for trial in scores] for name in mean}} if self.trials else {}
        self.trace.write({"phase": PHASES[self.at], "step": self.step, "dev": mean, **own})
        self.machine.log({f"{PHASES[self.at]}/dev_{name}": value for name, value in mean.items()}, self.taken)

    def _pseudo_label_accuracy(self) -> dict[str, float]:
        """On the probe, where gold is known; nothing is ever chosen by it."""
        found, unlabeled = self.method.probe_labels(), self.data.unlabeled
        gold = None if unlabeled is None else unlabeled.first_gold(PROBE)
        if found is None or gold is None:
            return {}
        known = gold >= 0
        return {"pseudo_label_accuracy": float((found.cpu() == gold)[known].double().mean())} if known.any() else {}

    def _flips(self) -> Flips | None:
        if self.data.unlabeled is None or self.first_classes is None:
            return None
        last = watched_classes(self.method, self.data.unlabeled, self.machine)
        return find_flips(self.data.unlabeled, self.first_classes, last)

    def _beside(self) -> str:
        """What stands beside the bar."""
        best = self.selection.scores.mean().item()
        dev = f"  dev {100 * best:.2f}" if math.isfinite(best) else ""
        return f"loss {self.loss:.4f}{dev}"

    def _write_predictions(self) -> None:
        part = self.data.unlabeled or self.data.labeled
        stacked = part.rows.dim() > 1
        rows = torch.arange(len(part.examples)) if stacked else part.rows
        probabilities = predict(self.method, part.examples, rows, self.machine, trials=self.trials)
        if self.folder and self.machine.process == 0:
            counts = part.examples.counts
            written = rows if counts is None else rows.repeat_interleave(torch.from_numpy(counts[rows]))
            gold = None if self.data.unlabeled is None else self.data.unlabeled.first_gold(part.rows.shape[-1])
            if gold is not None and stacked:  # a trial's own labelled rows are none of its unlabelled ones
                gold = torch.full((len(gold), len(rows)), UNLABELED).scatter(-1, part.rows, gold)
            write_predictions(
                self.folder.path / "predictions",
                self.step,
                written.numpy(),
                probabilities.numpy(),
                None if gold is None else gold.numpy(),
            )

    # What is kept.

    def _save(self) -> None:
        if self.checkpoints is not None:
            self.checkpoints.save(self.taken, *snapshot.take(self))

    def _diverged(self, step: int, fault: str, batches: list[Batch]) -> None:
        everyone = self.machine.gather(batch_rows(batches))
        rows = {kind: [row for own in everyone for row in own[kind]] for kind in everyone[0]}
        last = "no checkpoint was written yet"
        if self.folder and self.checkpoints:
            newest = next(iter(sorted((self.folder.path / "checkpoints").glob("step-*"), reverse=True)), None)
            last = f"the last good checkpoint is {newest}" if newest else last
            if self.machine.process == 0:
                self.folder.write_json(DIVERGED, {"phase": PHASES[self.at], "step": step, "fault": fault, "rows": rows})
        raise StateError(
            f"{fault} at step {step} of the {PHASES[self.at]} phase, on {shown(rows)}; {last};"
            " lower learning_rate, or set clip"
        )

    def _farewell(self) -> str:
        where = f"{PHASES[self.at]} phase, step {self.step} of {self.lengths[self.at]}"
        if self.folder is None:
            return f"stopped in the {where}; nothing was saved, as the run has no folder"
        return f"stopped in the {where}, and saved; go on with drift fit --resume -o {self.folder.path}"
