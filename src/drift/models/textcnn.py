"""TextCNN (Kim, 2014) with the paper's settings: word vectors, windows of several widths, maximum over time."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding, embedding_bag, linear, pad


class TextCNN(nn.Module):
    """Word ids to logits: feature maps over windows of words, ReLU, maximum over time, dropout, one linear layer.

    vectors: one vector per word id, `(V, D)`.
    classes: number of logits.
    windows: widths of the windows, in words.
    maps: feature maps per width.
    dropout: dropout rate on the pooled maps.
    train_vectors: whether the word vectors are trained.
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
        """Return logits `(B, C)`. input_ids: `(B, T)`. attention_mask: 1 for words, 0 for the padding after them."""
        logits: Tensor = self.output(self.dropout(self.features(input_ids, attention_mask)))
        return logits

    def features(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the pooled maps `(B, maps * len(windows))`. Texts shorter than a window are padded with zeros."""
        words, positions = torch.unique(input_ids, return_inverse=True)
        known = pad(embedding(words, self.vectors), (0, 0, 1, 0))  # (U + 1, D); the first is padding, always zero
        positions = (positions + 1) * attention_mask
        positions = pad(positions, (0, max(0, max(self.windows) - positions.shape[1])))  # (B, T), into `known`
        lengths = attention_mask.sum(1, keepdim=True)
        pooled = []
        for window, filters in zip(self.windows, self.filters, strict=True):
            windows = positions.unfold(1, window, 1)  # (B, starts, window)
            past_the_end = torch.arange(windows.shape[1], device=positions.device) > (lengths - window).clamp(min=0)
            largest = _MaxOverWindows.apply(known, filters.weight, windows, past_the_end)  # type: ignore[no-untyped-call]
            pooled.append(largest + filters.bias)
        return torch.cat(pooled, 1).relu()  # ReLU after the maximum gives the same result on far fewer numbers


class _MaxOverWindows(torch.autograd.Function):
    """max_t sum_k W_jk v(w_btk) over the windows t that are not masked, `(B, J)`.

    vectors: v, of U words, `(U, D)`. weight: W, `(J, K * D)`. windows: w, `(B, T, K)`. masked: `(B, T)`.

    A word is in K windows, and at least half of a batch's words are repeated. So each distinct word is multiplied once,
    and windows sum these products. Only the window with the maximum, one of T, has a gradient: backward sums just
    those.
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
        return largest.to(vectors.dtype)  # under autocast the product has a lower precision

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
    """Return the sum of `weights * rows[index]` per bag; bags are rows of `index`, or start at positions `first`."""
    return embedding_bag(index, rows, first, mode="sum", per_sample_weights=weights)
