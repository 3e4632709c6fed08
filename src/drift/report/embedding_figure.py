"""Learned representations in the plane (the paper's figure 5): what is near each other, and of which class it is."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from drift.data.labels import UNLABELED
from drift.errors import DataError
from drift.report.figures import CLASS_COLOURS, MARKERS

MOST_DRAWN = 3000
FEWEST = 4  # points that have neighbours near and far
COLUMNS = 4  # of the legend
SEED = 0


def tsne_figure(
    representations: Mapping[str, np.ndarray],
    labels: np.ndarray,
    classes: Sequence[str],
    *,
    tick: Callable[[], None] = lambda: None,
) -> Figure:
    """The nearness of many dimensions in two, by t-SNE: a panel for each of the representations, of the same nodes.

    representations: `(n, d)` by title, such as `NodeModel.representations` gives. labels: `(n,)` class indices;
    nodes of unknown class (-1) are left out, and of many nodes `MOST_DRAWN` are drawn, chosen at random. tick: called
    after every panel.
    """
    for title, points in representations.items():
        if len(points) != len(labels):
            raise DataError(f"{title}: {len(points)} nodes for {len(labels)} labels; give one a node")
    known = np.flatnonzero(labels != UNLABELED)
    if len(known) < FEWEST:
        raise DataError(f"{len(known)} nodes have a class; give at least {FEWEST} to draw")
    rows = np.random.default_rng(SEED).permutation(known)[:MOST_DRAWN]
    count, lines = len(representations), -(-len(classes) // COLUMNS)
    figure = Figure(figsize=(4.2 * count, 3.8 + 0.22 * lines), layout="constrained")
    for axis, (title, points) in zip(figure.subplots(1, count, squeeze=False)[0], representations.items(), strict=True):
        places = _plane(points[rows])
        drawn = [axis.scatter(*places[labels[rows] == kind].T, **_look(kind)) for kind in range(len(classes))]
        axis.set(xticks=[], yticks=[], aspect="equal", adjustable="datalim")
        axis.set_title(title, parse_math=False)
        tick()
    numbers = [str(kind) for kind in range(len(classes))]
    legend = figure.legend(drawn, numbers, loc="outside lower center", ncols=COLUMNS, markerscale=2, frameon=False)
    for text, name in zip(legend.get_texts(), classes, strict=True):  # a name is a name, with `_` or `$` in it too
        text.set_parse_math(False)
        text.set_text(name)
    return figure


def _plane(points: np.ndarray) -> np.ndarray:
    """`(n, d)` to `(n, 2)`, always the same."""
    from sklearn.manifold import TSNE  # imported late: it takes a while

    perplexity = min(30.0, (len(points) - 1) / 3)  # scikit-learn's, or what few points have
    return np.asarray(TSNE(perplexity=perplexity, init="random", random_state=SEED).fit_transform(points))


def _look(kind: int) -> dict[str, Any]:
    """A colour and a marker for each class: the markers are for grey print, and for more classes than colours."""
    marker = MARKERS[(kind + kind // len(CLASS_COLOURS)) % len(MARKERS)]
    colour = CLASS_COLOURS[kind % len(CLASS_COLOURS)]
    return {"s": 7, "color": colour, "marker": marker, "edgecolor": "black", "linewidth": 0.2}
