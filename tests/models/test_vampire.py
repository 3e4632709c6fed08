"""VAMPIRE: the bound against a reference, coherence against counts, and inputs and parameters of the classifier."""

import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csc_matrix
from torch import Tensor, nn

from drift.data.tokenized import TokenizedTexts, tokenize
from drift.data.word_tokens import FIRST_WORD, PADDING, WordTokenizer
from drift.errors import DataError, FileError
from drift.models.vampire import BagEncoder, Pretraining, Vampire, _Variational, coherence, pretrained
from drift.tasks.text.model import TextModel

pytest.importorskip("datasets", reason="needs datasets: pip install 'drift-ssl[text]'")

QUICK = Pretraining(width=8, batch_size=32, epochs=30, patience=30, learning_rate=0.02)
IDS, MASK = torch.tensor([[2, 3, 3, 1], [4, 2, PADDING, PADDING]]), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))


def small_encoder(width: int = 3) -> BagEncoder:
    """Return an encoder with words 2, 3 and 4 in the bag, without padding and unknown words."""
    torch.manual_seed(0)
    return BagEncoder(torch.tensor([3, 3, 0, 1, 2]), 3, width)


def small_vampire() -> Vampire:
    encoder = small_encoder()
    return Vampire(encoder, torch.randn(3, 1, 3), torch.rand(3, 1, 3) + 0.5, torch.randn(5, 2), 4)


def corpus() -> tuple[list[str], TokenizedTexts, WordTokenizer]:
    """Return texts of twelve words, from four topics in turn with forty words each."""
    drawn = np.random.default_rng(0).integers(0, 40, (400, 12))
    texts = [" ".join(f"t{row % 4}w{word}" for word in words) for row, words in enumerate(drawn)]
    tokenizer = WordTokenizer.from_texts(texts)
    return texts, tokenize(texts, tokenizer, max_length=16), tokenizer


def right(settings: Pretraining) -> tuple[float, Tensor]:
    """Return the number of texts that are nearest to the mean state of their topic's first three, and all states."""
    texts, tokens, tokenizer = corpus()
    encoder, mean, scale = pretrained(texts, tokens, tokenizer, settings=settings)
    states = ((encoder.states(**tokens.inputs(torch.arange(400))) - mean) / scale).detach()
    topics = torch.arange(400) % 4
    together = states.mean(0)
    centres = torch.stack([together[:12][topics[:12] == topic].mean(0) for topic in range(4)])
    return (torch.cdist(together[12:], centres).argmin(1) == topics[12:]).double().mean().item(), states


def counts() -> Tensor:
    return torch.tensor([[1.0, 2, 0], [1, 0, 1]])


def test_the_encoder_reads_counts_of_the_words_in_the_bag() -> None:
    encoder = small_encoder()
    first = nn.functional.softplus(counts() @ encoder.bag[:3] + encoder.bias)
    second = nn.functional.softplus(encoder.second(first))
    expected = torch.stack([first, second, torch.softmax(encoder.mean(second), -1)])
    torch.testing.assert_close(encoder.states(IDS, MASK), expected)


def test_the_bound_is_likelihood_and_divergence() -> None:
    encoder = small_encoder()
    model = _Variational(encoder, torch.tensor([0.5, 0.3, 0.2]).log()).eval()
    with torch.no_grad():
        encoder.log_variance.weight.zero_()
        encoder.log_variance.bias.fill_(-60.0)  # so that z is its mean
    _, hidden = encoder.hidden(IDS, MASK)
    mean = encoder.mean(hidden)
    logits = torch.softmax(mean, -1) @ model.topics + model.background
    likelihood = (counts() * torch.log_softmax(logits / math.sqrt(1 + model.norm.eps), -1)).sum(1)
    prior = torch.distributions.Normal(0.0, 1.0)
    posterior = torch.distributions.Normal(mean, math.exp(-30))
    divergence = torch.distributions.kl_divergence(posterior, prior).sum(1)
    for weight in (0.0, 0.5, 1.0):
        expected = (weight * divergence - likelihood).mean()
        torch.testing.assert_close(model(IDS, MASK, weight), expected, rtol=1e-4, atol=1e-4)


def test_each_term_of_the_bound_reaches_what_it_should() -> None:
    model = _Variational(small_encoder(), torch.tensor([0.5, 0.3, 0.2]).log())
    model(IDS, MASK, 0.0).backward()
    assert all(p.grad.abs().sum() > 0 for p in (model.topics, model.encoder.bag, model.encoder.mean.weight))
    alone = torch.autograd.grad(model(IDS, MASK, 1e6), model.encoder.log_variance.bias)[0]
    assert alone.abs().sum() > 1e3  # scaled by the large weight of the divergence
    assert not model.background.requires_grad


def test_coherence_is_the_mean_npmi_of_top_words() -> None:
    present = (np.random.default_rng(0).random((40, 12)) < 0.3).astype(float)
    present[:, 11] = 0  # a word that is in no text
    topics = torch.randn(3, 12, generator=torch.Generator().manual_seed(0))
    expected = []
    for topic in topics:
        for i, j in combinations(topic.topk(10).indices.tolist(), 2):
            both = (present[:, i] * present[:, j]).mean()
            apart = present[:, i].mean() * present[:, j].mean()
            expected.append(math.log(both / apart) / -math.log(both) if both else 0.0)
    assert coherence(topics, csc_matrix(present)) == pytest.approx(np.mean(expected))


def test_pretraining_tells_topics_apart_and_is_kept() -> None:
    untrained, _ = right(replace(QUICK, epochs=0))
    trained, states = right(QUICK)
    assert untrained < 0.6
    assert trained > 0.9
    torch.testing.assert_close(states.mean(1), torch.zeros(3, 8), atol=1e-4, rtol=0)
    torch.testing.assert_close(states.std(1, correction=0), torch.ones(3, 8), atol=1e-3, rtol=0)
    assert torch.equal(right(QUICK)[1], states)


def test_pretraining_leaves_the_callers_random_numbers_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    pretrained(*corpus(), settings=QUICK)
    assert torch.equal(torch.rand(2), expected)


def test_texts_without_a_word_for_the_bag_are_refused() -> None:
    texts, tokenizer = ["goal goal"] * 5, WordTokenizer(["goal"])
    with pytest.raises(DataError, match="none of the 1 words can be used in a bag"):
        pretrained(texts, tokenize(texts, tokenizer, max_length=8), tokenizer, settings=QUICK)


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    arguments, quickest = corpus(), replace(QUICK, epochs=1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # like a full disk
    try:
        with pytest.raises(FileError, match=r"cannot be written .*; set DRIFT_CACHE"):
            pretrained(*arguments, settings=quickest)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    (tmp_path / "a-file").write_text("")
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "a-file"))
    with pytest.raises(FileError, match=r"cannot be written .*; set DRIFT_CACHE"):
        pretrained(*arguments, settings=quickest)


def test_logits_are_of_averaged_vectors_beside_weighted_states() -> None:
    module = small_vampire()
    with torch.no_grad():
        module.weights.copy_(torch.tensor([0.3, -1.0, 2.0]))
    states = (module.encoder.states(IDS, MASK) - module.location) / module.scale
    mixed = sum(weight * state for weight, state in zip(module.weights.softmax(0), states, strict=True))
    average = torch.stack([module.vectors[[2, 3, 3, 1]].mean(0), module.vectors[[4, 2]].mean(0)])
    torch.testing.assert_close(module(IDS, MASK), module.output(torch.cat([average, mixed], 1)))


def test_all_but_the_encoder_is_trained() -> None:
    module = small_vampire()
    module(IDS, MASK)[:, 0].sum().backward()
    for name, parameter in module.named_parameters():
        assert (parameter.grad is None) == name.startswith("encoder."), name


def test_saved_and_opened_it_predicts_the_same(tmp_path: Path) -> None:
    tokenizer = WordTokenizer(["goal", "bank", "team"])
    assert len(tokenizer) == FIRST_WORD + 3
    model = TextModel(small_vampire(), tokenizer, list("abcd"), "vampire", max_length=8, temperature=0.7)
    texts = ["", "goal bank", "new words", "team " * 20]
    model.save(tmp_path / "m")
    opened = TextModel.load(tmp_path / "m")
    np.testing.assert_array_equal(opened.predict_proba(texts), model.predict_proba(texts))
    assert not opened.module.encoder.bag.requires_grad


def test_topic_shares_have_dropout_in_training_only() -> None:
    model = _Variational(small_encoder(), torch.tensor([0.5, 0.3, 0.2]).log(), dropout=1.0)
    with torch.no_grad():
        model.norm.eval()
        logits = model.topics.mean(0) + model.background  # z is 0 everywhere, so that all topics have the same share
        likelihood = (counts() * torch.log_softmax(logits / math.sqrt(1 + model.norm.eps), -1)).sum(1)
        torch.testing.assert_close(model(IDS, MASK, 0.0), -likelihood.mean(), rtol=1e-4, atol=1e-4)
        assert not torch.allclose(model.eval()(IDS, MASK, 0.0), -likelihood.mean(), rtol=1e-4, atol=1e-4)


def test_the_divergence_gains_weight_by_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    weights: list[float] = []
    forward = _Variational.forward

    def watched(self: _Variational, input_ids: Tensor, attention_mask: Tensor, kl_weight: float) -> Tensor:
        weights.append(kl_weight)
        return forward(self, input_ids, attention_mask, kl_weight)

    monkeypatch.setattr(_Variational, "forward", watched)
    texts, tokens, tokenizer = corpus()
    pretrained(texts, tokens, tokenizer, settings=replace(QUICK, batch_size=180, epochs=3, annealing_epochs=2))
    assert weights == [0.5, 0.5, 1.0, 1.0, 1.0, 1.0]
