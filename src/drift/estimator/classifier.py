"""`DriftClassifier`: differentiable self-training as a scikit-learn estimator."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags, check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from drift.core.forward import log_probabilities
from drift.data.labels import Encoded, encode_labels, is_blank, label_column
from drift.errors import LabelError, StateError
from drift.estimator.files import load_classifier, save_classifier
from drift.estimator.parameters import CONSTRAINTS, check_prior, check_widths
from drift.estimator.scaling import feature_scaling, row_slices, scaled_tensor, summed_duplicates, training_rows
from drift.estimator.student import ModuleFactory, build_student, check_student, reference_tensor
from drift.estimator.training import train
from drift.training.seeding import seeded
from drift.training.threads import threads

FLOATS = [np.float64, np.float32]  # dtypes of X that are kept; others are converted to the first


class DriftClassifier(ClassifierMixin, BaseEstimator):
    """Semi-supervised classifier for feature vectors, trained by differentiable self-training (DRIFT).

    Rows whose label is -1, None or NaN are unlabelled. `fit` first finds a start. It spreads the labels over graphs of
    nearest neighbours, fits a linear classifier and a mixture of Gaussians, weights these by how well they predict
    labels that they were not given, and trains a student network on the resulting soft labels. It then trains the
    student further on all rows: on the given labels, and on pseudo-labels from a teacher, which is a moving average of
    the student (the game). If every row is labelled, the teacher labels the same rows (self-distillation).

    No validation set is needed. Each phase ends when it has converged, and the game is undone if it made the student
    worse; see `kept_`.

    Parameters
    ----------
    module : torch.nn.Module, callable or None, default=None
        Student network. None builds an MLP. A module is copied before training. A callable is called with the number of
        features and the number of classes, and must return a module. The module returns logits of shape
        (n_rows, n_classes).

    hidden : sequence of int, default=(256,)
        Widths of the hidden layers of the MLP. Ignored if `module` is given.

    dropout : float, default=0.2
        Dropout rate after each hidden layer of the MLP, in [0, 1). Ignored if `module` is given.

    input_dropout : "auto" or float, default="auto"
        Dropout rate of the input features of the MLP, in [0, 1). "auto" is 0.2 with 32 features or more, else 0.
        Ignored if `module` is given.

    alpha : float, default=0.9
        Weight of the old teacher in the moving average, in [0, 1]; α in the paper.

    tau : float, default=0.5
        Temperature of the pseudo-labels, above 0; values below 1 sharpen them; τ in the paper.

    class_mass : bool, default=True
        Whether to balance the pseudo-labels of each batch by class.

    prior : "auto", "uniform", "labels", mapping, sequence of float or None, default="auto"
        Class shares towards which `class_mass` balances. "auto" estimates them from the predictions of the start for
        the unlabelled rows and, unless all classes have the same number of labels, from these numbers. "uniform" and
        None mean equal shares, as in the paper. "labels" uses the shares among the labelled rows. A mapping gives the
        share of each class by its label. A sequence gives the shares in the order of the sorted classes. Shares must be
        positive and sum to 1, or be whole-number counts.

    coupling : {"differentiable", "shared", "detached", "none"}, default="differentiable"
        How the student's gradient treats the teacher. "differentiable" includes the gradient through the teacher
        (DRIFT). "shared" does so with the student's Jacobian in place of the teacher's, an approximation that
        needs no backward through the teacher (see `Game`). "detached" leaves it out (conventional self-training).
        "none" uses no teacher: supervised training.

    weak : bool, default=False
        Whether the labels are noisy. Noisy labels are used only to initialise the student; the game then uses
        pseudo-labels for all rows.

    unlabeled_weight : float, default=1.0
        Weight of the self-training term in the loss; 1 in the paper.

    start : {"auto", "labels"}, default="auto"
        What the student is first trained on. "auto" uses soft labels for labelled and unlabelled rows, see above.
        "labels" uses the given labels alone, as in the paper. With `weak`, with `coupling="none"`, without unlabelled
        rows, or with a number as `initial_steps`, "auto" is the same as "labels".

    initial_steps : "auto" or int, default="auto"
        Optimiser steps of the first phase. "auto" trains until the loss stops falling, for at most 400 steps.

    steps : "auto" or int, default="auto"
        Optimiser steps of the second phase, the game. "auto" trains until predictions for the unlabelled rows stop
        changing, for at most 400 steps, and chooses between the game and its start. With a number the game is kept.

    batch_size : int, default=256
        Labelled rows per step, and unlabelled rows per step.

    learning_rate : float, default=0.003
        Learning rate of AdamW.

    weight_decay : float, default=0.01
        Weight decay of AdamW. It does not apply to biases and normalisation layers.

    standardize : "auto" or bool, default="auto"
        Whether to scale each feature to mean 0 and standard deviation 1 over the rows given to `fit`. "auto" does so if
        the features seem to have different units: if the largest standard deviation is more than 10 times the median.
        Otherwise, and for sparse `X`, it divides all features by the same number, unless the start recognises labels
        that are left out better with each feature scaled on its own. Sparse `X` is never centred.

    n_jobs : int or None, default=None
        Number of threads that torch uses, or -1 for all cores. None means 1, which is fastest for small modules,
        unless a `joblib.parallel_config` context sets another number.

    random_state : int, RandomState instance or None, default=None
        Seed for the initial weights, dropout and the order of the rows. The same integer gives identical results.

    verbose : bool or int, default=0
        Whether to show a progress bar, and print one line about the start and the choice between it and the game.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.

    transduction_ : ndarray of shape (n_samples,)
        Label of each row given to `fit`, in the same order: the given label if there was one, else the prediction. If
        `weak`, the prediction for every row.

    n_iter_ : int
        Number of optimiser steps taken, both phases together.

    prior_ : ndarray of shape (n_classes,)
        Class shares that pseudo-labels were balanced towards, in the order of `classes_`.

    prior_source_ : str
        What `prior_` is based on.

    start_ : str
        What the student was first trained on, with the weights of the neighbour graphs, the linear classifier and the
        mixture of Gaussians. With more than 20,000 rows, a sample of that many is used.

    kept_ : {"game", "start"}
        Which of the two the student is. The start is kept if the game made the given labels less likely, judged by the
        predictions of their unlabelled neighbours, moved the shares of predicted classes away from `prior_`, or moved
        more than 2 % of the rows into classes whose share cannot be known. A class is such a class, and `fit` warns of
        it, if labels were drawn at random, few are of the class, and these are not recognised if they are left out.

    kept_reason_ : str
        What this choice is based on.

    student_ : torch.nn.Module
        The trained network, which makes the predictions.

    mean_ : ndarray of shape (n_features_in_,)
        Mean subtracted from each feature; zeros if `standardize` is false or `X` was sparse.

    scale_ : ndarray of shape (n_features_in_,)
        Divisor of each feature; ones if `standardize` is false.

    trace_ : list of dict
        Loss and diagnostics of the game at up to 20 steps.

    label_budget_ : int
        Number of labelled rows given to `fit`.

    n_features_in_ : int
        Number of features seen during `fit`.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only if `X` has feature names that are all strings.

    Notes
    -----
    `score` ignores unlabelled rows. scikit-learn's named scorers, such as `scoring="f1_macro"`, treat -1 as a class:
    with unlabelled rows in the test folds, pass a scoring function that leaves them out.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from drift import DriftClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> y_few = y.copy()
    >>> y_few[200:] = -1  # unlabelled
    >>> clf = DriftClassifier(random_state=0).fit(X, y_few)
    >>> bool(clf.score(X[200:], y[200:]) > 0.85)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS

    def __init__(
        self,
        module: nn.Module | ModuleFactory | None = None,
        *,
        hidden: Sequence[int] = (256,),
        dropout: float = 0.2,
        input_dropout: float | str = "auto",
        alpha: float = 0.9,
        tau: float = 0.5,
        class_mass: bool = True,
        prior: Mapping[Any, float] | Sequence[float] | str | None = "auto",
        coupling: str = "differentiable",
        weak: bool = False,
        unlabeled_weight: float = 1.0,
        start: str = "auto",
        initial_steps: int | str = "auto",
        steps: int | str = "auto",
        batch_size: int = 256,
        learning_rate: float = 3e-3,
        weight_decay: float = 1e-2,
        standardize: bool | str = "auto",
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
        self.start = start
        self.initial_steps = initial_steps
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.standardize = standardize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> "DriftClassifier":
        """Train on labelled and unlabelled rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Feature vectors. Sparse matrices are converted to CSR; each batch is made dense separately.

        y : array-like of shape (n_samples,)
            Labels: integers, strings, booleans or whole floats. -1, None and NaN mean unlabelled.

        Returns
        -------
        self : DriftClassifier
            The fitted estimator.
        """
        if y is None:
            raise ValueError("DriftClassifier requires y to be passed, but the target y is None; -1 marks no label")
        check_widths(self.hidden)
        X = summed_duplicates(validate_data(self, X, dtype=FLOATS, accept_sparse="csr"))
        encoded = encode_labels(y)
        check_consistent_length(X, encoded.codes)
        check_prior(self.prior, self.class_mass, encoded)
        self.classes_ = encoded.classes
        self.label_budget_ = int(encoded.labeled.sum())
        self.mean_, self.scale_ = feature_scaling(X, self.standardize)
        seed = int(check_random_state(self.random_state).randint(2**31))
        with seeded(seed), threads(effective_n_jobs(self.n_jobs)):
            self.student_ = build_student(self, X.shape[1], len(self.classes_))
            like = reference_tensor(self.student_)
            check_student(
                self.student_, scaled_tensor(X, slice(0, 1), self.mean_, self.scale_, like), len(self.classes_)
            )
            self.student_.train()  # pretrained modules are often in evaluation mode
            rows = training_rows(X, self.mean_, self.scale_, like)
            result = train(self, rows, encoded, torch.Generator().manual_seed(seed), np.random.default_rng(seed))
            self.trace_, self.n_iter_ = result.trace, result.steps
            self.prior_, self.prior_source_ = result.prior.values, result.prior.source
            self.start_, self.kept_, self.kept_reason_ = result.start, result.kept, result.kept_reason
            if not all(bool(p.isfinite().all()) for p in self.student_.parameters()):
                raise StateError(
                    f"training diverged: weights are no longer finite; lower learning_rate={self.learning_rate}"
                )
            self.student_.eval()
            self.transduction_ = self._transduction(X, encoded)
        if self.verbose:
            print(f"kept the {self.kept_} after {self.n_iter_} steps ({self.kept_reason_}); start: {self.start_}")
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict class probabilities with the student.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Feature vectors.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probability of each class, in the order of `classes_`.
        """
        check_is_fitted(self)
        return self._probabilities(validate_data(self, X, dtype=FLOATS, accept_sparse="csr", reset=False))

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most likely class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Feature vectors.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Predicted class labels.
        """
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the accuracy on the labelled rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Feature vectors.

        y : array-like of shape (n_samples,)
            True labels. Rows with -1, None or NaN are ignored.

        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of each row.

        Returns
        -------
        accuracy : float
            Share of labelled rows whose prediction is correct.
        """
        y = label_column(y)
        check_consistent_length(X, y, sample_weight)
        rows = np.flatnonzero(~is_blank(y))
        if not len(rows):
            raise LabelError(f"none of the {len(y)} rows has a label to score against")
        weights = None if sample_weight is None else np.asarray(sample_weight)[rows]
        return float(accuracy_score(np.array(y[rows].tolist()), self.predict(X)[rows], sample_weight=weights))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Save the fitted classifier to a folder, as safetensors and JSON without pickle.

        The folder holds the parameters and all fitted attributes, including `transduction_`, which contains the labels
        given to `fit`. A module passed as `module` is saved as its weights only.

        Parameters
        ----------
        path : str or path-like
            Folder to write. A folder written by `save` before is replaced.

        Returns
        -------
        folder : pathlib.Path
            Absolute path of the folder.
        """
        check_is_fitted(self)
        return save_classifier(self, path)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, module: nn.Module | ModuleFactory | None = None
    ) -> "DriftClassifier":
        """Load a classifier from a folder written by `save`.

        Parameters
        ----------
        path : str or path-like
            Folder written by `save`.

        module : torch.nn.Module, callable or None, default=None
            The module, or the callable that builds it, if the classifier was created with one: the folder holds only
            its weights.

        Returns
        -------
        classifier : DriftClassifier
            The fitted classifier.
        """
        return load_classifier(cls, path, module)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _probabilities(self, X: Any) -> np.ndarray:
        """Class probabilities for validated rows, dense or CSR."""
        like = reference_tensor(self.student_)
        pieces = (scaled_tensor(X, rows, self.mean_, self.scale_, like) for rows in row_slices(X))
        with torch.no_grad(), threads(effective_n_jobs(self.n_jobs)):
            return torch.cat([log_probabilities(self.student_, piece).exp() for piece in pieces]).cpu().numpy()

    def _transduction(self, X: Any, encoded: Encoded) -> np.ndarray:
        """Labels of the training rows: the given ones, and predictions for the others."""
        codes = encoded.codes
        keeps_label = encoded.labeled & (not self.weak)
        if not keeps_label.all():
            codes = np.where(keeps_label, codes, self._probabilities(X).argmax(axis=1))
        return np.asarray(self.classes_[codes])
