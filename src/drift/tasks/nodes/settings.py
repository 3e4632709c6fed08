"""Settings of runs on the nodes of a graph."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from drift.settings import Settings


class NodeDataSettings(Settings):
    """A graph and the classes of its nodes."""

    train: str = Field("", description="Name of a known graph, an .npz or .pt file, or a table of nodes.")
    edges: str | None = Field(None, description="Table of edges, for a table of nodes.")
    id: str | None = Field(None, description="Column with the ids of nodes; default: the first column.")
    label: str | None = Field(None, description="Column with the classes; a blank cell is unknown.")
    source: str | None = Field(None, description="Column of the edges table with the node an edge starts from.")
    target: str | None = Field(None, description="Column of the edges table with the node an edge leads to.")
    directed: bool = Field(False, description="Keep edges directed; otherwise each edge also counts in reverse.")
    labels_per_class: int | None = Field(
        None, ge=1, description="Train on this many random labels per class, drawn by seed; default: the graph's split."
    )
    dev_nodes: int = Field(500, ge=0, description="Nodes for model selection, where the graph has no split of its own.")
    test_nodes: int = Field(1000, ge=0, description="Nodes to score, where the graph has no split of its own.")
    is_weak: ClassVar[bool] = False


class NodeModelSettings(Settings):
    """The model of nodes."""

    name: str = Field(
        "gcn", description="gcn, grand, or a function that builds one: file.py:function or package.module:function."
    )
    frozen: Literal[False] = False
    hidden: int = Field(16, ge=1, description="gcn: width of the hidden layer.")
    dropout: float = Field(0.5, ge=0, lt=1, description="gcn: dropout rate.")
    recipe: dict[str, Any] = Field(
        default_factory=dict, description="grand: changes to its published settings for the graph."
    )
    reordered: bool = Field(True, description="grand: propagate features after the first layer, which is faster.")
    neighbours: int | None = Field(
        None, ge=1, description="gcn: sample this many neighbours per node and step; default: the whole graph."
    )
    scale_rows: bool | None = Field(
        None,
        description="gcn and grand: divide each node's features by their sum; default: true if none is negative.",
    )
