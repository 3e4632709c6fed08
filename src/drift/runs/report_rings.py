"""What became of each training row's prediction, where a run wrote them down at some steps."""

import zipfile
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from drift.data.labels import UNLABELED
from drift.errors import FileError
from drift.report.page import Picture, Section, Table
from drift.report.rings_figure import rings_figure

PREDICTIONS = "predictions"
MOST_RINGS = 6  # that can be told apart
Draw = Callable[[Figure, str, str, str], Picture]  # a figure, the name of its file, words for it, and a caption


def ring_sections(folder: Path, metrics: Mapping[str, Any], kept: int, draw: Draw) -> list[Section]:
    """The rings and their numbers; nothing where fewer than two steps were written, or no true class is known.

    kept: the place of the seed that is kept.
    """
    right = _right(folder / PREDICTIONS, kept)
    if len(right) < 2:
        return []
    (start, first), *_, (end, last) = right.items()
    told = (
        f"Of {len(last):,} {metrics['unit']} in the game whose class is known, the student was right on"
        f" {_percent(first)} at step {start:,} and on {_percent(last)} at step {end:,}: {(~first & last).sum():,} that"
        f" were wrong became right, {(first & ~last).sum():,} that were right became wrong. Nothing was chosen by this."
    )
    rows = [[f"{start:,}", _percent(first), "-", "-"]]
    for (_, before), (step, now) in pairwise(right.items()):
        rows.append([f"{step:,}", _percent(now), f"{(~before & now).sum():,}", f"{(before & ~now).sum():,}"])
    headings = ["step", "right", "wrong before, now right", "right before, now wrong"]
    caption = (
        "From inside to outside, a ring for each step; a radius is one of them, and those of one fate lie together."
    )
    picture = draw(rings_figure(right), "rings", f"Rings of right and wrong predictions. {told}", caption)
    return [Section("What became of its predictions", [told], [Table(headings, rows, "Step by step")], [picture])]


def _right(folder: Path, kept: int) -> dict[int, np.ndarray]:
    """For each step, whether each row of known class is right. Of many steps some, the first and the last with them."""
    paths = sorted(folder.glob("step-*.npz"))
    if not paths:
        return {}
    chosen = np.unique(np.linspace(0, len(paths) - 1, MOST_RINGS).round().astype(int))
    right = {}
    for path in (paths[place] for place in chosen):
        try:
            with np.load(path, allow_pickle=False) as written:
                if "gold" not in written:
                    return {}
                probabilities, gold = written["probabilities"], written["gold"]
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise FileError(f"{path} cannot be read ({error}); delete it to have a page without it") from error
        predicted = probabilities.argmax(-1)
        if predicted.ndim > 1:  # seeds that were trained at once
            predicted = predicted[kept]
        gold = gold[kept] if gold.ndim > 1 else gold
        known = gold != UNLABELED
        right[int(path.stem.removeprefix("step-"))] = predicted[known] == gold[known]
    return right if any(map(len, right.values())) else {}


def _percent(right: np.ndarray) -> str:
    return f"{100 * right.mean():.1f} %"
