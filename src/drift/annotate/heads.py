"""Linear heads on fixed vectors, trained as by `drift fit` but in half a second, for labels that come in one by one.

The settings are those of `drift fit`, except for `QUICK`. Every head leaves out a fifth of the labels, so that each
label is predicted by a head that was not trained on it: this is what the accuracy estimate and the list of suspected
label errors are made of. The same differences make the heads disagree where the labels do not decide.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from drift.annotate.learner import HEADS
from drift.annotate.policy import margin_doubt
from drift.data.examples import Labeled, Unlabeled, Vectors
from drift.data.folds import left_out
from drift.data.labels import UNLABELED
from drift.methods.self_training import Drift, DriftSettings
from drift.models.stacked import Stacked
from drift.runs.layers import merge
from drift.tasks import TASKS
from drift.tasks.heads import linear_head, scaling
from drift.tasks.scoring import classification_scores
from drift.training.data import TrainingData
from drift.training.settings import TrainingSettings
from drift.training.threads import threads
from drift.training.trainer import Trainer

QUICK = {  # beside the settings of `drift fit`: a round takes a fifth of the time, and is as good with few labels
    "training": {"unlabeled_batch_size": 256, "window": 25, "tolerance": 0.02, "initial_steps": 300, "steps": 300},
    "method": {"coupling": "shared"},  # exact for linear heads without dropout, and needs no backward of the teacher
}
ROWS_PER_FORWARD = 8192
MOST_SCALED = 20_000  # rows from which mean and deviation of the features are taken
MOST_PLAYED = 20_000  # unlabelled rows of the game: a few hundred steps do not see more


@dataclass(frozen=True)
class Lesson:
    """What heads are trained on.

    rows: labelled row numbers, `(m,)`. codes: the class index of each. pool: unlabelled rows of the game. weak: whether
    the labels are noisy.
    """

    rows: np.ndarray
    codes: np.ndarray
    pool: np.ndarray
    weak: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Outcome:
    """What heads predict.

    probabilities: mean over the heads for every row, `(n, C)`. disagreement: how differently the heads predict each
    row, `(n,)`, from 0 to 1. left_out: probabilities of labelled rows by heads not trained on them, `(m, C)`; NaN where
    there are none. shares: class shares that the pseudo-labels were balanced towards, `(C,)`.
    """

    probabilities: np.ndarray
    disagreement: np.ndarray
    left_out: np.ndarray
    shares: np.ndarray = field(default_factory=lambda: np.empty(0))


class Heads:
    """Linear heads on the vectors of all texts. vectors: `(n, D)`, in memory or memory-mapped."""

    def __init__(self, vectors: np.ndarray, *, heads: int = HEADS) -> None:
        task = TASKS["text"]
        self.kind = task.choose_kind({}, finetune=False)
        self.settings = {weak: merge(task.defaults(self.kind, weak=weak), QUICK) for weak in (False, True)}
        sample = np.linspace(0, len(vectors) - 1, min(len(vectors), MOST_SCALED)).astype(int)
        self.mean, self.scale = scaling(np.asarray(vectors[sample]))
        self.x = torch.from_numpy((np.asarray(vectors, dtype=np.float32) - self.mean) / self.scale)
        self.heads = heads
        self.items = vectors

    def doubt(self, probabilities: np.ndarray) -> np.ndarray:
        """The doubt about each text, `(n,)`. probabilities: of all texts, `(n, C)`."""
        return margin_doubt(probabilities)

    def predicted(self, probabilities: np.ndarray) -> np.ndarray | None:
        """The predicted class of each text, `(n,)`."""
        return np.asarray(probabilities.argmax(1))

    def teach(self, lesson: Lesson, classes: int) -> Outcome:
        """Train on these labels, and predict every row. Classes without a label get probability 0."""
        present = np.unique(lesson.codes)
        codes = np.searchsorted(present, lesson.codes)
        student, folds = self._train(lesson, codes, len(present))
        with torch.inference_mode(), threads(1):
            mean, disagreement = self._predict(student)
            held = self._left_out(student, lesson.rows, codes, folds)
        shares = self._shares if len(self._shares) else np.full(len(present), 1 / len(present))
        return Outcome(
            spread(mean, present, classes),
            disagreement,
            spread(held, present, classes),
            spread(shares[None], present, classes)[0],
        )

    def _train(self, lesson: Lesson, codes: np.ndarray, classes: int) -> tuple[Stacked, np.ndarray | None]:
        """The trained heads, and the positions of the labels that each left out, `(heads, h)`."""
        settings: dict[str, Any] = self.settings[lesson.weak]
        seeds = tuple(range(lesson.seed, lesson.seed + self.heads))
        student = Stacked([linear_head(self.x.shape[1], classes) for _ in seeds])
        folds = None if lesson.weak else left_out(codes, len(seeds), seed=lesson.seed)
        everything = np.arange(len(lesson.rows))
        kept = np.stack(
            [everything if folds is None else np.setdiff1d(everything, fold) for fold in _each(folds, seeds)]
        )
        examples = Vectors(self.x)
        rest = self._played(lesson)
        training = TrainingData(
            Labeled(examples, torch.from_numpy(lesson.rows[kept]), torch.from_numpy(codes[kept])),
            Unlabeled(examples, torch.from_numpy(rest).expand(len(seeds), -1)) if len(rest) else None,
            weak=lesson.weak,
            left_out=None
            if folds is None
            else Labeled(examples, *map(torch.from_numpy, (lesson.rows[folds], codes[folds]))),
        )
        plan = TrainingSettings(**{**settings["training"], "seed": lesson.seed})
        with threads(1):
            trainer = Trainer(
                student, training, plan, Drift, DriftSettings(**settings["method"]), classification_scores, seeds=seeds
            )
            outcome = trainer.run()
        self._shares = np.mean([each.values for each in outcome.shares], axis=0) if outcome.shares else np.empty(0)
        return student.eval(), folds

    def _played(self, lesson: Lesson) -> np.ndarray:
        """The unlabelled rows of the game."""
        rest = lesson.pool
        if len(rest) > MOST_PLAYED:
            rest = np.sort(np.random.default_rng(lesson.seed).permutation(rest)[:MOST_PLAYED])
        return rest

    def _predict(self, student: Stacked) -> tuple[np.ndarray, np.ndarray]:
        """Mean probabilities `(n, C)`, and the part of the uncertainty that is between the heads, `(n,)`."""
        means, between = [], []
        for x in torch.split(self.x, ROWS_PER_FORWARD):
            p = student(x.expand(self.heads, *x.shape)).softmax(-1)  # (heads, N, C)
            mean = p.mean(0)
            means.append(mean)
            between.append(((_entropy(mean) - _entropy(p).mean(0)) / np.log(max(2, p.shape[-1]))).clamp(0, 1))
        return torch.cat(means).numpy(), torch.cat(between).numpy()

    def _left_out(self, student: Stacked, rows: np.ndarray, codes: np.ndarray, folds: np.ndarray | None) -> np.ndarray:
        """Mean probabilities of each labelled row by the heads that left it out, `(m, C)`."""
        total = np.zeros((len(rows), int(codes.max()) + 1))
        if folds is None:
            return np.full_like(total, np.nan)
        p = student(self.x[torch.from_numpy(rows[folds])]).softmax(-1).double().numpy()  # (heads, h, C)
        times = np.bincount(folds.ravel(), minlength=len(rows))
        np.add.at(total, folds.ravel(), p.reshape(-1, p.shape[-1]))
        return np.where(times[:, None] > 0, total / np.maximum(times, 1)[:, None], np.nan)


def can_learn(codes: np.ndarray) -> bool:
    """Whether labels are enough to train on: two classes."""
    return len(np.unique(codes[codes != UNLABELED])) >= 2


def _each(folds: np.ndarray | None, seeds: tuple[int, ...]) -> Any:
    return [None] * len(seeds) if folds is None else folds


def _entropy(p: Tensor) -> Tensor:
    entropy: Tensor = torch.special.entr(p).sum(-1)
    return entropy


def spread(p: np.ndarray, present: np.ndarray, classes: int) -> np.ndarray:
    """Columns of the present classes among those of all classes."""
    spread = np.zeros((len(p), classes), dtype=np.float32)
    spread[:, present] = p
    spread[np.isnan(p).any(1)] = np.nan
    return spread
