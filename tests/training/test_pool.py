"""All unlabelled rows as a method sees them between steps, and a run that draws from what it chose."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from drift.data.examples import Unlabeled, Vectors
from drift.data.windows import Windows
from drift.errors import Interrupted
from drift.models.stacked import Stacked
from drift.tasks.tokens.words import UnlabeledWords
from drift.training.devices import SingleProcess
from drift.training.pool import AllUnlabeled
from drift.training.run_folder import TRACE
from tests.training.runs import Seen, final_state, same_bits, small_data, small_run, small_student, stopped_after

X = torch.arange(50.0).unsqueeze(1)  # a row's vector is its number
ROWS = torch.tensor([7, 3, 41, 19, 0, 28])


def itself(inputs: Tensor) -> Tensor:
    return inputs


def pool_of(rows: Tensor, **options: Any) -> AllUnlabeled:
    return AllUnlabeled(Unlabeled(Vectors(X, **options), rows), SingleProcess())


@pytest.mark.parametrize("lengths", [None, np.arange(50)[::-1].copy()], ids=["as they come", "by length"])
def test_answers_are_in_the_order_of_the_rows(lengths: np.ndarray | None) -> None:
    pool = pool_of(ROWS, lengths=lengths, at_once=4)
    assert pool.counts is None
    assert torch.equal(pool.rows, ROWS)
    assert pool.ask(itself).flatten().tolist() == ROWS.tolist()
    assert pool.ask(itself, torch.tensor([5, 0, 0])).flatten().tolist() == [28, 7, 7]


def test_trials_have_rows_and_places_of_their_own() -> None:
    pool = pool_of(torch.stack([ROWS, ROWS.flip(0)]), at_once=4)
    assert pool.ask(itself).squeeze(-1).tolist() == [ROWS.tolist(), ROWS.flip(0).tolist()]
    assert pool.ask(itself, torch.tensor([[0, 1], [0, 5]])).squeeze(-1).tolist() == [[7, 3], [28, 7]]


def test_nothing_that_is_asked_has_a_gradient() -> None:
    layer = nn.Linear(1, 2)
    assert not pool_of(ROWS).ask(layer).requires_grad


SIZES = [3, 1, 4, 2, 5]  # words of each window
WORDS = Windows(
    [np.arange(size + 2) for size in SIZES], [np.arange(1, size + 1) for size in SIZES], list(range(5)), padding=0
)


def word_numbers(inputs: dict[str, Tensor]) -> Tensor:
    """For each word, how many words its window has and which of them it is."""
    ids, places = inputs["input_ids"], inputs["words"]
    line = places // ids.shape[1]
    sizes = inputs["attention_mask"].sum(1) - 2
    return torch.stack([sizes[line], places % ids.shape[1]], dim=1)


@pytest.mark.parametrize("places", [None, [3, 0], [4]])
def test_words_come_row_after_row_however_rows_were_batched(places: list[int] | None) -> None:
    rows = torch.tensor([4, 1, 0, 2])
    pool = AllUnlabeled(UnlabeledWords(WORDS, rows), SingleProcess())
    assert pool.counts.tolist() == [5, 1, 3, 4]
    if places == [4]:
        with pytest.raises((IndexError, RuntimeError)):
            pool.ask(word_numbers, torch.tensor(places))
        return
    asked = rows if places is None else rows[places]
    found = pool.ask(word_numbers, None if places is None else torch.tensor(places))
    assert found.tolist() == [[SIZES[row], word] for row in asked for word in range(1, SIZES[row] + 1)]


# A run that looks at its pool.

OFTEN = dict(sample=60, chosen=20, every=4, passes=3)


def looking_run(folder: Path | None = None, *, seed: int = 0, stacked: bool = False, **options: Any) -> Any:
    student: nn.Module = small_student(dropout=0.3, seed=seed)
    if stacked:
        student = Stacked([small_student(dropout=0.3, seed=seed + trial) for trial in range(2)])
        options |= {"seeds": (0, 1), "data": stacked_data()}
    return small_run(folder, student=student, method="uast", played=OFTEN, schedule="cosine", **options)


def stacked_data() -> Any:
    data = small_data(dev=False)

    def twice(values: Tensor) -> Tensor:
        return values.expand(2, -1)

    labeled, unlabeled = data.labeled, data.unlabeled
    return type(data)(
        type(labeled)(labeled.examples, twice(labeled.rows), twice(labeled.labels)),
        type(unlabeled)(unlabeled.examples, twice(unlabeled.rows)),
        None,
        weak=False,
    )


@pytest.mark.parametrize("after", [9, 12, 13, 16, 19], ids=lambda step: f"after {step - 8}")
def test_a_run_resumed_between_looks_is_the_whole_run_to_the_bit(tmp_path: Path, after: int) -> None:
    """Looks are at the start of the second phase, after 8 steps, and every four steps from there."""
    whole = looking_run(tmp_path / "whole")
    whole.run()
    stopped = looking_run(tmp_path / "run", kind=stopped_after(after))
    with pytest.raises(Interrupted):
        stopped.run()
    again = looking_run(tmp_path / "run", seed=9)
    again.run(resume=True)
    assert same_bits(final_state(again), final_state(whole))
    assert torch.equal(again.places, whole.places)
    assert (tmp_path / "run" / TRACE).read_bytes() == (tmp_path / "whole" / TRACE).read_bytes()


def test_stacked_trials_resume_across_a_look_too(tmp_path: Path) -> None:
    whole = looking_run(stacked=True)
    whole.run()
    stopped = looking_run(tmp_path / "run", stacked=True, kind=stopped_after(13))
    with pytest.raises(Interrupted):
        stopped.run()
    again = looking_run(tmp_path / "run", stacked=True, seed=9)
    again.run(resume=True)
    assert same_bits(final_state(again), final_state(whole))


def test_batches_are_drawn_from_what_was_chosen() -> None:
    run = looking_run(kind=Seen)
    run.run()
    chosen = set(run.data.unlabeled.rows[run.places].tolist())
    last = [set(batch.unlabeled_rows.tolist()) for batch in run.batches[1][8:]]
    assert all(rows <= chosen for rows in last)
    assert len(chosen) <= OFTEN["chosen"]
