"""Labels as people write them: classes, missing labels and errors; sampling per class and the label budget."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.data.labels import UNLABELED, WRITTEN_BLANKS, LabelBudget, encode_labels, sample_per_class
from drift.errors import LabelError

NAN = float("nan")

# A name, labels with gaps, and the expected classes and codes.
WRITTEN = {
    "ints": ([3, -1, 7, 3], [3, 7], [0, -1, 1, 0]),
    "floats": ([3.0, NAN, 7.0, -1.0], [3.0, 7.0], [0, -1, 1, -1]),
    "small floats": (np.array([0, NAN, 1], dtype=np.float16), [0.0, 1.0], [0, -1, 1]),
    "unsigned": (np.array([255, 0, 255], dtype=np.uint8), [0, 255], [1, 0, 1]),
    "bools": (np.array([True, False, True]), [False, True], [1, 0, 1]),
    "bools and None": ([True, None, False], [False, True], [1, -1, 0]),
    "strings": (["b", "a", "b"], ["a", "b"], [1, 0, 1]),
    "strings and None": (["b", None, "a"], ["a", "b"], [1, -1, 0]),
    "strings and NaN": (["b", NAN, "a"], ["a", "b"], [1, -1, 0]),
    "strings and -1": (["b", -1, "a"], ["a", "b"], [1, -1, 0]),
    "objects": (np.array(["b", None, NAN, -1, "a"], dtype=object), ["a", "b"], [1, -1, -1, -1, 0]),
    "numbers as objects": (np.array([2, None, NAN, -1, 5], dtype=object), [2, 5], [0, -1, -1, -1, 1]),
    "Series": (pd.Series(["b", None, "a"], index=[9, 4, 2]), ["a", "b"], [1, -1, 0]),
    "Series of categories": (pd.Series(["b", None, "a"], dtype="category"), ["a", "b"], [1, -1, 0]),
    "Series of ints with NA": (pd.Series([5, pd.NA, 2], dtype="Int64"), [2, 5], [1, -1, 0]),
    "Series of bools with NA": (pd.Series([True, pd.NA, False], dtype="boolean"), [False, True], [1, -1, 0]),
    "Series of strings with NA": (pd.Series(["b", pd.NA, "a"], dtype="string"), ["a", "b"], [1, -1, 0]),
    "objects with NA": (np.array(["b", pd.NA, "a"], dtype=object), ["a", "b"], [1, -1, 0]),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_labels_are_encoded(name: str) -> None:
    written, classes, codes = WRITTEN[name]
    encoded = encode_labels(written)
    assert repr(encoded.classes.tolist()) == repr(classes)  # 2 is not 2.0
    assert encoded.codes.tolist() == codes
    assert encoded.labeled.tolist() == [code != UNLABELED for code in codes]
    assert encoded.codes.dtype == np.int64


@pytest.mark.parametrize("mark", sorted(WRITTEN_BLANKS))
def test_a_missing_label_written_as_a_string_is_not_taken_for_a_class(mark: str) -> None:
    with pytest.raises(LabelError, match="as a string; write None"):
        encode_labels(np.array(["a", mark, "b"]))


@given(
    codes=st.lists(st.integers(-1, 4), min_size=2, max_size=30).filter(lambda codes: len({*codes} - {-1}) > 1),
    names=st.lists(
        st.text(max_size=5).filter(lambda name: name.rstrip("\0") not in WRITTEN_BLANKS),
        min_size=5,
        max_size=5,
        unique=True,
    ),
)
def test_decoding_gives_back_every_label(codes: list[int], names: list[str]) -> None:
    written = np.array([None if code == UNLABELED else names[code] for code in codes], dtype=object)
    encoded = encode_labels(written)
    back = [None if code == UNLABELED else str(encoded.classes[code]) for code in encoded.codes]
    # numpy's strings end where only NULs follow; it cannot distinguish two names that differ only in that.
    assert [None if name is None else name.rstrip("\0") for name in written] == back
    assert encoded.classes.tolist() == sorted(encoded.classes.tolist())


@given(
    codes=st.lists(st.integers(-1, 5), min_size=2, max_size=30).filter(lambda codes: len({*codes} - {-1}) > 1),
    marks=st.lists(st.sampled_from([-1, None, NAN]), min_size=30, max_size=30),
)
def test_every_mark_of_unlabelled_means_the_same(codes: list[int], marks: list[object]) -> None:
    plain = encode_labels(np.array(codes))
    marked = [mark if code == UNLABELED else code for code, mark in zip(codes, marks, strict=False)]
    for other in (np.array(marked, dtype=object), [NAN if code == UNLABELED else code for code in codes]):
        encoded = encode_labels(other)
        assert encoded.codes.tolist() == plain.codes.tolist()
        assert encoded.classes.tolist() == plain.classes.tolist()


@pytest.mark.parametrize("nothing", [[-1, -1], [NAN, NAN], [None, None], np.array([], dtype=int)])
def test_no_label_at_all_is_refused(nothing: object) -> None:
    with pytest.raises(LabelError, match="label some rows"):
        encode_labels(nothing)


@pytest.mark.parametrize("single", [[1, 1], ["a", None, "a"], [True, True], [2.0, NAN]])
def test_one_class_is_refused(single: object) -> None:
    with pytest.raises(LabelError, match=r"one class.*at least two"):
        encode_labels(single)


@pytest.mark.parametrize("labels", [[-1, 1, -1, 1], [-1.0, 1.0]])
def test_minus_one_as_a_class_is_distinguished_from_a_single_class(labels: list[float]) -> None:
    with pytest.raises(LabelError, match=r"-1 means unlabelled.*rename it"):
        encode_labels(labels)


def test_strings_mixed_with_numbers_are_refused() -> None:
    with pytest.raises(LabelError, match="mix strings with other values such as 1"):
        encode_labels(np.array(["a", 1, "b"], dtype=object))


@pytest.mark.parametrize("labels", [[0.5, 1.5, 2.5], [0.0, 1.0, float("inf")], np.zeros((3, 2)), [[0, 1], [1, 0]]])
def test_values_that_are_no_classes_are_refused(labels: object) -> None:
    with pytest.raises(ValueError, match=r"label type|infinity|1d array"):
        encode_labels(labels)


@given(labels=st.lists(st.integers(0, 3), min_size=1, max_size=60), n=st.integers(1, 5), seed=st.integers(0, 99))
def test_n_rows_of_each_class_or_an_error_that_names_the_class(labels: list[int], n: int, seed: int) -> None:
    y = np.array(labels)
    classes, counts = np.unique(y, return_counts=True)
    if counts.min() < n:
        with pytest.raises(LabelError, match=rf"has {counts[counts < n][0]} rows, {n} were asked for"):
            sample_per_class(y, n, seed=seed)
        return
    rows = sample_per_class(y, n, seed=seed)
    assert np.array_equal(rows, np.unique(rows))  # sorted, none twice
    assert np.array_equal(np.unique(y[rows], return_counts=True), (classes, np.full(len(classes), n)))
    assert np.array_equal(rows, sample_per_class(y, n, seed=seed))


def test_another_seed_chooses_other_rows_and_the_global_generator_is_unused() -> None:
    y = np.repeat(["a", "b"], 50)
    before = np.random.get_state()[1].copy()
    chosen = {tuple(sample_per_class(y, 5, seed=seed)) for seed in range(20)}
    assert len(chosen) == 20
    assert np.array_equal(before, np.random.get_state()[1])


def test_every_row_can_be_chosen() -> None:
    y = np.repeat([0, 1], 10)
    seen = np.concatenate([sample_per_class(y, 3, seed=seed) for seed in range(50)])
    assert np.array_equal(np.unique(seen), np.arange(20))


def test_a_label_budget_counts_labels_for_training_and_for_selection() -> None:
    budget = LabelBudget(1200, 30)
    assert budget.total == 1230
    assert str(budget) == "1,230 gold labels (1,200 to train, 30 dev)"
