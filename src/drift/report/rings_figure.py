"""Which samples are predicted correctly at which step, as concentric rings (the paper's figure 4)."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Wedge

from drift.report.figures import CLASS_COLOURS

COLOURS = {True: CLASS_COLOURS[0], False: CLASS_COLOURS[1]}  # correct and wrong: dark and light in greyscale
HOLE, WIDTH = 0.35, 0.9  # radius of the hole; share of its slot of the radius that a ring fills


def rings_figure(right: Mapping[int, np.ndarray]) -> Figure:
    """Draw one ring per step, the first innermost. An angle is one sample; it is blue where the prediction is correct.

    Samples with the same history of correct and wrong predictions lie next to each other.

    right: for each step, booleans (n,) of the same samples.
    """
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axis, words = figure.subplots(1, 2, width_ratios=(1.2, 1))
    rings = np.stack(list(right.values()))  # (steps, n)
    rings = rings[:, np.lexsort(~rings[::-1])]  # sorted by the first step, then the second, and so on; correct first
    room = (1 - HOLE) / len(rings)
    for number, ring in enumerate(rings):
        for first, end in _runs(ring):
            start, stop = (90 - 360 * edge / len(ring) for edge in (end, first))  # clockwise from the top
            outer = HOLE + room * (number + 1)
            axis.add_patch(Wedge((0, 0), outer, start, stop, width=WIDTH * room, color=COLOURS[bool(ring[first])]))
    axis.set(xlim=(-1.02, 1.02), ylim=(-1.02, 1.02), aspect="equal")
    lines = [f"step {step:,}: {100 * ring.mean():.1f} % correct" for step, ring in right.items()]
    lines[0], lines[-1] = f"{lines[0]} (innermost)", f"{lines[-1]} (outermost)"
    words.text(0, 0.5, "\n".join(lines), va="center", linespacing=1.6, transform=words.transAxes)
    key = [Patch(color=COLOURS[is_right], label=name) for is_right, name in ((True, "correct"), (False, "wrong"))]
    words.legend(handles=key, loc="lower left", frameon=False, ncols=2)
    for each in (axis, words):
        each.set_axis_off()
    return figure


def _runs(ring: np.ndarray) -> list[tuple[int, int]]:
    """The first and end index of each run of equal values."""
    edges = [0, *(np.flatnonzero(np.diff(ring)) + 1).tolist(), len(ring)]
    return list(pairwise(edges))
