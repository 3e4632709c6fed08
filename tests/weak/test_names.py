"""Class names as a source of labels: centring that survives skew, the mixture and its guard, warnings."""

from pathlib import Path

import numpy as np
import pytest

from drift.errors import ConfigError
from drift.weak.class_names import class_phrases
from drift.weak.names import AGREES, TEMPLATES, agreements, balanced, caught, class_vectors, most_certain, name_votes


def groups(counts: list[int], *, seed: int = 0, noise: float = 0.35, width: int = 48) -> tuple[np.ndarray, ...]:
    """Texts around one direction per class, names near these directions, and the classes of the texts."""
    rng = np.random.default_rng(seed)
    centers = np.linalg.qr(rng.normal(size=(width, len(counts))))[0].T
    labels = np.repeat(np.arange(len(counts)), counts)
    x = centers[labels] + noise * rng.normal(size=(len(labels), width)) / np.sqrt(width) * 3
    common = rng.normal(size=width)  # what all names share, such as the words of a template
    names = centers + 0.7 * common / np.linalg.norm(common) + 0.6 * rng.normal(size=centers.shape) / np.sqrt(width)
    return x, names / np.linalg.norm(names, axis=1, keepdims=True), labels


@pytest.mark.parametrize("counts", [[300, 300, 300], [700, 150, 70]])
def test_names_find_groups_of_equal_and_of_unequal_size(counts: list[int]) -> None:
    x, names, labels = groups(counts)
    found = name_votes(x, names, ["a", "b", "c"])
    right = found.likely == labels
    assert found.mixture
    assert right.mean() > 0.95
    kept = found.votes.any(-1)
    assert 0.45 < kept.mean() < 0.55
    assert right[kept].mean() >= right.mean()
    np.testing.assert_allclose(found.votes[kept].sum(-1), 1, rtol=1e-5)


def test_centring_does_not_assume_equal_shares() -> None:
    """With exact names, s_c is 1 in a class and 0 elsewhere: b_c is 1/C whatever the shares are."""
    labels = np.repeat([0, 1], [95, 5])
    similarity = np.eye(2)[labels] + [0.2, 0.0]  # the first name is nearer to every text
    centred = balanced(similarity)
    np.testing.assert_allclose(centred, np.eye(2)[labels] - 0.5)


def test_permuting_classes_permutes_votes() -> None:
    x, names, _ = groups([120, 60, 40])
    order = [2, 0, 1]
    plain, permuted = name_votes(x, names, ["a", "b", "c"]), name_votes(x, names[order], ["c", "a", "b"])
    np.testing.assert_allclose(plain.votes[:, order], permuted.votes, atol=1e-4)


def test_a_mixture_is_used_only_while_it_means_the_same_classes() -> None:
    rng = np.random.default_rng(0)
    score = rng.normal(size=(600, 3))
    assert agreements(score, 2 * score).tolist() == [1, 1, 1]
    assert agreements(score, rng.normal(size=(600, 3))).max() < AGREES  # other groups
    assert agreements(score, score[:, [1, 0, 2]]).tolist() == [0, 0, 1]  # two classes changed places
    assert agreements(score, score - [0, 0, 100])[2] == 0  # the last class has vanished


def test_few_texts_are_compared_with_names_alone() -> None:
    x, names, labels = groups([6, 6])
    found = name_votes(x, names, ["a", "b"])
    assert not found.mixture
    assert (found.likely == labels).mean() > 0.8
    assert set(np.unique(found.votes)) == {0.0, 1.0}


def test_every_class_keeps_its_most_certain_texts() -> None:
    likely, certainty = np.array([0, 0, 0, 0, 1]), np.array([1.0, 4.0, 2.0, 3.0, 0.1])
    assert most_certain(likely, certainty, 3).tolist() == [False, True, False, True, True]


def test_names_that_mean_the_same_and_names_without_texts_are_reported() -> None:
    x, names, _ = groups([200, 200])
    far = np.linalg.qr(np.vstack([names, x.mean(0), np.random.default_rng(1).normal(size=48)]).T)[0][:, -1]
    doubled = name_votes(x, np.vstack([names, names[1] + 1e-3]), ["a", "b", "b again"])
    assert any("'b' and 'b again' mean nearly the same" in fault for fault in doubled.faults)
    lonely = name_votes(x, np.vstack([names, far]), ["a", "b", "c"])
    assert any("hardly any text is near the class 'c'" in fault for fault in lonely.faults)
    assert name_votes(x, names, ["a", "b"]).faults == []


def test_a_name_that_fits_no_group_of_texts_is_reported() -> None:
    """Two groups, and a third name between them, to which some texts of each are nearest."""
    x, names, _ = groups([400, 400])
    middle = x[[0, -1]].mean(0) / np.linalg.norm(x[[0, -1]].mean(0))
    between = name_votes(x, np.vstack([names, middle]), ["a", "b", "other"])
    assert not between.mixture
    (fault,) = between.faults
    assert "do not fit the names, 'other' least of all" in fault


def test_vectors_of_names_and_of_descriptions() -> None:
    asked: list[str] = []

    def embed(texts: list[str]) -> np.ndarray:
        asked.extend(texts)
        return np.array([[len(text), 1.0] for text in texts])

    vectors = class_vectors({"7": ("sport",), "big_news": (), "8": ()}, embed)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1)
    assert "big news" in asked
    assert "7" not in asked  # a number says nothing beside a description
    assert "8" in asked  # but it is all there is
    assert len(asked) == 1 + 2 * len(TEMPLATES)


def test_examples_are_the_most_certain_texts() -> None:
    x, names, labels = groups([40, 40])
    found = name_votes(x, names, ["a", "b"])
    examples = caught(found, ["a", "b"], [f"text {row}" for row in range(80)], 2)
    best = max(np.flatnonzero(found.likely == 0), key=lambda row: found.certainty[row])
    assert examples["a"][0] == f"text {best}"
    assert {int(text.split()[1]) for text in examples["b"]} <= set(np.flatnonzero(labels == 1).tolist())


def test_classes_are_read_from_strings_lists_mappings_and_files(tmp_path: Path) -> None:
    file = tmp_path / "classes.yaml"
    file.write_text("sports: games and teams\n1: [stocks, banks]\nno:\n", encoding="utf-8")
    assert class_phrases(file) == {"sports": ("games and teams",), "1": ("stocks", "banks"), "no": ()}
    assert class_phrases(str(file)) == class_phrases(file)
    assert class_phrases("a, b ,c") == class_phrases(["a", "b", "c"]) == {"a": (), "b": (), "c": ()}
    assert class_phrases({"a": "x", 2: None}) == {"a": ("x",), "2": ()}


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ("sports", "only the class 'sports' is named"),
        ([], "no class is named"),
        ("a, b, a", "class 'a' is named twice"),
        ({"a": 3, "b": ""}, "class 'a' has 3"),
        (7, "is no list of classes"),
        ([None, "b"], "None is no name of a class"),
    ],
)
def test_bad_classes_are_one_line(classes: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught_error:
        class_phrases(classes)
    assert "\n" not in str(caught_error.value)
