"""Figures of a run: the right numbers are drawn, for any class names and with missing measurements."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes

from drift.report.figures import confusion, game_curves, reliability, save, training_curves

TRACE = [
    {"phase": "start", "step": 10, "loss": 2.0},
    {"phase": "start", "step": 20, "loss": 1.0},
    {"phase": "start", "step": 20, "dev": {"accuracy": 0.5, "macro_f1": 0.4}},
    {"phase": "game", "step": 0, "dev": {"accuracy": 0.5, "macro_f1": 0.4}},
    {
        "phase": "game",
        "step": 10,
        "loss": 0.5,
        "leader_norm": 2.0,
        "interaction_norm": 1.0,
        "angle": 120.0,
        "flips": None,
    },
    {"phase": "game", "step": 10, "dev": {"accuracy": 0.75, "macro_f1": 0.7}},
]


def lines(axis: Axes) -> dict[str, list[tuple[float, float]]]:
    return {
        str(line.get_label()): [(float(x), float(y)) for x, y in np.asarray(line.get_xydata())] for line in axis.lines
    }


def test_the_game_continues_where_the_start_ended() -> None:
    loss, dev = training_curves(TRACE).axes
    assert lines(loss) == {"start": [(10, 2.0), (20, 1.0)], "game": [(30, 0.5)]}
    assert lines(dev) == {"start": [(20, 50.0)], "game": [(20, 50.0), (30, 75.0)]}
    assert lines(training_curves(TRACE, score="macro_f1").axes[1])["game"] == [(20, 40.0), (30, 70.0)]


@pytest.mark.parametrize(("least", "scale"), [(0.1, "log"), (0.0, "linear"), (-0.1, "linear")])
def test_a_loss_that_is_not_positive_has_a_linear_scale(least: float, scale: str) -> None:
    entries = [{"phase": "game", "step": 1, "loss": 1.0}, {"phase": "game", "step": 2, "loss": least}]
    assert training_curves(entries).axes[0].get_yscale() == scale


def test_without_dev_there_is_no_panel_for_it() -> None:
    (loss,) = training_curves([entry for entry in TRACE if "dev" not in entry]).axes
    assert loss.get_ylabel() == "loss"


def test_the_game_draws_measurements_and_skips_missing_ones() -> None:
    entries = [TRACE[4], {**TRACE[4], "step": 20, "angle": None, "flips": 3, "mean_omega": 0.5}]
    norms, angle, shares, flips = game_curves(entries).axes
    assert lines(norms) == {"leader": [(10, 2.0), (20, 2.0)], "(1 - α) interaction": [(10, 1.0), (20, 1.0)]}
    assert [(10, 120.0)] in lines(angle).values()
    assert lines(shares) == {"mean ω": [(20, 50.0)]}
    assert [(20, 3.0)] in lines(flips).values()


def test_without_interaction_neither_norms_nor_angle_are_drawn() -> None:
    alone = {**TRACE[4], "interaction_norm": 0.0, "angle": None, "flips": 3, "mean_omega": 0.5}
    shares, flips = game_curves([alone]).axes
    assert lines(shares) == {"mean ω": [(10, 50.0)]}
    assert [(10, 3.0)] in lines(flips).values()


def test_reliability_in_percent() -> None:
    bins = [{"rows": 3, "confidence": 0.5, "accuracy": 0.25}, {"rows": 5, "confidence": 0.9, "accuracy": 1.0}]
    left, right = reliability({"before": bins, "after": bins[:1]}).axes
    assert lines(left)["before"] == [(50, 25), (90, 100)]
    assert lines(left)["after"] == [(50, 25)]
    assert lines(right) == {"before": [(50, 3), (90, 5)], "after": [(50, 3)]}


def test_confusions_are_counts_shaded_by_share_of_the_true_class() -> None:
    counts = np.array([[30, 10], [0, 0]])  # no row of the second class
    (axis,) = confusion(counts, ["a", "b"]).axes
    assert [(text.get_position(), text.get_text()) for text in axis.texts] == [
        ((0, 0), "30"),
        ((1, 0), "10"),
        ((0, 1), "0"),
        ((1, 1), "0"),
    ]
    np.testing.assert_allclose(np.asarray(axis.images[0].get_array()), [[0.75, 0.25], [0, 0]])


@pytest.mark.parametrize(
    ("names", "drawn"),
    [
        (["$a$", "$\\frac{"], [r"\$a\$", r"\$\frac{"]),
        (["标签", "b"], ["1", "2"]),
        (["a\nb", "c"], ["1", "2"]),
        (["a" * 30, "b"], ["a" * 17 + "…", "b"]),
    ],
)
def test_any_class_name_can_be_drawn(tmp_path: Path, names: list[str], drawn: list[str]) -> None:
    figure = confusion(np.eye(2, dtype=int), names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns about missing glyphs
        save(figure, tmp_path, "confusion")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == drawn
