"""How the predictions of training rows changed over the game, for runs that wrote them at several steps."""

import zipfile
from itertools import pairwise
from pathlib import Path

import numpy as np

from drift.data.labels import UNLABELED
from drift.errors import FileError
from drift.report.page import Section, Table
from drift.report.rings_figure import rings_figure
from drift.tasks.parts import Draw
from drift.tasks.record import RunRecord
from drift.training.predictions import PREDICTIONS

MOST_RINGS = 6  # more cannot be distinguished


def ring_sections(folder: Path, record: RunRecord, draw: Draw) -> list[Section]:
    """The rings and their numbers; empty if fewer than two steps were written, or no true class is known."""
    right = _right(folder / PREDICTIONS, record.kept)
    if len(right) < 2:
        return []
    (start, first), *_, (end, last) = right.items()
    text = (
        f"Of {len(last):,} {record.unit} in the game with a known class, the student was right on {_percent(first)} at"
        f" step {start:,} and on {_percent(last)} at step {end:,}: {(~first & last).sum():,} changed from wrong to"
        f" right, {(first & ~last).sum():,} from right to wrong. Nothing was selected by this."
    )
    rows = [[f"{start:,}", _percent(first), "-", "-"]]
    for (_, before), (step, now) in pairwise(right.items()):
        rows.append([f"{step:,}", _percent(now), f"{(~before & now).sum():,}", f"{(before & ~now).sum():,}"])
    headings = ["step", "right", "wrong to right", "right to wrong"]
    caption = "One ring per step, from inside to outside. A radius is one row; rows with the same history are grouped."
    picture = draw(rings_figure(right), "rings", f"Rings of right and wrong predictions. {text}", caption)
    return [Section("Predictions over the game", [text], [Table(headings, rows, "By step")], [picture])]


def _right(folder: Path, kept: int) -> dict[int, np.ndarray]:
    """For each step, whether each row of known class is right. Of many steps, a selection with the first and last."""
    paths = sorted(folder.glob("step-*.npz"))
    if not paths:
        return {}
    chosen = np.unique(np.linspace(0, len(paths) - 1, MOST_RINGS).round().astype(int))
    right = {}
    for path in (paths[index] for index in chosen):
        try:
            with np.load(path, allow_pickle=False) as written:
                if "gold" not in written:
                    return {}
                predicted, gold = written["probabilities"].argmax(-1), written["gold"]
            if predicted.ndim > 1:  # stacked seeds
                predicted = predicted[kept]
            gold = gold[kept] if gold.ndim > 1 else gold
            known = gold != UNLABELED
            right[int(path.stem.removeprefix("step-"))] = predicted[known] == gold[known]
        except (OSError, ValueError, KeyError, IndexError, EOFError, zipfile.BadZipFile) as error:
            raise FileError(f"{path} cannot be read ({error}); delete it to have a page without it") from error
    if len(set(map(len, right.values()))) > 1:
        raise FileError(f"{folder}: steps have different rows; delete the folder to have a page without it")
    return right if any(map(len, right.values())) else {}


def _percent(right: np.ndarray) -> str:
    return f"{100 * right.mean():.1f} %"
