"""Which samples are right, and when: a ring for each look at them (the paper's figure 4)."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Wedge

from drift.report.figures import CLASS_COLOURS

COLOURS = {True: CLASS_COLOURS[0], False: CLASS_COLOURS[1]}  # right and wrong: dark and light in grey print
HOLE, WIDTH = 0.35, 0.9  # radius of the hole; how much of its share of the radius a ring fills


def rings_figure(right: Mapping[int, np.ndarray]) -> Figure:
    """Samples around the clock, steps from the inside out; a radius is one sample, blue where it is right.

    right: for each step `(n,)` booleans of the same samples. They are put in order by what became of them, so that
    those with the same fate lie together.
    """
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axis, words = figure.subplots(1, 2, width_ratios=(1.2, 1))
    fates = np.stack(list(right.values()))  # (steps, n)
    fates = fates[:, np.lexsort(~fates[::-1])]  # by the first step, then the second, and so on; right before wrong
    room = (1 - HOLE) / len(fates)
    for place, ring in enumerate(fates):
        for first, end in _stretches(ring):
            start, stop = (90 - 360 * edge / len(ring) for edge in (end, first))  # clockwise, from the top
            outer = HOLE + room * (place + 1)
            axis.add_patch(Wedge((0, 0), outer, start, stop, width=WIDTH * room, color=COLOURS[bool(ring[first])]))
    axis.set(xlim=(-1.02, 1.02), ylim=(-1.02, 1.02), aspect="equal")
    lines = [f"step {step:,}: {100 * ring.mean():.1f} % right" for step, ring in right.items()]
    lines[0], lines[-1] = f"{lines[0]} (innermost)", f"{lines[-1]} (outermost)"
    words.text(0, 0.5, "\n".join(lines), va="center", linespacing=1.6, transform=words.transAxes)
    key = [Patch(color=COLOURS[kind], label=name) for kind, name in ((True, "right"), (False, "wrong"))]
    words.legend(handles=key, loc="lower left", frameon=False, ncols=2)
    for each in (axis, words):
        each.set_axis_off()
    return figure


def _stretches(ring: np.ndarray) -> list[tuple[int, int]]:
    """Where neighbours are alike: first and end of each stretch."""
    edges = [0, *(np.flatnonzero(np.diff(ring)) + 1).tolist(), len(ring)]
    return list(pairwise(edges))
