"""All unlabelled rows of a run, for methods that read them between steps."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from drift.core.forward import Inputs
from drift.data.examples import Unlabeled
from drift.training.devices import SingleProcess
from drift.training.evaluation import answers


@dataclass(frozen=True)
class AllUnlabeled:
    """Implements `drift.methods.materials.Pool`."""

    part: Unlabeled
    machine: SingleProcess

    @property
    def rows(self) -> Tensor:
        return self.part.rows

    @property
    def counts(self) -> np.ndarray | None:
        counts = self.part.examples.counts
        return None if counts is None else counts[self.part.rows.numpy()]

    @torch.no_grad()
    def ask(self, answer: Callable[[Inputs], Tensor], places: Tensor | None = None) -> Tensor:
        rows = self.part.rows if places is None else self.part.rows.gather(-1, places)
        return answers(answer, self.part.examples, rows, self.machine)
