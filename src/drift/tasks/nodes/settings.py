"""Settings of runs on the nodes of a graph."""

from collections.abc import Mapping
from types import NoneType
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from drift.methods.shares import LabelsAre
from drift.settings import Settings


class NodeDataSettings(Settings):
    """A graph and the classes of its nodes."""

    train: str = Field("", description="Name of a known graph, an .npz or .pt file, or a table of nodes.")
    edges: str | None = Field(None, description="Table of edges, for a table of nodes.")
    labels: tuple[str, ...] = Field((), description="Tables with labels of nodes, matched by the column `node`.")
    id: str | None = Field(None, description="Column with the ids of nodes; default: the first column.")
    label: str | None = Field(None, description="Column with the classes; a blank cell is unknown.")
    source: str | None = Field(None, description="Column of the edges table with the node an edge starts from.")
    target: str | None = Field(None, description="Column of the edges table with the node an edge leads to.")
    directed: bool = Field(False, description="Keep edges directed; otherwise each edge also counts in reverse.")
    labels_per_class: int | None = Field(
        None, ge=1, description="Train on this many random labels per class, drawn by seed; default: the graph's split."
    )
    labels_are: LabelsAre | None = Field(
        None,
        description="How nodes were chosen for labelling: random, per-class, or suggested by a model. Default: as the"
        " counts suggest.",
    )
    dev_nodes: int = Field(
        0,
        ge=0,
        description="Labelled nodes to hold out for model selection, where the graph has no dev nodes of its own; they"
        " count toward the label budget.",
    )
    test_nodes: int | None = Field(
        None,
        ge=0,
        description="Labelled nodes to hold out for a score, where the graph has no test nodes of its own; default:"
        " 1,000 with labels_per_class, otherwise none: all labels are used to train.",
    )
    is_weak: ClassVar[bool] = False


class NodeModelSettings(Settings):
    """The model of nodes."""

    name: str = Field(
        "gcn", description="gcn, grand, or a function that builds one: file.py:function or package.module:function."
    )
    frozen: Literal[False] = False
    hidden: int = Field(16, ge=1, le=10_000, description="gcn: width of the hidden layer.")
    dropout: float = Field(0.5, ge=0, lt=1, description="gcn: dropout rate.")
    variant: Literal["paper", "pygcn"] = Field(
        "paper",
        description="gcn: as in its paper, or as in the authors' PyTorch code: edges normalised by rows, no dropout on"
        " features, weight decay on both layers.",
    )
    recipe: dict[str, Any] = Field(
        default_factory=dict, description="grand: changes to its published settings for the graph."
    )
    reordered: bool = Field(True, description="grand: propagate features after the first layer, which is faster.")
    neighbours: int | None = Field(
        None, ge=1, description="gcn: sample this many neighbours per node and step; default: the whole graph."
    )
    scaling: Literal["auto", "rows", "columns", "together", "none", "original"] = Field(
        "auto",
        description="Scaling of features. rows: divide each node's features by their sum. columns: subtract the mean of"
        " each feature and divide by its standard deviation. together: subtract means and divide all by one number."
        " auto: rows if features are sparse and not negative; otherwise together, or columns if units differ."
        " original: rows if none is negative, otherwise none, as in 0.1.",
    )
    renamed: ClassVar[Mapping[str, str]] = {"scale_rows": "scaling"}

    @field_validator("scaling", mode="before")
    @classmethod
    def _from_scale_rows(cls, scaling: Any) -> Any:
        if isinstance(scaling, (bool, NoneType)):  # values of the old name
            return {True: "rows", False: "none", None: "original"}[scaling]
        return scaling
