"""From votes to one weak label a text: by majority, by weight, or by Snorkel's label model."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from drift.data.packages import needed_for
from drift.errors import ConfigError, ShapeError
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
    """The class with the most votes for each text, (N,), or `ABSTAIN` where nobody votes.

    votes: (N, M), classes or `ABSTAIN`. weights: (M,), what the vote of each rule counts; 1 if None.
    ties: "abstain"; "random", drawn from `seed`; or "order": of the tied classes, the one the first rule votes for.
    seed: a generator goes on from call to call, so that a table in pieces is labelled as the whole would be.
    """
    if ties not in TIES:
        raise ConfigError(f"ties={ties!r} is not one of {', '.join(TIES)}")
    votes = _checked(votes, n_classes)
    weights = np.ones(votes.shape[1]) if weights is None else np.asarray(weights)
    numbers = weights.shape == votes.shape[1:] and weights.dtype.kind in "iuf"
    if not numbers or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ShapeError(f"weights must be {votes.shape[1]} numbers from 0 up, one a rule")
    score = np.stack([(votes == code) @ weights for code in range(n_classes)], axis=1)  # (N, C)
    best = score.max(axis=1, initial=0)
    # Not ==: 0.1 + 0.2 and 0.3 are the same weight.
    leads = np.isclose(score, best[:, None], rtol=1e-9, atol=0) & (score > 0)
    labels = np.where(best > 0, leads.argmax(axis=1), ABSTAIN)
    tied = np.flatnonzero(leads.sum(axis=1) > 1)
    if ties == "abstain":
        labels[tied] = ABSTAIN
    elif ties == "random":
        # Drawn for every text, tied or not, so that the draws do not depend on how a table is cut.
        draws = generator(seed).random(len(votes))[tied]
        rank = np.floor(draws * leads[tied].sum(axis=1)) + 1
        labels[tied] = (leads[tied].cumsum(axis=1) == rank[:, None]).argmax(axis=1)
    else:
        for rule in reversed(np.flatnonzero(weights)):  # the first is set last
            for_a_leader = tied[(votes[tied, rule] != ABSTAIN) & leads[tied, votes[tied, rule]]]
            labels[for_a_leader] = votes[for_a_leader, rule]
    return labels


def label_model(votes: np.ndarray, n_classes: int, *, seed: int = 0, epochs: int = 500) -> np.ndarray:
    """The likeliest class for each text by Snorkel's LabelModel, (N,); `ABSTAIN` where nobody votes or two are equal.

    It learns how far to trust each rule from where they agree, and needs at least three of them.
    """
    votes = _checked(votes, n_classes)
    if votes.shape[1] < 3:
        raise ConfigError(f"the label model needs at least 3 rules, here are {votes.shape[1]}; use the majority")
    with _generators_lent():
        with needed_for("the label model", "pip install snorkel"):
            from snorkel.labeling.model import LabelModel
        model = LabelModel(cardinality=n_classes, verbose=False)
        model.fit(votes.astype(int), n_epochs=epochs, seed=seed, progress_bar=False)
        labels = np.asarray(model.predict(votes.astype(int), tie_break_policy="abstain"))
    # On a text without votes the model answers with the commonest class.
    return np.where((votes != ABSTAIN).any(axis=1), labels, ABSTAIN)


@contextmanager
def _generators_lent() -> Iterator[None]:
    """Snorkel seeds the global generators, and draws from them on import: they are given back as they were."""
    from drift.core.randomness import random_state, set_random_state

    before = random.getstate(), np.random.get_state(), random_state()
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        set_random_state(before[2])


def generator(seed: Any) -> np.random.Generator:
    """What numpy makes of a seed; a generator is handed back as it is."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"seed={seed!r} is no seed; give an integer from 0 up, or a generator") from error


def _checked(given: Any, n_classes: Any) -> np.ndarray:
    try:
        votes = np.asarray(given)
    except ValueError as error:
        raise ShapeError("votes must have one row a text, with as many votes each") from error
    if votes.ndim != 2 or not np.issubdtype(votes.dtype, np.integer):
        raise ShapeError(f"votes must be integers of shape (texts, rules), not {votes.dtype} {votes.shape}")
    if not isinstance(n_classes, (int, np.integer)) or n_classes < 1:
        raise ConfigError(f"n_classes={n_classes!r} is no number of classes; give an integer from 1 up")
    if votes.size and (votes.min() < ABSTAIN or votes.max() >= n_classes):
        raise ShapeError(f"votes go from {votes.min()} to {votes.max()}; {ABSTAIN} to {n_classes - 1} are possible")
    return votes
