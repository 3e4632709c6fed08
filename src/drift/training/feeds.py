"""The batches of every step: rows are drawn, shared among processes, and split into micro-batches."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from drift.core.forward import Inputs
from drift.core.objective import Totals
from drift.data.batches import EndlessBatches
from drift.data.examples import Batch, Labeled, Unlabeled
from drift.errors import ConfigError
from drift.training.seeding import generator_of


class Stream:
    """Batches of row numbers; one stream per trial if the rows are stacked.

    Every process draws the same global batches from the same seed and takes every `processes`-th row, so that no row is
    used twice in an epoch, over all processes.
    """

    def __init__(self, part: Labeled | Unlabeled, size: int, *, seeds: Sequence[int], by_length: bool) -> None:
        self.part, self.size = part, size
        trials = part.rows if part.rows.dim() == 2 else part.rows.unsqueeze(0)
        # Labelled and unlabelled rows of one seed are drawn from different streams.
        purpose = int(isinstance(part, Labeled))
        lengths = part.examples.lengths if by_length and part.rows.dim() == 1 else None
        own_lengths = None if lengths is None else lengths[part.rows.numpy()]
        self.batches = [
            EndlessBatches(len(rows), size, generator_of(seed, purpose), lengths=own_lengths)
            for seed, rows in zip(seeds, trials, strict=True)
        ]

    def over(self, part: Labeled | Unlabeled) -> None:
        """Continue with other rows, drawn by the same generators."""
        lengths = None if self.batches[0].lengths is None else part.examples.lengths
        own_lengths = None if lengths is None else lengths[part.rows.numpy()]
        rows = part.rows.shape[-1]
        self.part = part
        self.batches = [EndlessBatches(rows, self.size, each.generator, lengths=own_lengths) for each in self.batches]

    def places(self) -> Tensor:
        """The next batch, as positions in `part.rows`: `(N,)` or `(trials, N)`."""
        drawn = [next(batches) for batches in self.batches]
        return torch.stack(drawn) if self.part.rows.dim() == 2 else drawn[0]

    def state_dict(self) -> list[dict[str, Tensor]]:
        return [batches.state_dict() for batches in self.batches]

    def load_state_dict(self, state: list[Mapping[str, Tensor]]) -> None:
        for batches, saved in zip(self.batches, state, strict=True):
            batches.load_state_dict(saved)


class Feed(Iterator[list[Batch]]):
    """The micro-batches of each step, endlessly.

    batch_size, unlabeled_batch_size: labelled and unlabelled rows per optimizer step, over all processes and
        micro-batches.
    seeds: one per trial; a single one if the rows are not stacked.
    process, processes: which share of a batch to take.
    micro_batches: number of parts to split it into.
    """

    def __init__(
        self,
        labeled: Labeled | None,
        unlabeled: Unlabeled | None,
        *,
        batch_size: int,
        unlabeled_batch_size: int,
        seeds: Sequence[int],
        by_length: bool = True,
        process: int = 0,
        processes: int = 1,
        micro_batches: int = 1,
        device: torch.device | None = None,
    ) -> None:
        self.process, self.processes, self.micro_batches = process, processes, micro_batches
        self.device = device or torch.device("cpu")
        self.labeled = Stream(labeled, batch_size, seeds=seeds, by_length=by_length) if labeled else None
        self.unlabeled = (
            Stream(unlabeled, unlabeled_batch_size, seeds=seeds, by_length=by_length) if unlabeled else None
        )
        for name, stream in (("labelled", self.labeled), ("unlabelled", self.unlabeled)):
            if stream is not None and stream.batches[0].size < processes * micro_batches:
                raise ConfigError(
                    f"a batch has {stream.batches[0].size} {name} rows for {processes} processes with {micro_batches}"
                    " micro-batches each; use fewer of them, or give more rows"
                )

    def __next__(self) -> list[Batch]:
        labeled, unlabeled = (None if stream is None else stream.places() for stream in (self.labeled, self.unlabeled))
        totals = self._totals(labeled, unlabeled) if self.processes * self.micro_batches > 1 else None
        pieces = zip(self._pieces(labeled), self._pieces(unlabeled), strict=True)
        return [self._batch(*piece, totals).to(self.device) for piece in pieces]

    def _totals(self, labeled: Tensor | None, unlabeled: Tensor | None) -> Totals:
        """Number of labels and targets in the whole batch, which every process has drawn."""
        labels = 0 if self.labeled is None or labeled is None else self.labeled.part.targets(labeled)
        targets = 0 if self.unlabeled is None or unlabeled is None else self.unlabeled.part.targets(unlabeled)
        return Totals(labels, targets)

    def _pieces(self, places: Tensor | None) -> list[Tensor | None]:
        """This process's share of a batch, split into micro-batches."""
        if places is None:
            return [None] * self.micro_batches
        own = places[..., self.process :: self.processes]
        return [own[..., piece :: self.micro_batches] for piece in range(self.micro_batches)]

    def _batch(self, labeled: Tensor | None, unlabeled: Tensor | None, totals: Totals | None) -> Batch:
        pair = rows_l = inputs = rows_u = None
        views: tuple[Inputs, ...] = ()
        if self.labeled is not None and labeled is not None and isinstance(self.labeled.part, Labeled):
            rows_l = self.labeled.part.rows.gather(-1, labeled)
            pair = self.labeled.part.pair(labeled)
        if self.unlabeled is not None and unlabeled is not None:
            rows_u = self.unlabeled.part.rows.gather(-1, unlabeled)
            inputs = self.unlabeled.part.examples.inputs(rows_u)
            if isinstance(self.unlabeled.part, Unlabeled):
                views = tuple(view.inputs(rows_u) for view in self.unlabeled.part.views)
        return Batch(pair, inputs, rows_l, rows_u, views, totals, self.micro_batches)

    def state_dict(self) -> dict[str, Any]:
        return {
            "labeled": self.labeled and self.labeled.state_dict(),
            "unlabeled": self.unlabeled and self.unlabeled.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for stream, saved in ((self.labeled, state["labeled"]), (self.unlabeled, state["unlabeled"])):
            if stream is not None:
                stream.load_state_dict(saved)
