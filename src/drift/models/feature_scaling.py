"""Scaling of node features: words, measurements and embeddings come in different scales."""

import warnings
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from drift.models.propagation import dense_row_normalized, row_normalized

Way = Literal["rows", "columns", "together", "none"]

# Standard deviations of features whose 5th and 95th percentile differ by a larger factor are of different units. Those
# of embeddings, of which the first dimensions may tell more than the last, differ by less.
SAME_UNIT = 20.0


@dataclass(frozen=True)
class FeatureScaling:
    """How features are scaled before a model sees them; a graph to predict is scaled like the one trained on.

    way: "rows" divides each node's features by their sum, as is usual for words; "columns" subtracts the mean of each
    feature and divides by its standard deviation; "together" subtracts means and divides all features by one number,
    the root of their mean variance; "none" leaves features as they are.
    center, scale: of each feature, `(d,)` float64. For rows a scale only: columns are divided by it before rows are;
    None if they have one unit.
    """

    way: Way = "none"
    center: Tensor | None = None
    scale: Tensor | None = None

    @classmethod
    def fit(cls, features: Tensor, way: Way | Literal["auto", "original"] = "auto") -> "FeatureScaling":
        """The scaling of these features `(n, d)`.

        auto: rows if they are sparse and not negative; otherwise together, or columns if they have different units.
        original: rows if they are not negative, otherwise none.
        """
        sparse = features.layout != torch.strided
        negative = bool(((features.values() if sparse else features) < 0).any())
        if way == "original":
            return cls("none" if negative else "rows")
        if way == "auto" and sparse and not negative:
            return cls("rows", scale=_column_scale(features))
        if way in ("rows", "none"):
            return cls(way)
        mean, deviation, constant = _column_statistics(features)
        if way == "auto":
            way = "together" if constant.all() or _spread(deviation[~constant]) <= SAME_UNIT else "columns"
        if way == "together":
            deviation = torch.full_like(deviation, float(deviation[~constant].square().mean().sqrt().nan_to_num(1.0)))
        return cls(way, mean, torch.where(constant, 1.0, deviation))

    def apply(self, features: Tensor, *, dense: bool = False) -> Tensor:
        """Scaled features. dense: in dense form; otherwise in the form that takes less memory."""
        if self.way == "none":
            return features.to_dense() if dense else features
        if self.way in ("columns", "together"):
            assert self.center is not None
            assert self.scale is not None
            # float64: a small deviation around a large mean would be lost.
            return ((features.to_dense().double() - self.center) / self.scale).float()
        if self.scale is not None:
            features = _divide_columns(features, self.scale)
        return dense_row_normalized(features) if dense else row_normalized(features)

    def check(self) -> None:
        """Raise a ValueError unless the tensors are there that `way` needs."""
        if self.way in ("columns", "together") and (self.center is None or self.scale is None):
            raise ValueError(f"features are scaled by {self.way}, but there is no center or no scale")

    def state_dict(self) -> dict[str, Tensor]:
        """The tensors, by name; those that are None are left out."""
        named = {"center": self.center, "scale": self.scale}
        return {name: value for name, value in named.items() if value is not None}


def _column_statistics(features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and standard deviation of each column, and whether it is constant."""
    var, mean = torch.var_mean(features.to_dense().double(), dim=0, correction=0)
    # Rounding leaves a constant column a deviation of about 1e-16 of its value.
    return mean, var.sqrt(), var.sqrt() <= 1e-7 * mean.abs()


def _spread(deviation: Tensor) -> float:
    low, high = torch.quantile(deviation, deviation.new_tensor([0.05, 0.95])).tolist()
    return float(high / low)


def _column_scale(features: Tensor) -> Tensor | None:
    """The mean of the non-zero values of each column; None if it is the same for all, as for 0 and 1."""
    columns, values = features.col_indices().long(), features.values().double()
    totals = torch.zeros(features.shape[1], dtype=torch.float64).index_add_(0, columns, values)
    counts = torch.bincount(columns, minlength=features.shape[1])
    scale = torch.where(counts == 0, 1.0, totals / counts.clamp(min=1))
    used = scale[counts > 0]
    return None if len(used) == 0 or torch.equal(used, used[:1].expand_as(used)) else scale


def _divide_columns(features: Tensor, scale: Tensor) -> Tensor:
    if features.layout == torch.strided:
        return (features / scale).float()
    starts, columns = features.crow_indices(), features.col_indices()
    values = (features.values() / scale[columns.long()]).float()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(starts, columns, values, features.shape, check_invariants=False)
