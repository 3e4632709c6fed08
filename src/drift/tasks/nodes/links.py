"""How the links of a graph relate to its classes, and whether mistakes follow the neighbours."""

from typing import Any

import numpy as np

from drift.data.graphs import Graph
from drift.data.labels import UNLABELED

ALONE = "no neighbour of known class"
NEIGHBOURHOODS = ("all of its class", "more than half", "half or fewer", "none of its class", ALONE)


def judge_links(graph: Graph, rows: np.ndarray, predicted: np.ndarray) -> dict[str, Any]:
    """Links between classes, and how often nodes are right, grouped by the share of neighbours with the same class.

    rows: the scored nodes, `(n,)`; predicted: one class index for each. Links count in both directions, as in the
    models. Links and neighbours of unknown class are left out.
    """
    labels, count = graph.labels, len(graph.labels)
    start, end = graph.edges
    both = np.unique(np.concatenate([start * count + end, end * count + start]))
    node, neighbour = np.divmod(both, count)
    known = (labels[node] != UNLABELED) & (labels[neighbour] != UNLABELED)
    node, neighbour = node[known], neighbour[known]
    links = np.zeros((len(graph.classes), len(graph.classes)), dtype=int)  # of a node, of its neighbour
    np.add.at(links, (labels[node], labels[neighbour]), 1)

    position = np.full(count, -1)  # of a node among the scored ones
    position[rows] = np.arange(len(rows))
    judged = position[node] >= 0
    around = np.zeros((len(rows), len(graph.classes)), dtype=int)  # neighbours of each class
    np.add.at(around, (position[node[judged]], labels[neighbour[judged]]), 1)
    each, right, neighbours = np.arange(len(rows)), predicted == labels[rows], around.sum(1)
    same = around[each, labels[rows]]  # neighbours of the node's own class
    groups = np.select(
        [neighbours == 0, same == neighbours, 2 * same > neighbours, same > 0],
        [NEIGHBOURHOODS.index(ALONE), 0, 1, 2],
        default=3,
    )
    wrong = ~right & (neighbours > 0)
    followed = around[each, predicted] == around.max(1)
    return {
        "links": {
            "counts": links.tolist(),
            "neighbourhoods": [
                {"count": int(right[groups == group].sum()), "of": int((groups == group).sum())}
                for group in range(len(NEIGHBOURHOODS))
            ],
            "wrong_as_neighbours": {"count": int((wrong & followed).sum()), "of": int(wrong.sum())},
        }
    }
