"""TextCNN equals nn.Conv1d, its gradients equal autograd's, and padding does not count."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from drift import Game
from drift.models.textcnn import TextCNN

WORDS, WIDTH, CLASSES = 30, 6, 3


def small(dtype: torch.dtype = torch.float64, **options: object) -> TextCNN:
    torch.manual_seed(0)
    vectors = torch.randn(WORDS, WIDTH, generator=torch.Generator().manual_seed(1))
    return TextCNN(vectors, CLASSES, **({"maps": 7} | options)).to(dtype).eval()


def batch(*lengths: int, times: int | None = None, seed: int = 0) -> dict[str, Tensor]:
    times = times or max(lengths)
    ids = torch.randint(1, WORDS, (len(lengths), times), generator=torch.Generator().manual_seed(seed))
    mask = (torch.arange(times) < torch.tensor(lengths).unsqueeze(1)).long()
    return {"input_ids": ids, "attention_mask": mask}  # ids behind the mask are arbitrary


def by_convolution(model: TextCNN, text: Tensor) -> Tensor:
    """Return the logits of one unpadded text `(T,)`, with torch's own layers."""
    x = nn.functional.embedding(text, model.vectors).T.unsqueeze(0)  # (1, D, T)
    x = nn.functional.pad(x, (0, max(0, max(model.windows) - len(text))))
    pooled = []
    for window, filters in zip(model.windows, model.filters, strict=True):
        kernel = filters.weight.view(-1, window, WIDTH).transpose(1, 2)
        inside = x[:, :, : max(len(text), window)]
        pooled.append(nn.functional.conv1d(inside, kernel, filters.bias).relu().amax(2))
    return model.output(torch.cat(pooled, 1))[0]


LENGTHS = (9, 1, 2, 5, 12, 4)


def test_logits_and_gradients_are_those_of_a_convolution() -> None:
    model, oracle = small(), small()
    inputs = batch(*LENGTHS)
    logits = model(**inputs)
    expected = torch.stack(
        [by_convolution(oracle, row[:n]) for row, n in zip(inputs["input_ids"], LENGTHS, strict=True)]
    )
    torch.testing.assert_close(logits, expected)
    logits.logsumexp(1).sum().backward()
    expected.logsumexp(1).sum().backward()
    for (name, ours), theirs in zip(model.named_parameters(), oracle.parameters(), strict=True):
        assert theirs.grad.abs().sum() > 0
        torch.testing.assert_close(ours.grad, theirs.grad, msg=lambda text, name=name: f"{name}: {text}")


def test_gradients_are_those_of_finite_differences() -> None:
    model = small(maps=2, windows=(1, 3))
    inputs = batch(6, 2)
    names, values = zip(*model.named_parameters(), strict=True)

    def logits(*values: Tensor) -> Tensor:
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), (), inputs)

    assert torch.autograd.gradcheck(logits, values)


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=5),
    more=st.integers(0, 9),
    seed=st.integers(0, 1000),
)
def test_padding_does_not_count(lengths: list[int], more: int, seed: int) -> None:
    model = small(torch.float32)
    inputs = batch(*lengths, times=max(lengths) + more, seed=seed)
    together = model(**inputs)
    for row, length in enumerate(lengths):
        alone = {name: value[row : row + 1, :length] for name, value in inputs.items()}
        torch.testing.assert_close(together[row], model(**alone)[0], rtol=0, atol=1e-6)


def test_padding_has_no_gradient() -> None:
    model = small()
    inputs = batch(1, 6, 3)
    inputs["input_ids"][inputs["attention_mask"] == 0] = 0
    model(**inputs).sum().backward()
    assert model.vectors.grad[0].abs().sum() == 0
    assert model.vectors.grad.abs().sum() > 0


def test_a_text_without_any_word_has_finite_logits_and_gradients() -> None:
    model = small()
    logits = model(**batch(0, 4))
    logits.sum().backward()
    assert logits.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_the_papers_sizes_are_the_defaults() -> None:
    model = TextCNN(torch.zeros(10, 300), 4)
    assert [tuple(filters.weight.shape) for filters in model.filters] == [(500, 300 * w) for w in (2, 3, 4, 5)]
    assert tuple(model.output.weight.shape) == (4, 2000)
    assert model.dropout.p == 0.5


def test_features_are_what_the_last_layer_reads() -> None:
    model, inputs = small(), batch(4, 8)
    features = model.features(**inputs)
    assert features.shape == (2, 7 * 4)
    assert (features >= 0).all()
    torch.testing.assert_close(model.output(features), model(**inputs))


def test_dropout_is_on_the_features_and_in_training_only() -> None:
    model, inputs = small(dropout=0.5), batch(4, 8)
    assert torch.equal(model(**inputs), model(**inputs))
    features = model.train().features(**inputs)
    assert torch.equal(features, model.features(**inputs))
    torch.manual_seed(3)
    logits = model(**inputs)
    torch.manual_seed(3)
    torch.testing.assert_close(logits, model.output(nn.functional.dropout(features, 0.5)))


def test_vectors_are_copied_and_stay_where_they_are_if_frozen() -> None:
    vectors = torch.randn(WORDS, WIDTH, generator=torch.Generator().manual_seed(1))
    frozen = TextCNN(vectors, CLASSES, maps=7, train_vectors=False)
    frozen(**batch(5, 3)).sum().backward()
    assert frozen.vectors.grad is None
    assert all(layer.weight.grad.abs().sum() > 0 for layer in frozen.filters)
    assert frozen.vectors.data_ptr() != vectors.data_ptr()


@pytest.mark.parametrize("train_vectors", [True, False])
def test_mixed_precision_is_near_full_precision(train_vectors: bool) -> None:
    full, mixed = (small(torch.float32, train_vectors=train_vectors) for _ in range(2))
    inputs = batch(*LENGTHS)
    full(**inputs).logsumexp(1).sum().backward()
    with torch.autocast("cpu", torch.bfloat16):
        logits = mixed(**inputs)
    logits.float().logsumexp(1).sum().backward()
    for ours, theirs in zip(mixed.filters.parameters(), full.filters.parameters(), strict=True):
        assert ours.grad.dtype == torch.float32
        assert nn.functional.cosine_similarity(ours.grad.flatten(), theirs.grad.flatten(), 0) > 0.95


def test_it_plays_the_game() -> None:
    game = Game(small(), alpha=0.5)
    game.teacher.load_state_dict(small().state_dict() | {"output.bias": torch.tensor([1.0, 0.0, -1.0]).double()})
    before = copy.deepcopy(game.student.state_dict())
    game.backward(game.loss(unlabeled=batch(*LENGTHS)))
    assert game.diagnostics().interaction_norm > 0
    torch.optim.SGD(game.student.parameters(), lr=0.1).step()
    game.follow()
    assert all(not torch.equal(before[name], value) for name, value in game.student.named_parameters())
