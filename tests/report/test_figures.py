"""Figures: both formats, the same bytes for the same numbers, and the right numbers."""

import os
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from drift.report.figures import save, training_curves
from drift.report.method_figures import Panel, decision_regions, learning_curves


def curves() -> Figure:
    noise = np.random.default_rng(0)
    return learning_curves({name: noise.uniform(0.7, 0.9, (6, 5)) for name in ("Self-training", "DRIFT")})


def regions() -> Figure:
    noise = np.random.default_rng(0)
    points, labels = noise.normal(size=(40, 2)), np.arange(6) % 2
    panels = [[Panel(f"{row}{column}", lambda x: 1 / (1 + np.exp(-x[:, 0]))) for column in "ab"] for row in "AB"]
    return decision_regions(panels, points, (points[:6], labels))


FIGURES = {"curves": curves, "regions": regions}


@pytest.mark.parametrize("name", FIGURES)
def test_both_formats_are_written_and_the_path_of_the_png_is_returned(tmp_path: Path, name: str) -> None:
    path = save(FIGURES[name](), tmp_path / "new" / "folder", name)
    assert path == tmp_path / "new" / "folder" / f"{name}.png"
    assert sorted(file.name for file in path.parent.iterdir()) == [f"{name}.png", f"{name}.svg"]
    assert path.read_bytes().startswith(b"\x89PNG\r\n")
    assert b"<svg" in path.with_suffix(".svg").read_bytes()


@pytest.mark.parametrize("name", FIGURES)
def test_the_same_numbers_are_the_same_bytes(tmp_path: Path, name: str) -> None:
    one, other = (save(FIGURES[name](), tmp_path / each, name) for each in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()
    assert one.with_suffix(".svg").read_bytes() == other.with_suffix(".svg").read_bytes()


def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    here = save(curves(), tmp_path / "here", "curves")
    code = "import sys; from pathlib import Path; from tests.report.test_figures import curves, save\n" + (
        "save(curves(), Path(sys.argv[1]), 'curves')"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    root = Path(__file__).parents[2]
    there = tmp_path / "there"
    subprocess.run([sys.executable, "-c", code, str(there)], check=True, env=environment, cwd=root)
    for suffix in ("svg", "png"):
        assert here.with_suffix(f".{suffix}").read_bytes() == (there / f"curves.{suffix}").read_bytes()


def test_curves_show_mean_and_deviation_in_percent() -> None:
    scores = np.array([[0.5, 0.6, 0.8], [0.7, 0.8, 0.9]])
    left, _, right = learning_curves({"Self-training": scores, "DRIFT": scores + 0.05}, unit="step").axes
    line = next(line for line in left.lines if line.get_label() == "Self-training")
    assert line.get_xdata().tolist() == [0, 1, 2]
    assert line.get_ydata() == pytest.approx([60, 70, 85])
    band = left.collections[0].get_paths()[0].vertices[:, 1]
    deviation = 100 * scores.std(0, ddof=1)
    assert (band.min(), band.max()) == pytest.approx((60 - deviation[0], 85 + deviation[2]))
    assert sorted(right.collections[0].get_offsets()[:, 1]) == pytest.approx([80, 90])
    assert left.get_xlabel() == "step"
    assert "2 trials" in right.get_title()


def test_a_run_of_several_seeds_has_a_band_and_one_of_one_seed_has_none() -> None:
    entries = [{"phase": "game", "step": 10 * k, "dev": {"accuracy": 0.6}} for k in (1, 2)]
    bands = [{**entry, "dev_by_seed": {"accuracy": [0.5, 0.7]}} for entry in entries]
    _, with_band = training_curves(bands).axes
    edges = with_band.collections[0].get_paths()[0].vertices[:, 1]
    deviation = 100 * np.std([0.5, 0.7], ddof=1)
    assert (edges.min(), edges.max()) == pytest.approx((60 - deviation, 60 + deviation))
    assert not training_curves(entries).axes[1].collections


def test_the_difference_is_taken_trial_by_trial() -> None:
    theirs = np.random.default_rng(0).uniform(0.5, 0.9, (8, 3))
    gaps = np.random.default_rng(1).normal(0.02, 0.01, (8, 3))
    middle = learning_curves({"Self-training": theirs, "DRIFT": theirs + gaps}).axes[1]
    curve = next(line for line in middle.lines if len(line.get_xdata()) == 3)
    assert curve.get_ydata() == pytest.approx(100 * gaps.mean(0))
    band = middle.collections[0].get_paths()[0].vertices[:, 1]
    # As wide as the differences vary; the spread of the trials is about ten times larger.
    assert np.ptp(band) < 100 * (np.ptp(gaps.mean(0)) + 6 * gaps.std(0, ddof=1).max() / np.sqrt(8))
    assert "DRIFT minus Self-training" in middle.get_title()


def test_methods_look_different_and_are_named() -> None:
    left, *_, right = curves().axes
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["Self-training", "DRIFT"]
    lines = [line for line in left.lines if line.get_label() in ("Self-training", "DRIFT")]
    assert len({line.get_color() for line in lines}) == 2
    assert len({line.get_linestyle() for line in lines}) == 2  # for readers who cannot see the colours
    assert [tick.get_text() for tick in right.get_xticklabels()] == ["Self-training", "DRIFT"]


def test_regions_show_every_panel_over_the_same_plane() -> None:
    axes = regions().axes
    assert [axis.get_title() for axis in axes] == ["Aa", "Ab", "Ba", "Bb"]
    assert len({axis.get_xlim() for axis in axes}) == 1
    assert len({axis.get_ylim() for axis in axes}) == 1


def test_the_border_runs_where_the_classes_are_even() -> None:
    seen: list[np.ndarray] = []

    def probability(x: np.ndarray) -> np.ndarray:
        seen.append(x)
        return 1 / (1 + np.exp(-4 * (x[:, 1] - 0.25)))

    points = np.random.default_rng(0).normal(size=(30, 2))
    figure = decision_regions([[Panel("one", probability)]], points, (points[:2], np.array([0, 1])))
    assert seen[0].shape[1] == 2
    assert (seen[0].min(0) <= points.min(0)).all()  # the plane reaches past the data
    assert (seen[0].max(0) >= points.max(0)).all()
    borders = [c for c in figure.axes[0].collections if getattr(c, "levels", None) is not None and len(c.levels) == 1]
    heights = np.concatenate([path.vertices[:, 1] for path in borders[0].get_paths()])
    assert np.allclose(heights, 0.25, atol=0.01)


def test_drawing_leaves_the_callers_style_alone(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    save(curves(), tmp_path, "curves")
    assert dict(matplotlib.rcParams) == before
