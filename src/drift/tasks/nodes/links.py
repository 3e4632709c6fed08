"""How the links of a graph go with its classes, and whether a model errs where they do not."""

from typing import Any

import numpy as np

from drift.data.graphs import Graph
from drift.data.labels import UNLABELED

ALONE = "no neighbour of known class"
NEIGHBOURHOODS = ("all of its class", "more than half", "half or fewer", "none of its class", ALONE)


def judged_links(graph: Graph, rows: np.ndarray, predicted: np.ndarray) -> dict[str, Any]:
    """Links from class to class, and how often nodes are right by how many of their neighbours are of their class.

    rows: the nodes that are judged, `(n,)`; predicted: a class index for each. Neighbours are linked either way, as the
    models have it. Links and neighbours of unknown class are left out.
    """
    labels, count = graph.labels, len(graph.labels)
    start, end = graph.edges
    both = np.unique(np.concatenate([start * count + end, end * count + start]))
    node, neighbour = np.divmod(both, count)
    known = (labels[node] != UNLABELED) & (labels[neighbour] != UNLABELED)
    node, neighbour = node[known], neighbour[known]
    links = np.zeros((len(graph.classes), len(graph.classes)), dtype=int)  # of a node, of its neighbour
    np.add.at(links, (labels[node], labels[neighbour]), 1)

    place = np.full(count, -1)
    place[rows] = np.arange(len(rows))
    judged = place[node] >= 0
    around = np.zeros((len(rows), len(graph.classes)), dtype=int)  # neighbours of each class
    np.add.at(around, (place[node[judged]], labels[neighbour[judged]]), 1)
    each, right, neighbours = np.arange(len(rows)), predicted == labels[rows], around.sum(1)
    own = around[each, labels[rows]]
    kinds = np.select(
        [neighbours == 0, own == neighbours, 2 * own > neighbours, own > 0],
        [NEIGHBOURHOODS.index(ALONE), 0, 1, 2],
        default=3,
    )
    wrong = ~right & (neighbours > 0)
    followed = around[each, predicted] == around.max(1)
    return {
        "links": {
            "counts": links.tolist(),
            "neighbourhoods": [
                {"count": int(right[kinds == kind].sum()), "of": int((kinds == kind).sum())}
                for kind in range(len(NEIGHBOURHOODS))
            ],
            "wrong_as_neighbours": {"count": int((wrong & followed).sum()), "of": int(wrong.sum())},
        }
    }
