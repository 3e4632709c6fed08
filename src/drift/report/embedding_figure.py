"""Learned representations in two dimensions (the paper's figure 5)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from drift.data.labels import UNLABELED
from drift.errors import DataError
from drift.report.figures import CLASS_COLOURS, MARKERS

MOST_DRAWN = 3000  # nodes; of more, a random sample is drawn
FEWEST = 4  # nodes that t-SNE needs
COLUMNS = 4  # of the legend
SEED = 0


def tsne_figure(
    representations: Mapping[str, np.ndarray],
    labels: np.ndarray,
    classes: Sequence[str],
    *,
    tick: Callable[[], None] = lambda: None,
) -> Figure:
    """Draw representations of the same nodes with t-SNE, one panel per representation.

    representations: arrays (n, d) by title, for example from `NodeModel.representations`. labels: class indices (n,);
    nodes of unknown class (-1) are left out, and at most `MOST_DRAWN` nodes, chosen at random, are drawn. classes: the
    class names. tick: progress callback, called after each panel.
    """
    for title, points in representations.items():
        if len(points) != len(labels):
            raise DataError(f"{title}: {len(points)} nodes for {len(labels)} labels; give one label per node")
    known = np.flatnonzero(labels != UNLABELED)
    if len(known) < FEWEST:
        raise DataError(f"{len(known)} nodes have a class; give at least {FEWEST} to draw")
    rows = np.random.default_rng(SEED).permutation(known)[:MOST_DRAWN]
    n_panels, legend_rows = len(representations), -(-len(classes) // COLUMNS)
    figure = Figure(figsize=(4.2 * n_panels, 3.8 + 0.22 * legend_rows), layout="constrained")
    panels = figure.subplots(1, n_panels, squeeze=False)[0]
    for axis, (title, points) in zip(panels, representations.items(), strict=True):
        plane = _plane(points[rows])
        dots = [axis.scatter(*plane[labels[rows] == code].T, **_look(code)) for code in range(len(classes))]
        axis.set(xticks=[], yticks=[], aspect="equal", adjustable="datalim")
        axis.set_title(title, parse_math=False)
        tick()
    numbers = [str(code) for code in range(len(classes))]
    legend = figure.legend(dots, numbers, loc="outside lower center", ncols=COLUMNS, markerscale=2, frameon=False)
    # Names are set afterwards: matplotlib would hide a label that begins with `_`, and read `$` as a formula.
    for text, name in zip(legend.get_texts(), classes, strict=True):
        text.set_parse_math(False)
        text.set_text(name)
    return figure


def _plane(points: np.ndarray) -> np.ndarray:
    """Project points (n, d) to (n, 2) with a fixed seed."""
    from sklearn.manifold import TSNE  # imported late: it takes a while

    perplexity = min(30.0, (len(points) - 1) / 3)  # scikit-learn's default, less for few points
    return np.asarray(TSNE(perplexity=perplexity, init="random", random_state=SEED).fit_transform(points))


def _look(code: int) -> dict[str, Any]:
    """The colour and marker of a class. Markers tell classes apart in greyscale, and beyond the number of colours."""
    marker = MARKERS[(code + code // len(CLASS_COLOURS)) % len(MARKERS)]
    colour = CLASS_COLOURS[code % len(CLASS_COLOURS)]
    return {"s": 7, "color": colour, "marker": marker, "edgecolor": "black", "linewidth": 0.2}
