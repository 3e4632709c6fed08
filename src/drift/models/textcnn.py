"""TextCNN (Kim, 2014) with the paper's settings: word vectors, windows of several widths, the maximum over time."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding, embedding_bag, linear, pad


class TextCNN(nn.Module):
    """Texts as word ids to logits: feature maps over windows of words, ReLU, maximum over time, dropout, one layer.

    vectors: `(V, D)`, one for each word id; trained along where `train_vectors`. classes: how many logits.
    windows: their widths in words; maps: feature maps for each width. dropout: on the pooled maps.
    """

    def __init__(
        self,
        vectors: Tensor,
        classes: int,
        windows: Sequence[int] = (2, 3, 4, 5),
        maps: int = 500,
        dropout: float = 0.5,
        train_vectors: bool = True,
    ) -> None:
        super().__init__()
        self.windows = tuple(windows)
        self.vectors = nn.Parameter(vectors.clone(), requires_grad=train_vectors)
        width = vectors.shape[1]
        self.filters = nn.ModuleList(nn.Linear(window * width, maps) for window in self.windows)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(maps * len(self.windows), classes)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """`(B, T)` ids, and a mask that is 1 on words and 0 on the padding after them, to logits `(B, C)`."""
        logits: Tensor = self.output(self.dropout(self.features(input_ids, attention_mask)))
        return logits

    def features(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The pooled maps `(B, maps * len(windows))`. A text shorter than a window is filled up with zero vectors."""
        words, place = torch.unique(input_ids, return_inverse=True)
        known = pad(embedding(words, self.vectors), (0, 0, 1, 0))  # (U, D); the first is padding, zero whatever its id
        place = (place + 1) * attention_mask
        place = pad(place, (0, max(0, max(self.windows) - place.shape[1])))  # (B, T), into `known`
        lengths = attention_mask.sum(1, keepdim=True)
        pooled = []
        for window, filters in zip(self.windows, self.filters, strict=True):
            windows = place.unfold(1, window, 1)  # (B, starts, window)
            past_the_end = torch.arange(windows.shape[1], device=place.device) > (lengths - window).clamp(min=0)
            largest = _MaxOverWindows.apply(known, filters.weight, windows, past_the_end)  # type: ignore[no-untyped-call]
            pooled.append(largest + filters.bias)
        return torch.cat(pooled, 1).relu()  # ReLU after the maximum: the same, on far fewer numbers


class _MaxOverWindows(torch.autograd.Function):
    """max_t sum_k W_jk v(w_btk) over the windows t that are not masked, `(B, J)`.

    vectors: v, of U words, `(U, D)`. weight: W, `(J, K * D)`. windows: w, `(B, T, K)`. masked: `(B, T)`.

    A word stands in K windows, and a batch repeats half of its words or more, so each different word is multiplied
    once, and windows add up what came of it. Only the window that attains a maximum has a gradient, one of T: the
    backward adds up just those.
    """

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weight: Tensor, windows: Tensor, masked: Tensor) -> Tensor:
        batch, times, width = windows.shape
        by_place = weight.view(len(weight), width, -1).transpose(0, 1).flatten(0, 1)  # (K * J, D)
        products = linear(vectors, by_place).view(-1, len(weight))  # (U * K, J)
        index = (windows * width + torch.arange(width, device=windows.device)).flatten(0, 1)
        sums = embedding_bag(index, products, mode="sum").view(batch, times, -1)
        largest, at = sums.masked_fill_(masked.unsqueeze(2), -torch.inf).max(1)
        ctx.save_for_backward(vectors, weight, windows, at)
        return largest.to(vectors.dtype)  # under autocast the product is in a shorter type

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        vectors, weight, windows, at = ctx.saved_tensors
        batch, _, width = windows.shape
        words = windows[torch.arange(batch, device=at.device).unsqueeze(1), at]  # (B, J, K), of the largest window
        grads = grad.unsqueeze(2).expand_as(words)
        grad_vectors = grad_weight = None
        if ctx.needs_input_grad[0]:
            order = words.flatten().argsort()
            first = torch.searchsorted(words.flatten()[order], torch.arange(len(vectors), device=at.device))
            filters = weight.view(len(weight) * width, -1)
            grad_vectors = _weighted_sums(filters, order % len(filters), grads.flatten()[order], first)
        if ctx.needs_input_grad[1]:
            index, weights = (each.flatten(1).T.contiguous() for each in (words, grads))  # (J * K, B)
            grad_weight = _weighted_sums(vectors, index, weights).view_as(weight)
        return grad_vectors, grad_weight, None, None


def _weighted_sums(rows: Tensor, index: Tensor, weights: Tensor, first: Tensor | None = None) -> Tensor:
    """For each bag the sum of `weights * rows[index]`; bags are rows of `index`, or begin at the places `first`."""
    return embedding_bag(index, rows, first, mode="sum", per_sample_weights=weights)
