"""VAMPIRE (Gururangan et al., 2019): a variational model of bags of words, and a classifier that reads its states.

The equations, and the differences from the original work, are in methods/vampire.py.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, softplus

from drift.data.cache import cache_file, cache_folder, content_key
from drift.data.sealed import sealed_content
from drift.data.tokenized import Progress, TokenizedTexts, silent
from drift.data.word_counts import WordCounts
from drift.data.word_tokens import FIRST_WORD, WordTokenizer
from drift.errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix

FORMAT = "vampire/2"  # increase it when the same texts give a different encoder
TOP_WORDS = 10  # words per topic whose coherence is measured


@dataclass(frozen=True)
class Pretraining:
    """Hyperparameters of the encoder's training.

    words: size of the bag, which has the most frequent words.
    width: width of the layers, and number of topics.
    batch_size: texts per step.
    epochs, most_steps: maximum number of epochs and of steps.
    patience: epochs without better coherence before training stops.
    held_out: share of texts on which coherence is measured.
    learning_rate: of Adam.
    annealing_epochs: epochs until the divergence has its full weight.
    dropout: rate on the topic shares before they are normalised.
    """

    words: int = 10_000
    width: int = 64
    batch_size: int = 128
    epochs: int = 30
    most_steps: int = 1500
    patience: int = 5
    held_out: float = 0.1
    learning_rate: float = 3e-3
    annealing_epochs: int = 1000
    dropout: float = 0.49


class BagEncoder(nn.Module):
    """Bags of words to q(z | d) = N(μ, σ²).

    h₁ = softplus(W₁ counts + b₁), h₂ = softplus(W₂ h₁ + b₂), μ and log σ² linear in h₂.

    places: position in the bag of each token id; `words` for ids that are not in it. words: size of the bag. width:
    width of the layers.
    """

    places: Tensor

    def __init__(self, places: Tensor, words: int, width: int) -> None:
        super().__init__()
        self.register_buffer("places", places)
        self.bag = nn.Parameter(torch.randn(words + 1, width) * (2 / (words + width)) ** 0.5)
        self.bias = nn.Parameter(torch.zeros(width))
        self.second, self.mean, self.log_variance = (nn.Linear(width, width) for _ in range(3))

    def hidden(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return h₁ and h₂, each `(B, width)`. Padding does not count, whatever its id."""
        words = len(self.bag) - 1
        positions = self.places[input_ids].masked_fill(attention_mask == 0, words)
        first = softplus(embedding_bag(positions, self.bag, mode="sum", padding_idx=words) + self.bias)
        return first, softplus(self.second(first))

    def states(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the states that a classifier reads, `(3, B, width)`: h₁, h₂ and θ = softmax(μ)."""
        first, second = self.hidden(input_ids, attention_mask)
        return torch.stack([first, second, self.mean(second).softmax(-1)])


class Vampire(nn.Module):
    """Word ids to logits: one linear layer on averaged word vectors and a weighted sum of the fixed encoder's states.

    encoder: the trained encoder, which is frozen.
    mean, scale: statistics of the encoder's states, `(3, 1, width)`.
    vectors: one trained vector per word id, `(V, D)`.
    classes: number of logits.
    dropout: dropout rate before the linear layer.
    """

    location: Tensor
    scale: Tensor

    def __init__(
        self, encoder: BagEncoder, mean: Tensor, scale: Tensor, vectors: Tensor, classes: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.encoder = encoder.requires_grad_(False)
        self.register_buffer("location", mean)
        self.register_buffer("scale", scale)
        self.weights = nn.Parameter(torch.zeros(len(mean)))
        self.vectors = nn.Parameter(vectors.clone())
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(vectors.shape[1] + mean.shape[-1], classes)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return logits `(B, C)`. input_ids: `(B, T)`. attention_mask: 1 for words, 0 for the padding after them."""
        states = (self.encoder.states(input_ids, attention_mask) - self.location) / self.scale
        mixed = torch.einsum("s,sbw->bw", self.weights.softmax(0), states)
        mask = attention_mask.to(self.vectors.dtype)
        summed = embedding_bag(input_ids, self.vectors, mode="sum", per_sample_weights=mask)
        average = summed / mask.sum(1, keepdim=True)
        logits: Tensor = self.output(self.dropout(torch.cat([average, mixed], 1)))
        return logits

    @classmethod
    def from_state(cls, state: Mapping[str, Tensor], classes: int) -> "Vampire":
        """Build the module from its `state_dict`. classes: number of logits."""
        words, width = state["encoder.bag"].shape
        encoder = BagEncoder(state["encoder.places"], words - 1, width)
        module = cls(encoder, state["location"], state["scale"], state["vectors"], classes)
        module.load_state_dict(state)
        return module


class _Variational(nn.Module):
    """The encoder with its decoder: topics, and fixed log frequencies of words."""

    background: Tensor

    def __init__(self, encoder: BagEncoder, background: Tensor, dropout: float = 0.0) -> None:
        super().__init__()
        self.encoder, self.dropout = encoder, nn.Dropout(dropout)
        self.register_buffer("background", background)
        width = encoder.bag.shape[1]
        self.topics = nn.Parameter(torch.randn(width, len(background)) * (2 / (len(background) + width)) ** 0.5)
        self.norm = nn.BatchNorm1d(len(background))
        self.norm.weight.requires_grad_(False)  # fixed at 1

    def forward(self, input_ids: Tensor, attention_mask: Tensor, kl_weight: float) -> Tensor:
        """Return the negative evidence lower bound, averaged over texts. kl_weight: the annealed weight β."""
        _, hidden = self.encoder.hidden(input_ids, attention_mask)
        mean, log_variance = self.encoder.mean(hidden), self.encoder.log_variance(hidden)
        theta = self.dropout(mean + (log_variance / 2).exp() * torch.randn_like(mean)).softmax(-1)
        log_eta = self.norm(torch.addmm(self.background, theta, self.topics)).log_softmax(-1)
        positions = self.encoder.places[input_ids].masked_fill(attention_mask == 0, len(self.background))
        counted = positions < len(self.background)
        likelihood = (log_eta.gather(1, positions * counted) * counted).sum(1)
        divergence = (mean.square() + log_variance.exp() - 1 - log_variance).sum(1) / 2
        loss: Tensor = (kl_weight * divergence - likelihood).mean()
        return loss


def pretrained(
    texts: Sequence[str],
    tokens: TokenizedTexts,
    tokenizer: WordTokenizer,
    *,
    settings: Pretraining | None = None,
    progress: Progress | None = None,
) -> tuple[BagEncoder, Tensor, Tensor]:
    """Return an encoder trained on the texts or loaded from the cache, and the mean and scale of its states.

    It has its own random stream, so that the same texts give the same encoder.

    texts: the texts. tokens: the same texts tokenised by `tokenizer`. settings: default: `Pretraining()`. progress: as
    for `drift.models.embedding.embed`.
    """
    settings = settings or Pretraining()
    key = content_key(texts, FORMAT, tokenizer.key, int(tokens.lengths.sum()), astuple(settings))
    file = cache_folder() / "vampire" / f"{key}.safetensors"
    corpus = WordCounts.of(texts, tokenizer)
    chosen = np.flatnonzero(corpus.telling())[: settings.words]  # the most frequent come first
    if not len(chosen):
        raise DataError(f"none of the {len(tokenizer.words)} words can be used in a bag of words; give more texts")
    places = torch.full((len(tokenizer),), len(chosen))
    places[FIRST_WORD + torch.from_numpy(chosen)] = torch.arange(len(chosen))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        encoder = BagEncoder(places, len(chosen), settings.width)
        if (cached := sealed_content(file)) is not None:
            encoder.load_state_dict(load(cached))
        else:
            _train(encoder, tokens, corpus, chosen, settings, progress or silent)
            with cache_file(file) as aside:
                aside.write_bytes(save(encoder.state_dict()))  # save_file hides errors of the disk
    with torch.no_grad():
        inputs = [tokens.inputs(rows) for rows in torch.split(torch.arange(len(tokens)), 1024)]
        states = torch.cat([encoder.states(**batch) for batch in inputs], 1)
    scale = states.std(1, keepdim=True, correction=0).clamp(min=1e-6)
    return encoder, states.mean(1, keepdim=True), scale


def _train(
    encoder: BagEncoder,
    tokens: TokenizedTexts,
    corpus: WordCounts,
    chosen: np.ndarray,
    settings: Pretraining,
    progress: Progress,
) -> None:
    """Train until the topics' coherence on held-out texts no longer improves, and restore the best encoder."""
    held_out, rows = np.split(torch.randperm(len(tokens)).numpy(), [round(settings.held_out * len(tokens))])
    present = (corpus.counts[held_out][:, chosen] > 0).astype(np.float64).tocsc()
    background = torch.from_numpy(np.log(corpus.totals()[chosen] / corpus.totals()[chosen].sum())).float()
    model = _Variational(encoder, background, settings.dropout)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], settings.learning_rate, fused=True)
    epoch_steps = max(1, len(rows) // settings.batch_size)
    steps = min(settings.epochs * epoch_steps, settings.most_steps)
    best, best_state, since = -np.inf, copy.deepcopy(encoder.state_dict()), 0
    with progress("Pre-training VAMPIRE", steps) as tick:
        for step in range(steps):
            if step % epoch_steps == 0:
                drawn = torch.from_numpy(rows)[torch.randperm(len(rows))].tensor_split(epoch_steps)
            kl_weight = min(1.0, (1 + step // epoch_steps) / settings.annealing_epochs)
            loss = model(**tokens.inputs(drawn[step % epoch_steps]), kl_weight=kl_weight)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            tick()
            if (step + 1) % epoch_steps == 0 or step + 1 == steps:
                score = coherence(model.topics.detach(), present)
                since = 0 if score > best else since + 1
                if score > best:
                    best, best_state = score, copy.deepcopy(encoder.state_dict())
                if since == settings.patience:
                    break
    encoder.load_state_dict(best_state)


def coherence(topics: Tensor, present: "csc_matrix") -> float:
    """Return the mean NPMI of the top words of each topic: log(p_ij / p_i p_j) / -log p_ij, 0 for disjoint words.

    topics: `(topics, words)`. present: `(texts, words)`, 1 if a text has a word.
    """
    scores = []
    for top in topics.topk(min(TOP_WORDS, topics.shape[1])).indices.numpy():
        share = (present[:, top].T @ present[:, top]).toarray() / present.shape[0]
        i, j = np.triu_indices(len(top), 1)
        both, apart = share[i, j], share[i, i] * share[j, j]
        met = (both > 0) & (both < 1)
        scores.append(np.sum(np.log(both[met] / apart[met]) / -np.log(both[met])) / max(len(both), 1))
    return float(np.mean(scores))
