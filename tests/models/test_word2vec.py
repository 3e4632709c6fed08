"""Word vectors: words with common neighbours are similar, a step follows the gradient, texts are separate."""

import numpy as np
import pytest
import torch
from torch.nn.functional import logsigmoid

from drift.data.word_tokens import WordTokenizer
from drift.models.word2vec import SkipGram, _pairs, _step, word_vectors
from tests.runs.small import WORDS, small_table

TEXTS = small_table(100)["body"]
TOKENIZER = WordTokenizer([*WORDS["money"], *WORDS["sport"]])
QUICK = SkipGram(width=8, epochs=15, sample=1.0, learning_rate=0.1)


@pytest.fixture(autouse=True)
def cache(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path))


def test_words_of_one_topic_are_nearer_than_words_of_two() -> None:
    vectors = word_vectors(TEXTS, TOKENIZER, settings=QUICK)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    near = vectors @ vectors.T
    own = np.concatenate([near[:10, :10][np.triu_indices(10, 1)], near[10:, 10:][np.triu_indices(10, 1)]])
    assert own.mean() > near[:10, 10:].mean() + 0.5


@pytest.mark.parametrize("rate", [0.025, 0.1])
def test_few_words_do_not_make_it_diverge(rate: float) -> None:
    vectors = word_vectors(
        ["goal bank goal team"] * 500,
        WordTokenizer(["goal", "bank", "team"]),
        settings=SkipGram(width=8, learning_rate=rate),
    )
    assert np.isfinite(vectors).all()


def test_one_seed_is_one_result_and_the_cache_gives_it_back() -> None:
    first = word_vectors(TEXTS[:50], TOKENIZER, settings=SkipGram(width=4, epochs=1))
    again = word_vectors(TEXTS[:50], TOKENIZER, settings=SkipGram(width=4, epochs=1))
    assert isinstance(again, np.memmap)  # read from the cache
    np.testing.assert_array_equal(first, again)
    other = word_vectors(TEXTS[:50], TOKENIZER, settings=SkipGram(width=4, epochs=1), seed=1)
    assert not np.array_equal(first, other)


def test_pairs_are_of_one_text_and_within_the_window() -> None:
    words, texts = np.arange(9), np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
    pairs = np.concatenate([_pairs(words, texts, 2, np.random.default_rng(seed)) for seed in range(20)], 1)
    distinct = set(map(tuple, pairs.T.tolist()))
    assert distinct == {(i, j) for i in range(9) for j in range(9) if 0 < abs(i - j) <= 2 and texts[i] == texts[j]}


def test_a_step_goes_up_the_gradient_of_the_objective() -> None:
    generator = torch.Generator().manual_seed(0)
    inner, outer = (torch.randn(6, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    pairs, negatives, weight, rate = torch.tensor([[0, 1, 1], [2, 3, 3]]), torch.tensor([4, 5, 5, 2]), 0.7, 0.01
    u, v = inner.clone().requires_grad_(), outer.clone().requires_grad_()
    close = logsigmoid((u[pairs[0]] * v[pairs[1]]).sum(1)).sum()
    (close + weight * logsigmoid(-u[pairs[0]] @ v[negatives].T).sum()).backward()
    expected = inner + rate * u.grad, outer + rate * v.grad
    _step(inner, outer, pairs, negatives, rate, weight)
    torch.testing.assert_close((inner, outer), expected)
