"""Representations in the plane: the same nodes in every panel, distinct classes, a reproducible figure."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes

from drift.errors import DataError
from drift.report import embedding_figure
from drift.report.embedding_figure import tsne_figure
from drift.report.figures import save

CLASSES = ["_first", "cost in $ and $", "third"]


def clouds(rows: int = 45) -> tuple[np.ndarray, np.ndarray]:
    """Points in well-separated clusters, and their classes."""
    labels = np.arange(rows) % 3
    noise = np.random.default_rng(0).normal(size=(rows, 6))
    return 40 * np.eye(6)[labels] + noise, labels


def drawn(axis: Axes) -> list[np.ndarray]:
    return [np.asarray(points.get_offsets()) for points in axis.collections]


def test_one_panel_per_representation_and_classes_form_clusters() -> None:
    points, labels = clouds()
    figure = tsne_figure({"Self-training": points, "DRIFT": 3 * points}, labels, CLASSES)
    assert [axis.get_title() for axis in figure.axes] == ["Self-training", "DRIFT"]
    for axis in figure.axes:
        groups = drawn(axis)
        assert [len(group) for group in groups] == [15, 15, 15]
        centres = np.stack([group.mean(0) for group in groups])
        for code, group in enumerate(groups):
            distances = np.linalg.norm(group[:, None] - centres, axis=-1)
            assert (distances.argmin(-1) == code).all()


def test_one_legend_has_the_names_unchanged() -> None:
    points, labels = clouds()
    figure = tsne_figure({"one": points, "two": points}, labels, CLASSES)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == CLASSES
    assert not any(text.get_parse_math() for text in legend.get_texts())
    assert all(axis.get_legend() is None for axis in figure.axes)


def test_more_classes_than_colours_look_different() -> None:
    points, _ = clouds(60)
    axis = tsne_figure({"one": points}, np.arange(60) % 20, [str(code) for code in range(20)]).axes[0]
    looks = {(tuple(each.get_facecolor()[0]), each.get_paths()[0].vertices.tobytes()) for each in axis.collections}
    assert len(looks) == 20


def test_nodes_of_unknown_class_are_left_out_and_all_panels_share_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_figure, "MOST_DRAWN", 20)
    points, labels = clouds()
    labels[::3] = -1
    figure = tsne_figure({"one": points, "two": points}, labels, CLASSES)
    one, two = (drawn(axis) for axis in figure.axes)
    assert sum(map(len, one)) == 20
    assert len(one[0]) == 0  # all of the first class are unknown
    assert all(np.array_equal(left, right) for left, right in zip(one, two, strict=True))


def test_the_same_numbers_are_the_same_bytes(tmp_path: Path) -> None:
    points, labels = clouds()
    one, other = (save(tsne_figure({"x": points}, labels, CLASSES), tmp_path / name, "tsne") for name in "ab")
    assert one.read_bytes() == other.read_bytes()
    assert one.with_suffix(".svg").read_bytes() == other.with_suffix(".svg").read_bytes()


def test_too_few_nodes_or_mismatched_labels_are_refused() -> None:
    points, labels = clouds()
    with pytest.raises(DataError, match="DRIFT: 44 nodes for 45 labels"):
        tsne_figure({"DRIFT": points[1:]}, labels, CLASSES)
    with pytest.raises(DataError, match="3 nodes have a class; give at least 4"):
        tsne_figure({"DRIFT": points}, np.where(np.arange(45) < 3, labels, -1), CLASSES)
    assert drawn(tsne_figure({"DRIFT": points[:4]}, labels[:4], CLASSES).axes[0])[0].shape == (2, 2)
