"""`DriftClassifier`: differentiable self-training with scikit-learn's contract."""

import copy
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_consistent_length, check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from drift.core import Game, SoftStrategy
from drift.core.checks import is_number
from drift.core.forward import log_probabilities
from drift.data.batches import EndlessBatches
from drift.data.examples import Batch
from drift.data.labels import Encoded, encode_labels, is_blank, label_column
from drift.errors import ConfigError, DataError, LabelError, StateError
from drift.methods.self_training import GameMethod
from drift.models.mlp import mlp
from drift.training.loop import Callback, Phase
from drift.training.optimizers import make_optimizer
from drift.training.progress import Tick, progress
from drift.training.seeding import seeded
from drift.training.settings import TrainingSettings
from drift.training.threads import threads

ModuleFactory = Callable[[int, int], nn.Module]
"""Builds a module from the number of features and of classes."""

COUPLINGS = ("differentiable", "detached", "none")
LOOKS = 20  # entries of `trace_` over a run
ROWS_AT_ONCE = 8192  # scaled, and predicted: a float64 copy of all rows could be many times what was given
FLOATS = [np.float64, np.float32]  # taken as they come; everything else is made the first


class DriftClassifier(ClassifierMixin, BaseEstimator):
    """A classifier for feature vectors of which few have labels: `y == -1`, None or NaN is unlabelled.

    It fits a start on the labelled rows, then plays the game on all of them. With every label given it distils itself
    (teacher and labels on the same rows). There is no dev set: it trains a fixed number of steps.
    `score` leaves unlabelled rows out. `scoring="f1_macro"` and its like take -1 for a class: score with a function.

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
    learning_rate, weight_decay : of AdamW; biases and the scales of normalisation are not decayed.
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
    >>> bool(clf.score(X[200:], y[200:]) > 0.85)
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
            raise ValueError("DriftClassifier requires y to be passed, but the target y is None; -1 marks no label")
        self._check_settings()
        X = validate_data(self, X, dtype=FLOATS)
        encoded = encode_labels(y)
        check_consistent_length(X, encoded.codes)
        self.classes_ = encoded.classes
        self.label_budget_ = int(encoded.labeled.sum())
        self.mean_, self.scale_ = _scaling(X, self.standardize)
        seed = int(check_random_state(self.random_state).randint(2**31))
        with seeded(seed), threads(effective_n_jobs(self.n_jobs)):
            self.student_ = self._build(X.shape[1], len(self.classes_))
            first = self._tensor(X, slice(0, 1))
            self._check_module(first)
            whole = first.new_empty(X.shape)
            for rows in gen_batches(len(X), ROWS_AT_ONCE):
                whole[rows] = self._tensor(X, rows)
            self.student_.train()  # pretrained modules come in evaluation mode
            self.trace_ = self._train(whole, encoded, torch.Generator().manual_seed(seed))
        if not all(bool(p.isfinite().all()) for p in self.student_.parameters()):
            raise StateError(
                f"training diverged: weights are no longer finite; lower learning_rate={self.learning_rate}"
            )
        self.student_.eval()
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class in `classes_`, by the student. Shape (rows, classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=FLOATS, reset=False)
        pieces = (self._tensor(X, rows) for rows in gen_batches(len(X), ROWS_AT_ONCE))
        with torch.no_grad(), threads(effective_n_jobs(self.n_jobs)):
            return torch.cat([log_probabilities(self.student_, piece).exp() for piece in pieces]).cpu().numpy()

    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on the labelled rows; rows whose y is -1, None or NaN are left out."""
        y = label_column(y)
        check_consistent_length(X, y, sample_weight)
        rows = np.flatnonzero(~is_blank(y))
        if not len(rows):
            raise LabelError(f"none of the {len(y)} rows has a label to score against")
        weights = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return float(accuracy_score(np.array(y[rows].tolist()), self.predict(X)[rows], sample_weight=weights))

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
        whole = (int, np.integer)
        for names, accepted, hint in (
            ("initial_steps steps", lambda v: isinstance(v, whole) and v >= 0, "a whole number, 0 or more"),
            ("batch_size", lambda v: isinstance(v, whole) and v >= 1, "a whole number, 1 or more"),
            ("learning_rate", lambda v: is_number(v) and v > 0, "a number above 0"),
            ("weight_decay", lambda v: is_number(v) and v >= 0, "a number, 0 or more"),
            ("dropout input_dropout", lambda v: is_number(v) and 0 <= v < 1, "a share below 1"),
            ("weak class_mass standardize", lambda v: isinstance(v, (bool, np.bool_)), "True or False"),
            ("n_jobs", lambda v: v is None or (isinstance(v, whole) and v != 0), "None, a number of threads, or -1"),
            ("coupling", lambda v: v in COUPLINGS, "'differentiable', 'detached' or 'none'"),
            ("prior", lambda v: not isinstance(v, (str, Mapping)) or v == "labels", "None, 'labels' or a list"),
            ("hidden", _are_widths, "a list of widths, such as (256,)"),
        ):
            for name in names.split():
                if not accepted(getattr(self, name)):
                    raise ConfigError(f"{name}={getattr(self, name)!r}: give {hint}")

    def _build(self, features: int, classes: int) -> nn.Module:
        if self.module is None:
            return mlp(features, classes, self.hidden, "relu", input_dropout=self.input_dropout, dropout=self.dropout)
        if isinstance(self.module, nn.Module):
            return copy.deepcopy(self.module)
        if not callable(self.module):
            raise ConfigError(f"module is {type(self.module).__name__}; give a torch module or a function building one")
        try:
            built = self.module(features, classes)
        except TypeError as error:
            raise ConfigError(f"module could not be built from (features, classes): {error}") from error
        if not isinstance(built, nn.Module):
            raise ConfigError(f"module built {type(built).__name__}; return a torch module")
        return built

    def _check_module(self, row: Tensor) -> None:
        """One row through the module: it must take the features, and speak about the classes."""
        self.student_.eval()
        with torch.no_grad():
            logits = log_probabilities(self.student_, row).shape[1]
        if logits != len(self.classes_):
            raise ConfigError(
                f"module {type(self.student_).__name__} returns {logits} logits a row, the labels have"
                f" {len(self.classes_)} classes"
            )

    def _tensor(self, X: np.ndarray, rows: slice) -> Tensor:
        """These rows, scaled, as the module's parameters are: of their type, on their device."""
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (X[rows] - self.mean_) / self.scale_
        like = next((p for p in self.student_.parameters() if p.is_floating_point()), torch.empty(0))
        tensor = torch.from_numpy(scaled).to(like.device, like.dtype)
        if not tensor.isfinite().all():
            row, feature = (int(place) for place in (~tensor.isfinite()).nonzero()[0])
            row += rows.start
            raise DataError(
                f"row {row}, feature {feature}: {X[row, feature]!s} is too large to compute with; rescale the feature"
            )
        return tensor

    def _train(self, X: Tensor, encoded: Encoded, generator: torch.Generator) -> list[dict[str, object]]:
        """Fit the start (Eq. 1), then play (Eq. 3, or Eq. 9 if labels are weak); returns the trace."""
        y = torch.from_numpy(encoded.codes).to(X.device)
        known = torch.from_numpy(np.flatnonzero(encoded.labeled))
        others = torch.from_numpy(np.flatnonzero(self.weak | ~encoded.labeled))
        game = self._game(encoded, distill=not len(others))

        def batches(labels: bool, rest: bool) -> Iterator[list[Batch]]:
            labeled_rows = EndlessBatches(len(known), self.batch_size, generator) if labels else repeat(None)
            other_rows = EndlessBatches(len(others), self.batch_size, generator) if rest else repeat(None)
            for i, j in zip(labeled_rows, other_rows, strict=False):
                yield [Batch(None if i is None else (X[known[i]], y[known[i]]), None if j is None else X[others[j]])]

        plays = self.coupling != "none"
        method = GameMethod(game)
        with progress("DRIFT", self.initial_steps + self.steps, shown=bool(self.verbose)) as tick:
            watch = _Looks(game, tick, every=max(1, math.ceil(self.steps / LOOKS)) if plays else 0)
            start = Phase(method, batches(labels=True, rest=False), self._optimizer(), initial=True)
            start.run(range(1, self.initial_steps + 1), watch)
            method.start()
            play = batches(labels=not (self.weak and plays), rest=plays and len(others) > 0)
            watch.playing = True
            Phase(method, play, self._optimizer()).run(range(1, self.steps + 1), watch)
        return watch.trace

    def _game(self, encoded: Encoded, *, distill: bool) -> Game:
        prior = self.prior
        if isinstance(prior, str):
            prior = np.bincount(encoded.codes[encoded.labeled]).tolist()
        strategy = SoftStrategy(self.tau, self.class_mass, prior)
        if strategy.prior is not None and len(strategy.prior) != len(self.classes_):
            raise ConfigError(
                f"prior has {len(strategy.prior)} shares, the labels have {len(self.classes_)} classes;"
                " give one a class, in the order of the sorted classes"
            )
        return Game(
            self.student_,
            alpha=self.alpha,
            strategy=strategy,
            coupling="differentiable" if self.coupling == "differentiable" else "detached",
            pseudo_label="all" if distill and self.coupling != "none" else "unlabeled",
            unlabeled_weight=self.unlabeled_weight,
            single_process=True,  # a fit is one process's own, whatever else torch.distributed does
        )

    def _optimizer(self) -> torch.optim.Optimizer:
        settings = TrainingSettings(learning_rate=self.learning_rate, weight_decay=self.weight_decay)
        return make_optimizer(self.student_, settings, initial=False)


class _Looks(Callback):
    """Keeps the game's state every so often, never if `every` is 0."""

    def __init__(self, game: Game, tick: Tick, every: int) -> None:
        self.game, self.tick, self.every = game, tick, every
        self.playing = False
        self.trace: list[dict[str, object]] = []

    def before_move(self, step: int, loss: Tensor, batches: list[Batch]) -> None:
        self.tick()
        if self.playing and self.every and step % self.every == 0:
            self.trace.append({"step": step, "loss": loss.item(), **self.game.diagnostics().as_dict()})


def _scaling(X: np.ndarray, standardize: bool) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of every feature, in float64; 0 and 1 to leave features as they are."""
    if not standardize:
        return np.zeros(X.shape[1]), np.ones(X.shape[1])
    pieces = [X[rows] for rows in gen_batches(len(X), ROWS_AT_ONCE)]
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        mean = sum(piece.sum(axis=0, dtype=np.float64) for piece in pieces) / len(X)
        deviation = np.sqrt(sum(np.square(piece - mean).sum(axis=0) for piece in pieces) / len(X))
        low, high = X.min(axis=0), X.max(axis=0)
        # The deviation of a feature that never varies is rounding error: dividing by it would magnify later rows.
        varies = high - low > 10 * np.finfo(np.float64).eps * np.maximum(-low, high)
    unusable = ~np.isfinite(mean) | ~np.isfinite(deviation) | (varies & (deviation == 0))
    if unusable.any():
        feature = int(np.flatnonzero(unusable)[0])
        raise DataError(f"feature {feature} is too large or too small to compute with; rescale it")
    return mean, np.where(varies, deviation, 1.0)


def _are_widths(hidden: object) -> bool:
    widths = hidden.tolist() if isinstance(hidden, np.ndarray) else hidden
    return isinstance(widths, Sequence) and all(isinstance(width, (int, np.integer)) and width > 0 for width in widths)
