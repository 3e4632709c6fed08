"""`DriftClassifier`: differentiable self-training with scikit-learn's contract."""

import copy
import math
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from drift.core import Game
from drift.core.forward import log_probabilities
from drift.data.batches import EndlessBatches
from drift.data.labels import Encoded, encode_labels
from drift.errors import ConfigError
from drift.models.mlp import mlp
from drift.training.loop import Batch, initialize, self_train
from drift.training.progress import progress
from drift.training.seeding import seeded
from drift.training.threads import threads

ModuleFactory = Callable[[int, int], nn.Module]
"""Builds a module from the number of features and of classes."""

LOOKS = 20  # entries of `trace_` over a run
PREDICT_ROWS = 8192  # rows a forward pass when predicting


class DriftClassifier(ClassifierMixin, BaseEstimator):
    """A classifier for feature vectors of which few have labels: `y == -1`, None or NaN is unlabelled.

    It fits a start on the labelled rows, then plays the game on all of them. With every label given it distils itself
    (teacher and labels on the same rows). There is no dev set: it trains a fixed number of steps.

    Parameters
    ----------
    module : the network: None for an MLP, a `torch.nn.Module`, or a function (features, classes) -> module.
    hidden, dropout, input_dropout : widths of the MLP's hidden layers, and the share of units and of features that
        the student does without at each step (the teacher sees all).
    alpha : weight of the old teacher in the moving average; α in the paper.
    tau : temperature of the pseudo-labels; below 1 sharpens; τ in the paper.
    class_mass : balance each batch's pseudo-labels by class.
    prior : class shares to balance towards: None is uniform (the paper), "labels" counts the labelled rows, or a
        sequence in the order of `classes_`.
    coupling : "differentiable" (DRIFT), "detached" (conventional self-training) or "none" (no teacher: labels alone).
    weak : labels are noisy: they make the start and are then thrown away.
    unlabeled_weight : weight of the self-training term; 1 in the paper.
    initial_steps, steps : how long to fit the start, and then to play.
    batch_size : rows a step, labelled and unlabelled each.
    learning_rate, weight_decay : of AdamW.
    standardize : shift and scale each feature to mean 0 and deviation 1 over the rows given to `fit`.
    n_jobs : threads that torch computes with; None is 1, which is fastest for small modules; -1 is all cores.
    random_state : seed; the same seed gives the same bits.
    verbose : show a progress bar.

    Attributes
    ----------
    classes_ : class labels, sorted. n_features_in_, feature_names_in_ : as everywhere in scikit-learn.
    student_ : the trained module. trace_ : the game's state at up to 20 steps, a dict each.
    label_budget_ : how many labelled rows `fit` saw.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> y_few = y.copy(); y_few[200:] = -1
    >>> clf = DriftClassifier(random_state=0).fit(X, y_few)
    >>> bool(clf.score(X[200:], y[200:]) > 0.9)
    True
    """

    def __init__(
        self,
        module: nn.Module | ModuleFactory | None = None,
        *,
        hidden: Sequence[int] = (256,),
        dropout: float = 0.5,
        input_dropout: float = 0.2,
        alpha: float = 0.9,
        tau: float = 0.5,
        class_mass: bool = True,
        prior: Sequence[float] | str | None = None,
        coupling: str = "differentiable",
        weak: bool = False,
        unlabeled_weight: float = 1.0,
        initial_steps: int = 200,
        steps: int = 600,
        batch_size: int = 256,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-2,
        standardize: bool = True,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.module = module
        self.hidden = hidden
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.alpha = alpha
        self.tau = tau
        self.class_mass = class_mass
        self.prior = prior
        self.coupling = coupling
        self.weak = weak
        self.unlabeled_weight = unlabeled_weight
        self.initial_steps = initial_steps
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.standardize = standardize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> "DriftClassifier":
        """Train on rows `X` of which `y` labels some."""
        if y is None:
            raise ValueError(
                "DriftClassifier requires y to be passed, but the target y is None; -1 marks unlabelled rows"
            )
        self._check_settings()
        X = validate_data(self, X, dtype=np.float64)
        encoded = encode_labels(y)
        check_consistent_length(X, encoded.codes)
        self.classes_ = encoded.classes
        self.label_budget_ = int(encoded.labeled.sum())
        self.mean_ = X.mean(axis=0) if self.standardize else np.zeros(X.shape[1])
        deviation = X.std(axis=0) if self.standardize else np.ones(X.shape[1])
        # The deviation of a feature that never varies is rounding error: dividing by it would magnify later rows.
        varies = np.ptp(X, axis=0) > 10 * np.finfo(X.dtype).eps * np.abs(X).max(axis=0)
        self.scale_ = np.where(varies, deviation, 1.0)
        seed = int(check_random_state(self.random_state).randint(2**31))
        with seeded(seed), threads(effective_n_jobs(self.n_jobs)):
            self.student_ = self._build(X.shape[1], len(self.classes_))
            rows = self._tensor(X)
            self._check_module(rows[:1])
            self.student_.train()  # pretrained modules come in evaluation mode
            self.trace_ = self._train(rows, encoded, torch.Generator().manual_seed(seed))
        self.student_.eval()
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class in `classes_`, by the student. Shape (rows, classes)."""
        check_is_fitted(self)
        X = self._tensor(validate_data(self, X, dtype=np.float64, reset=False))
        with torch.no_grad(), threads(effective_n_jobs(self.n_jobs)):
            parts = [log_probabilities(self.student_, part).exp() for part in torch.split(X, PREDICT_ROWS)]
        return torch.cat(parts).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to a folder: safetensors and JSON, never pickle."""
        from drift.estimator_files import save

        check_is_fitted(self)
        return save(self, path)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, module: nn.Module | ModuleFactory | None = None
    ) -> "DriftClassifier":
        """Read what `save` wrote. A model over a module of your own needs that module, or its factory, again."""
        from drift.estimator_files import load

        return load(cls, path, module)

    def _check_settings(self) -> None:
        for name in ("initial_steps", "steps", "batch_size"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < (1 if name == "batch_size" else 0):
                raise ConfigError(
                    f"{name}={value!r}: give a whole number, 1 or more for batch_size and 0 or more for steps"
                )
        if self.coupling not in ("differentiable", "detached", "none"):
            raise ConfigError(f"coupling={self.coupling!r} is not one of 'differentiable', 'detached', 'none'")
        if isinstance(self.prior, str) and self.prior != "labels":
            raise ConfigError(f"prior={self.prior!r}: give None, 'labels', or one share a class")
        if not isinstance(self.hidden, Sequence) or not all(
            isinstance(width, (int, np.integer)) and width > 0 for width in self.hidden
        ):
            raise ConfigError(f"hidden={self.hidden!r}: give a list of widths, such as (256,)")

    def _build(self, features: int, classes: int) -> nn.Module:
        if self.module is None:
            return mlp(features, classes, self.hidden, "relu", input_dropout=self.input_dropout, dropout=self.dropout)
        if isinstance(self.module, nn.Module):
            return copy.deepcopy(self.module)
        if not callable(self.module):
            raise ConfigError(
                f"module is {type(self.module).__name__}; give a torch module or a function that builds one"
            )
        return self.module(features, classes)

    def _check_module(self, row: Tensor) -> None:
        """One row through the module: it must take the features, and speak about the classes."""
        if not isinstance(self.student_, nn.Module):
            raise ConfigError(f"module built {type(self.student_).__name__}; return a torch module")
        name = type(self.student_).__name__
        self.student_.eval()
        try:
            with torch.no_grad():
                logits = log_probabilities(self.student_, row).shape[1]
        except RuntimeError as error:
            raise ConfigError(f"module {name} cannot take a row of {row.shape[1]} features: {error}") from error
        if logits != len(self.classes_):
            raise ConfigError(
                f"module {name} returns {logits} logits a row, the labels have {len(self.classes_)} classes"
            )

    def _tensor(self, X: np.ndarray) -> Tensor:
        return torch.from_numpy(((X - self.mean_) / self.scale_).astype(np.float32))

    def _train(self, X: Tensor, encoded: Encoded, generator: torch.Generator) -> list[dict[str, object]]:
        """Fit the start (Eq. 1), then play (Eq. 3, or Eq. 9 if labels are weak); returns the trace."""
        known = torch.from_numpy(encoded.labeled)
        x_l, y_l = X[known], torch.from_numpy(encoded.codes)[known]
        x_u = X if self.weak else X[~known]
        game = self._game(encoded, distill=not len(x_u))

        def batches(labels: bool, rest: bool) -> Iterator[Batch]:
            labeled_rows = EndlessBatches(len(x_l), self.batch_size, generator) if labels else repeat(None)
            other_rows = EndlessBatches(len(x_u), self.batch_size, generator) if rest else repeat(None)
            for i, j in zip(labeled_rows, other_rows, strict=False):
                yield Batch(None if i is None else (x_l[i], y_l[i]), None if j is None else x_u[j])

        trace: list[dict[str, object]] = []
        every = max(1, math.ceil(self.steps / LOOKS))

        def look(step: int, loss: Tensor) -> None:
            tick()
            if step % every == 0 and self.coupling != "none":
                trace.append({"step": step, "loss": loss.item(), **game.diagnostics().as_dict()})

        with progress("DRIFT", self.initial_steps + self.steps, shown=bool(self.verbose)) as tick:
            start = islice(batches(labels=True, rest=False), self.initial_steps)
            initialize(game, start, self._optimizer(), lambda *_: tick())
            plays = self.coupling != "none"
            play = batches(labels=not (self.weak and plays), rest=plays and len(x_u) > 0)
            self_train(game, islice(play, self.steps), self._optimizer(), look)
        return trace

    def _game(self, encoded: Encoded, *, distill: bool) -> Game:
        prior = self.prior
        if isinstance(prior, str):
            prior = np.bincount(encoded.codes[encoded.labeled]).tolist()
        return Game(
            self.student_,
            alpha=self.alpha,
            tau=self.tau,
            class_mass=self.class_mass,
            prior=prior,
            coupling="differentiable" if self.coupling == "differentiable" else "detached",
            pseudo_label="all" if distill and self.coupling != "none" else "unlabeled",
            unlabeled_weight=self.unlabeled_weight,
        )

    def _optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(
            self.student_.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay, fused=True
        )
