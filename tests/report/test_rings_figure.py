"""The rings: the blue share of each is the share of correct samples, and an angle is the same sample in all rings."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Wedge

from drift.report.rings_figure import COLOURS, rings_figure


def rings(figure: Figure) -> list[list[tuple[float, float, bool]]]:
    """The wedges of each ring, innermost first: start and end in turns from the top, and whether correct."""
    wedges = [patch for patch in figure.axes[0].patches if isinstance(patch, Wedge)]
    by_radius: dict[float, list[tuple[float, float, bool]]] = {}
    blue = Wedge((0, 0), 1, 0, 1, color=COLOURS[True]).get_facecolor()
    for wedge in wedges:
        start, end = ((90 - angle) / 360 for angle in (wedge.theta2, wedge.theta1))
        by_radius.setdefault(round(wedge.r, 6), []).append((start, end, wedge.get_facecolor() == blue))
    return [sorted(by_radius[radius]) for radius in sorted(by_radius)]


def shares(ring: list[tuple[float, float, bool]]) -> dict[bool, float]:
    return {is_right: sum(end - start for start, end, right in ring if right is is_right) for is_right in (True, False)}


def test_the_blue_share_of_a_ring_is_the_share_correct_at_its_step() -> None:
    generator = np.random.default_rng(0)
    right = {step: generator.random(200) < share for step, share in ((0, 0.4), (100, 0.6), (200, 0.9))}
    drawn = rings(rings_figure(right))
    assert len(drawn) == 3
    for ring, truth in zip(drawn, right.values(), strict=True):
        assert shares(ring)[True] == pytest.approx(truth.mean())
        assert sum(shares(ring).values()) == pytest.approx(1)


def test_an_angle_is_one_sample_and_equal_histories_are_adjacent() -> None:
    histories = np.array([[1, 1], [0, 1], [1, 0], [0, 0], [0, 1], [1, 1], [0, 0], [1, 1]], dtype=bool)
    inner, outer = rings(rings_figure({0: histories[:, 0], 50: histories[:, 1]}))
    assert inner == [(0, 4 / 8, True), (4 / 8, 1, False)]
    assert outer == [(0, 3 / 8, True), (3 / 8, 4 / 8, False), (4 / 8, 6 / 8, True), (6 / 8, 1, False)]


def test_the_numbers_are_written_beside_the_rings() -> None:
    words = rings_figure({0: np.array([True, False]), 1000: np.array([True, True])}).axes[1]
    (text,) = [each.get_text() for each in words.texts]
    assert text.splitlines() == ["step 0: 50.0 % correct (innermost)", "step 1,000: 100.0 % correct (outermost)"]
    assert [each.get_text() for each in words.get_legend().get_texts()] == ["correct", "wrong"]


def test_all_correct_and_all_wrong_are_full_rings() -> None:
    drawn = rings(rings_figure({0: np.zeros(3, dtype=bool), 1: np.ones(3, dtype=bool)}))
    assert drawn == [[(0, 1, False)], [(0, 1, True)]]
