"""Combine votes into one weak label per text: by majority, weighted or not, or by Snorkel's label model."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from drift.errors import ConfigError, ShapeError, needed_for
from drift.weak.casting import ABSTAIN
from drift.weak.schema import Ties

TIES = ("abstain", "random", "order")


def majority(
    votes: np.ndarray,
    n_classes: int,
    *,
    ties: Ties = "abstain",
    seed: int | np.random.Generator = 0,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """The class with the most votes for each text, (N,); `ABSTAIN` for texts without votes.

    votes: (N, M), class codes or `ABSTAIN`.
    n_classes: the number of classes.
    ties: "abstain"; "random", drawn with `seed`; or "order": among the tied classes, the one that the first rule votes
    for.
    seed: a seed or a generator. A generator keeps its state between calls, so that a table labelled in parts gets the
    same labels as the whole table.
    weights: (M,), the weight of each rule; default: 1 for all.
    """
    check_ties(ties)
    votes = _checked(votes, n_classes)
    weights = np.ones(votes.shape[1]) if weights is None else np.asarray(weights)
    numeric = weights.shape == votes.shape[1:] and weights.dtype.kind in "iuf"
    if not numeric or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ShapeError(f"weights must be {votes.shape[1]} numbers >= 0, one per rule")
    score = np.stack([(votes == code) @ weights for code in range(n_classes)], axis=1)  # (N, C)
    best = score.max(axis=1, initial=0)
    # Not ==: weights of 0.1 + 0.2 and of 0.3 are a tie.
    leads = np.isclose(score, best[:, None], rtol=1e-9, atol=0) & (score > 0)
    labels = np.where(best > 0, leads.argmax(axis=1), ABSTAIN)
    tied = np.flatnonzero(leads.sum(axis=1) > 1)
    if ties == "abstain":
        labels[tied] = ABSTAIN
    elif ties == "random":
        # One draw per text, tied or not, so that the draws do not depend on how a table is split into parts.
        draws = generator(seed).random(len(votes))[tied]
        rank = np.floor(draws * leads[tied].sum(axis=1)) + 1
        labels[tied] = (leads[tied].cumsum(axis=1) == rank[:, None]).argmax(axis=1)
    else:
        for rule in reversed(np.flatnonzero(weights)):  # backwards: the first rule is set last
            for_a_leader = tied[(votes[tied, rule] != ABSTAIN) & leads[tied, votes[tied, rule]]]
            labels[for_a_leader] = votes[for_a_leader, rule]
    return labels


def label_model(votes: np.ndarray, n_classes: int, *, seed: int = 0, epochs: int = 500) -> np.ndarray:
    """The most likely class of each text under Snorkel's LabelModel, (N,); `ABSTAIN` for ties and without votes.

    The model estimates the accuracy of each rule from where rules agree. It needs at least three rules.

    votes: (N, M), class codes or `ABSTAIN`. n_classes: the number of classes. seed, epochs: of the model's training.
    """
    votes = _checked(votes, n_classes)
    if votes.shape[1] < 3:
        raise ConfigError(f"the label model needs at least 3 rules, not {votes.shape[1]}; use majority")
    with _restored_generators():
        with needed_for("the label model", "pip install snorkel"):
            from snorkel.labeling.model import LabelModel
        model = LabelModel(cardinality=n_classes, verbose=False)
        model.fit(votes.astype(int), n_epochs=epochs, seed=seed, progress_bar=False)
        labels = np.asarray(model.predict(votes.astype(int), tie_break_policy="abstain"))
    # For a text without votes the model predicts the most frequent class.
    return np.where((votes != ABSTAIN).any(axis=1), labels, ABSTAIN)


@contextmanager
def _restored_generators() -> Iterator[None]:
    """Restore the global random generators: Snorkel seeds them, and draws from them when it is imported."""
    from drift.core.randomness import random_state, set_random_state

    before = random.getstate(), np.random.get_state(), random_state()
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        set_random_state(before[2])


def check_ties(ties: Any) -> None:
    """Raise a ConfigError unless `ties` is a known policy."""
    if ties not in TIES:
        raise ConfigError(f"ties={ties!r} is not one of {', '.join(TIES)}")


def generator(seed: Any) -> np.random.Generator:
    """A NumPy generator for a seed; a generator is returned as it is."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"seed={seed!r} is not a seed; give an integer >= 0 or a NumPy generator") from error


def _checked(values: Any, n_classes: Any) -> np.ndarray:
    """The votes as an array of integers (N, M), if they are valid."""
    try:
        votes = np.asarray(values)
    except ValueError as error:
        raise ShapeError("votes must have one row per text, all of the same length") from error
    if votes.ndim != 2 or not np.issubdtype(votes.dtype, np.integer):
        raise ShapeError(f"votes must be integers of shape (texts, rules), not {votes.dtype} {votes.shape}")
    if not isinstance(n_classes, (int, np.integer)) or n_classes < 1:
        raise ConfigError(f"n_classes={n_classes!r} is not a number of classes; give an integer >= 1")
    if votes.size and (votes.min() < ABSTAIN or votes.max() >= n_classes):
        raise ShapeError(f"votes go from {votes.min()} to {votes.max()}; {ABSTAIN} to {n_classes - 1} are possible")
    return votes
