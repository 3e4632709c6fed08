"""Mixed and read hidden states: a share of 1 changes nothing, padding does not count, vectors give the logits."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from drift.core.forward import log_probabilities
from drift.errors import ConfigError
from drift.models.hidden import (
    class_count,
    depth,
    last_layer,
    mixed_log_probabilities,
    representations,
    representations_move,
)
from drift.models.mlp import mlp
from drift.models.stacked import Stacked
from drift.models.textcnn import TextCNN
from drift.tasks.text.model import linear_head
from drift.tasks.tokens.model import Tagger

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")

LAYERS, CLASSES, WORDS = 3, 4, 40
LENGTHS = (7, 3, 5, 2)
ORDER = torch.tensor([2, 3, 1, 0])
SIZES = {"vocab_size": WORDS, "num_labels": CLASSES, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
BERT_LIKE = {
    "hidden_size": 16,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
}
KINDS: dict[str, dict[str, Any]] = {
    "bert": BERT_LIKE,
    "roberta": BERT_LIKE,
    "mpnet": BERT_LIKE,
    "electra": {**BERT_LIKE, "embedding_size": 16},
    "distilbert": {"dim": 16, "n_layers": LAYERS, "n_heads": 2, "hidden_dim": 24, "max_position_embeddings": 32},
}


def transformer(kind: str = "bert", head: str = "SequenceClassification", **settings: Any) -> nn.Module:
    import transformers

    config = transformers.AutoConfig.for_model(kind, **SIZES, **(KINDS.get(kind, BERT_LIKE) | settings))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return getattr(transformers, f"AutoModelFor{head}").from_config(config).double().eval()


def textcnn() -> TextCNN:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return TextCNN(torch.randn(WORDS, 6), CLASSES, maps=5).double().eval()


def texts(*lengths: int, times: int | None = None) -> dict[str, Tensor]:
    ids = torch.randint(3, WORDS, (len(lengths), 12), generator=torch.Generator().manual_seed(1))
    mask = torch.arange(12) < torch.tensor(lengths).unsqueeze(1)
    times = times or max(lengths)
    return {"input_ids": torch.where(mask, ids, 1)[:, :times], "attention_mask": mask.long()[:, :times]}


def head(features: int = 6) -> nn.Module:
    made = linear_head(features, CLASSES)
    nn.init.normal_(made[0].weight)
    return made


OF_TEXTS = {**{kind: lambda kind=kind: transformer(kind) for kind in KINDS}, "textcnn": textcnn}
BY_KIND = pytest.mark.parametrize("kind", OF_TEXTS)


# Mixing.


@BY_KIND
def test_a_share_of_one_changes_nothing(kind: str) -> None:
    module, inputs = OF_TEXTS[kind](), texts(*LENGTHS)
    alone = log_probabilities(module, inputs)
    for layer in range(1, depth(module) + 1):
        torch.testing.assert_close(mixed_log_probabilities(module, [inputs], layer, 1.0, ORDER), alone)


@BY_KIND
def test_a_smaller_share_does_and_every_layer_otherwise(kind: str) -> None:
    module, inputs = OF_TEXTS[kind](), texts(*LENGTHS)
    mixed = [mixed_log_probabilities(module, [inputs], layer, 0.6, ORDER) for layer in range(1, depth(module) + 1)]
    for one, other in zip([log_probabilities(module, inputs), *mixed], mixed, strict=False):
        assert (one - other).abs().amax(1).min() > 1e-7


@BY_KIND
def test_padding_does_not_count(kind: str) -> None:
    module = OF_TEXTS[kind]()
    mixed = [
        mixed_log_probabilities(module, [texts(*LENGTHS, times=times)], depth(module), 0.6, ORDER) for times in (7, 11)
    ]
    torch.testing.assert_close(*mixed)


@BY_KIND
def test_the_hook_goes_with_the_call(kind: str) -> None:
    module, inputs = OF_TEXTS[kind](), texts(*LENGTHS)
    before = log_probabilities(module, inputs)
    mixed_log_probabilities(module, [inputs], 1, 0.6, ORDER)
    with pytest.raises(IndexError):
        mixed_log_probabilities(module, [inputs], 1, 0.6, ORDER + 2)
    representations(module, inputs)
    assert torch.equal(log_probabilities(module, inputs), before)


@pytest.mark.parametrize("layer", [1, 2, 3])
def test_bert_mixes_text_by_text_as_written_out_by_hand(layer: int) -> None:
    """Each pair is computed alone and unpadded, and mixed up to the shorter length."""
    module, inputs = transformer(), texts(*LENGTHS)
    share, expected = 0.7, []
    lower, upper = module.bert.encoder.layer[:layer], module.bert.encoder.layer[layer:]

    def states_of(row: int) -> Tensor:
        states = module.bert.embeddings(inputs["input_ids"][row : row + 1, : LENGTHS[row]])
        for each in lower:
            states = each(states)
            states = states[0] if isinstance(states, tuple) else states
        return states

    for row, partner in enumerate(ORDER.tolist()):
        own, other = states_of(row), states_of(partner)
        both = min(LENGTHS[row], LENGTHS[partner])
        states = torch.cat([share * own[:, :both] + (1 - share) * other[:, :both], own[:, both:]], 1)
        for each in upper:
            states = each(states)
            states = states[0] if isinstance(states, tuple) else states
        expected.append(module.classifier(module.bert.pooler(states))[0].log_softmax(-1))
    torch.testing.assert_close(mixed_log_probabilities(module, [inputs], layer, share, ORDER), torch.stack(expected))


def test_textcnn_mixes_what_its_last_layer_reads() -> None:
    module, inputs = textcnn(), texts(*LENGTHS)
    features = module.features(**inputs)
    expected = module.output(0.7 * features + 0.3 * features[ORDER]).log_softmax(-1)
    torch.testing.assert_close(mixed_log_probabilities(module, [inputs], 1, 0.7, ORDER), expected)


def test_fixed_vectors_are_mixed_and_trials_as_if_alone() -> None:
    x = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(0))
    heads = [head(), head()]
    stacked = mixed_log_probabilities(Stacked(heads), [x], 1, 0.7, ORDER, stacked=True)
    for trial, single in enumerate(heads):
        mixture = 0.7 * x[trial] + 0.3 * x[trial][ORDER]
        torch.testing.assert_close(
            mixed_log_probabilities(single, [x[trial]], 1, 0.7, ORDER), single(mixture).log_softmax(-1)
        )
        torch.testing.assert_close(stacked[trial], mixed_log_probabilities(single, [x[trial]], 1, 0.7, ORDER))


def test_gradients_go_through_the_mixture_to_the_first_layer() -> None:
    module, inputs = transformer(), texts(*LENGTHS)
    mixed_log_probabilities(module, [inputs], LAYERS, 0.6, ORDER)[
        0, 0
    ].backward()  # one row only: its partner's tokens have a gradient too
    reached = module.bert.embeddings.word_embeddings.weight.grad.abs().sum(1) > 0
    both = min(LENGTHS[0], LENGTHS[2])
    assert reached[inputs["input_ids"][0, : LENGTHS[0]]].all()
    assert reached[inputs["input_ids"][2, :both]].all()


# Representations.


@BY_KIND
def test_the_last_layer_makes_the_prediction_of_what_it_reads(kind: str) -> None:
    module, inputs = OF_TEXTS[kind](), texts(*LENGTHS)
    log_q, vectors = representations(module, inputs)
    assert torch.equal(log_q, log_probabilities(module, inputs))
    assert vectors.shape == (len(LENGTHS), last_layer(module).in_features)
    torch.testing.assert_close(last_layer(module)(vectors).log_softmax(-1), log_q)
    assert class_count(module) == CLASSES
    assert vectors.requires_grad
    assert representations_move(module)


def test_words_are_represented_one_by_one() -> None:
    module = Tagger(transformer(head="TokenClassification"))
    inputs = {**texts(*LENGTHS), "words": torch.tensor([0, 2, 7, 15, 16])}
    log_q, vectors = representations(module, inputs)
    assert vectors.shape == (5, 16)
    torch.testing.assert_close(module.module.classifier(vectors).log_softmax(-1), log_q)


def test_stacked_trials_are_represented_apart() -> None:
    students = [mlp(6, CLASSES, hidden=(5,)) for _ in range(2)]
    x = torch.randn(2, 4, 6)
    log_q, vectors = representations(Stacked(students), x, stacked=True)
    for trial, student in enumerate(students):
        torch.testing.assert_close(vectors[trial], student[:2](x[trial]))
        torch.testing.assert_close(log_q[trial], student(x[trial]).log_softmax(-1))
    assert class_count(Stacked(students)) == CLASSES
    assert representations_move(Stacked(students))


def test_fixed_vectors_do_not_move() -> None:
    assert not representations_move(head())
    assert not representations_move(Stacked([head(), head()]))


# Several batches as one.


@BY_KIND
def test_batches_of_several_lengths_are_mixed_as_one(kind: str) -> None:
    module, inputs = OF_TEXTS[kind](), texts(*LENGTHS)
    cut = {name: value[1:, :5] for name, value in inputs.items()}  # three rows, of at most five tokens
    parts = [{name: value[:1] for name, value in inputs.items()}, cut]
    one, several = (
        mixed_log_probabilities(module, batches, depth(module), 0.6, ORDER) for batches in ([inputs], parts)
    )
    torch.testing.assert_close(several, one)


def test_batches_of_vectors_keep_their_trials() -> None:
    student, x = Stacked([head(), head()]), torch.randn(2, 4, 6)
    several = mixed_log_probabilities(student, [x[:, :1], x[:, 1:]], 1, 0.6, ORDER, stacked=True)
    torch.testing.assert_close(several, mixed_log_probabilities(student, [x], 1, 0.6, ORDER, stacked=True))


# Unsupported models.


class Bilinear(nn.Module):
    """No linear layer at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WORDS, CLASSES))

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return (self.weight[input_ids] * attention_mask.unsqueeze(2)).sum(1)


class Unused(Bilinear):
    """A linear layer whose input is not one vector per text."""

    def __init__(self) -> None:
        super().__init__()
        self.other = nn.Linear(CLASSES, CLASSES)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.other(self.weight[input_ids]).mean(1)


@pytest.mark.parametrize("make", [Bilinear, Unused], ids=["no layer", "not the last"])
def test_an_unknown_architecture_says_so(make: type[nn.Module]) -> None:
    with pytest.raises(ConfigError, match=f"^hidden states of {make.__name__} .*another model") as error:
        representations(make(), texts(*LENGTHS))
    assert "\n" not in str(error.value)


def test_what_does_not_end_in_a_linear_layer_is_not_mixed() -> None:
    with pytest.raises(ConfigError, match="hidden states of Bilinear"):
        mixed_log_probabilities(Bilinear(), [texts(*LENGTHS)], 1, 0.6, ORDER)


def test_layers_that_are_one_layer_used_again_are_not_known() -> None:
    with pytest.raises(ConfigError, match="hidden states of AlbertForSequenceClassification"):
        depth(transformer("albert", embedding_size=16))


def test_trials_that_do_not_run_as_products_are_not_known() -> None:
    students = [nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2)) for _ in range(2)]
    with pytest.raises(ConfigError, match="hidden states of Stacked"):
        representations(Stacked(students), torch.randn(2, 3, 4), stacked=True)
