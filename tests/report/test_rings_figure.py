"""The rings: as much of each is blue as is right, and a radius is the same sample in all of them."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Wedge

from drift.report.rings_figure import COLOURS, rings_figure


def rings(figure: Figure) -> list[list[tuple[float, float, bool]]]:
    """From inside to outside, the wedges of each ring: where they begin and end in turns from the top, and if right."""
    wedges = [patch for patch in figure.axes[0].patches if isinstance(patch, Wedge)]
    found: dict[float, list[tuple[float, float, bool]]] = {}
    blue = Wedge((0, 0), 1, 0, 1, color=COLOURS[True]).get_facecolor()
    for wedge in wedges:
        start, end = ((90 - angle) / 360 for angle in (wedge.theta2, wedge.theta1))
        found.setdefault(round(wedge.r, 6), []).append((start, end, wedge.get_facecolor() == blue))
    return [sorted(found[radius]) for radius in sorted(found)]


def shares(ring: list[tuple[float, float, bool]]) -> dict[bool, float]:
    return {kind: sum(end - start for start, end, right in ring if right is kind) for kind in (True, False)}


def test_the_colour_of_a_ring_is_what_is_right_at_its_step() -> None:
    generator = np.random.default_rng(0)
    right = {step: generator.random(200) < share for step, share in ((0, 0.4), (100, 0.6), (200, 0.9))}
    found = rings(rings_figure(right))
    assert len(found) == 3
    for ring, truth in zip(found, right.values(), strict=True):
        assert shares(ring)[True] == pytest.approx(truth.mean())
        assert sum(shares(ring).values()) == pytest.approx(1)


def test_a_radius_is_one_sample_and_those_of_one_fate_lie_together() -> None:
    fates = np.array([[1, 1], [0, 1], [1, 0], [0, 0], [0, 1], [1, 1], [0, 0], [1, 1]], dtype=bool)
    inner, outer = rings(rings_figure({0: fates[:, 0], 50: fates[:, 1]}))
    assert inner == [(0, 4 / 8, True), (4 / 8, 1, False)]
    assert outer == [(0, 3 / 8, True), (3 / 8, 4 / 8, False), (4 / 8, 6 / 8, True), (6 / 8, 1, False)]


def test_numbers_stand_beside_it() -> None:
    words = rings_figure({0: np.array([True, False]), 1000: np.array([True, True])}).axes[1]
    (text,) = [each.get_text() for each in words.texts]
    assert text.splitlines() == ["step 0: 50.0 % right (innermost)", "step 1,000: 100.0 % right (outermost)"]
    assert [each.get_text() for each in words.get_legend().get_texts()] == ["right", "wrong"]


def test_all_right_and_all_wrong_are_whole_rings() -> None:
    found = rings(rings_figure({0: np.zeros(3, dtype=bool), 1: np.ones(3, dtype=bool)}))
    assert found == [[(0, 1, False)], [(0, 1, True)]]
