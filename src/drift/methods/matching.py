"""Base of methods that label a text and train its augmentations: FixMatch and its successors.

    L = L_sup(θ) + w mean over x of ω(p) H(ŷ(p), f(x', θ)),   p = f(x, θ), no gradient

x is an unlabelled text, the weak view, and x' an augmentation of it, the strong view. A subclass says how p becomes a
label ŷ and a weight ω (`judge`), from statistics of predictions that it may keep (`observe`).

Differs from paper, for all of them: they were made for images. The weak view is the text itself, under dropout, as is
usual for texts; the strong view is from `drift.data.augmentation` and is made once. With several views their losses are
averaged. The first phase is supervised, as for every method here.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from drift.core.forward import log_probabilities
from drift.data.augmentation import AugmentationSettings
from drift.data.examples import Batch
from drift.methods.augmented import augmented
from drift.methods.materials import Materials, Texts
from drift.methods.method import TEXTS, Backward, Context, Method


class MatchingSettings(AugmentationSettings):
    """How texts are augmented, and the weight of the term on unlabelled texts."""

    unlabeled_weight: float = Field(1.0, ge=0, description="Weight of the term on unlabelled texts, w.")


class Averages(MatchingSettings):
    """Settings of methods that keep moving averages."""

    momentum: float = Field(
        0.99, ge=0, lt=1, description="Weight of the old value in moving averages over steps; 0.999 as published."
    )


class Matching(Method):
    """A label from the weak view trains the strong views. See the module's docstring.

    averages: running statistics by name, each with a leading dimension of trials if stacked.
    """

    needs = frozenset({TEXTS})
    relative_cost = 7 / 3
    reads_labeled = False  # whether `observe` needs predictions of the labelled texts

    def __init__(self, student: nn.Module, settings: Any, context: Context = Context()) -> None:
        super().__init__(student, settings, context)
        self.averages: dict[str, Tensor] = {}
        self.steps = 0
        self._last: dict[str, float] = {}

    @abstractmethod
    def judge(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """Return labels `(..., N, C)` and weights `(..., N)` for predictions of the weak view, p `(..., N, C)`."""

    def observe(self, p: Tensor, p_labeled: Tensor | None) -> None:
        """Update the statistics from all predictions of a step, `(..., N, C)`, on all processes."""

    def penalty(self, labels: Tensor, weights: Tensor, log_q: Sequence[Tensor]) -> Tensor | None:
        """Return a further loss of the whole batch, one value per trial; None if there is none. log_q: by view."""
        return None

    @classmethod
    def prepare_texts(cls, settings: Any, texts: Texts) -> Materials:
        return augmented(settings, texts)

    def start(self, probe: Any = None) -> None:
        self.averages, self.steps = {}, 0

    def loss(self, batch: Batch) -> Tensor:
        p = self._predictions(batch)
        self._observe([p])
        return self._score(batch, p[0])

    def accumulate(self, batches: Sequence[Batch], *, backward: Backward | None = None) -> Tensor:
        predictions = [self._predictions(batch) for batch in batches]  # statistics are those of the whole batch
        self._observe(predictions)
        losses = []
        for number, (batch, (p, _)) in enumerate(zip(batches, predictions, strict=True), 1):
            loss = self._score(batch, p)
            self.backward(loss, backward=backward, merge=number == len(batches))
            losses.append(loss.detach())
        return torch.stack(losses).sum()

    def follow(self) -> None:
        self.steps += 1

    @torch.no_grad()
    def _predictions(self, batch: Batch) -> tuple[Tensor | None, Tensor | None]:
        """Predictions of the unlabelled texts and, if they are needed, of the labelled ones."""
        inputs = [batch.unlabeled, batch.labeled[0] if batch.labeled is not None and self.reads_labeled else None]
        known = (None if x is None else log_probabilities(self.student, x, stacked=self.stacked) for x in inputs)
        p, p_labeled = (None if log_p is None else log_p.exp() for log_p in known)
        return p, p_labeled

    @torch.no_grad()
    def _observe(self, predictions: Sequence[tuple[Tensor | None, Tensor | None]]) -> None:
        p, p_labeled = ([each for each in part if each is not None] for part in zip(*predictions, strict=True))
        if p:
            everywhere = self.objective.everywhere
            labeled = everywhere(torch.cat(p_labeled, dim=-2)) if p_labeled else None
            self.observe(everywhere(torch.cat(p, dim=-2)), labeled)

    def _score(self, batch: Batch, p: Tensor | None) -> Tensor:
        terms, self._last = [], {}
        if batch.labeled is not None:
            terms.append(self.initial_loss(batch))
            self._last["supervised"] = float(terms[0].detach()) * batch.pieces
        if p is not None:
            with torch.no_grad():
                labels, weights = self.judge(p)
            views = batch.views or (batch.unlabeled,)
            log_q = [log_probabilities(self.student, view, stacked=self.stacked) for view in views]
            cross_entropy = torch.stack([-(labels * each).sum(-1) for each in log_q]).mean(0)
            unlabeled = self.mean(weights * cross_entropy, batch.unlabeled_total)
            penalty = self.penalty(labels, weights, log_q)
            terms.append(self.weight * (unlabeled if penalty is None else unlabeled + penalty / batch.pieces).sum())
            self._last |= {"self_trained": float(terms[-1].detach()), "weight": float(weights.mean())}
        return torch.stack(terms).sum()

    @property
    def weight(self) -> float:
        """The weight of the unlabelled term at this step."""
        return float(self.settings.unlabeled_weight)

    def average(self, name: str, new: Tensor, first: Tensor | float) -> Tensor:
        """Move an average towards a new value, and return it. first: its value before the first step."""
        old = self.averages.get(name)
        if old is None:
            old = torch.as_tensor(first, dtype=new.dtype, device=new.device).expand_as(new)
        self.averages[name] = torch.lerp(new, old, self.settings.momentum)
        return self.averages[name]

    def diagnostics(self) -> dict[str, Any]:
        return dict(self._last)

    def state_dict(self) -> dict[str, Any]:
        return {"averages": {name: value.clone() for name, value in self.averages.items()}, "steps": self.steps}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.averages = {name: value.clone() for name, value in state["averages"].items()}
        self.steps = state["steps"]


def one_hot_of(p: Tensor) -> Tensor:
    """The most likely class as a distribution, `(..., N, C)`."""
    return torch.zeros_like(p).scatter_(-1, p.argmax(-1, keepdim=True), 1.0)


def normalized(p: Tensor) -> Tensor:
    """Divided by the sum over classes."""
    return p / p.sum(-1, keepdim=True)
