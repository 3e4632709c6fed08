"""Splits a batch into micro-batches, as the feed of a run does."""

from torch import Tensor

from drift.core import Totals
from drift.data.examples import Batch


def cut(batch: Batch, *firsts: int) -> list[Batch]:
    """Return micro-batches that start at row 0 and at each of `firsts`; inputs are vectors."""
    bounds = zip((0, *firsts), (*firsts, None), strict=True)
    totals = Totals(*(0 if x is None else len(x) for x in (batch.labeled and batch.labeled[1], batch.unlabeled)))
    return [_piece(batch, slice(*bound), totals, 1 + len(firsts)) for bound in bounds]


def _piece(batch: Batch, rows: slice, totals: Totals, pieces: int) -> Batch:
    def part(x: Tensor | None) -> Tensor | None:
        return None if x is None else x[rows]

    labeled = None if batch.labeled is None else (batch.labeled[0][rows], batch.labeled[1][rows])
    views = tuple(view[rows] for view in batch.views)
    return Batch(
        labeled, part(batch.unlabeled), part(batch.labeled_rows), part(batch.unlabeled_rows), views, totals, pieces
    )
