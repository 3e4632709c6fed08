"""Upper layers on stored states: two parts compute what the whole does, and joined they are an ordinary model again."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from drift.data.stored_states import StoredStates
from drift.data.windows import Windows
from drift.errors import ConfigError
from drift.models.hidden import depth, mixed_log_probabilities
from drift.models.upper_layers import STORED, LayerSplit, lower_states
from tests.models.test_hidden import CLASSES, KINDS, LAYERS, WORDS
from tests.models.test_hidden import transformer as in_float64

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")

HEADS = ("SequenceClassification", "TokenClassification")
LENGTHS = (7, 3, 5, 2)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path))


def transformer(kind: str = "bert", head: str = HEADS[0], **settings: Any) -> Any:
    return in_float64(kind, head, **settings).float()


def rows(seed: int = 0) -> Windows:
    """Random sub-words; every second one begins a word."""
    generator = np.random.default_rng(seed)
    ids = [generator.integers(3, WORDS, length) for length in LENGTHS]
    return Windows(ids, [np.arange(0, length, 2) for length in LENGTHS], list(range(len(ids))), 1)


def lines(windows: Windows) -> list[str]:
    return [str(windows.inputs(torch.tensor([row]))["input_ids"].tolist()) for row in range(len(windows))]


def split(model: Any, trained: int = 1) -> LayerSplit:
    return LayerSplit(model, trained, name="small", identity="weights")


def inputs(windows: Any) -> dict[str, Any]:
    batch = windows.inputs(torch.arange(len(windows)))
    batch.pop("words")
    return dict(batch)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trained", range(1, LAYERS))
def test_parts_compute_the_logits_of_the_whole(kind: str, head: str, trained: int) -> None:
    model = transformer(kind, head).eval()
    windows = rows()
    parts = split(model, trained)
    stored = parts.stored(windows, lines(windows))
    with torch.no_grad():
        expected, logits = model(**inputs(windows)).logits, parts.upper.eval()(**inputs(stored)).logits
    if head == "TokenClassification":
        mask = inputs(windows)["attention_mask"].bool()
        expected, logits = expected[mask], logits[mask]
    torch.testing.assert_close(logits, expected, atol=5e-3, rtol=0)  # states are stored in half precision


def test_joined_model_equals_the_whole_bit_by_bit_and_has_its_names() -> None:
    model = transformer().eval()
    parts = split(model, 2)
    joined = parts.joined(parts.upper).eval()
    assert {name: value.tolist() for name, value in joined.state_dict().items()} == {
        name: value.tolist() for name, value in model.state_dict().items()
    }
    assert joined.config.num_hidden_layers == LAYERS == depth(joined)
    assert all(parameter.requires_grad for parameter in joined.parameters())
    batch = inputs(rows())
    with torch.no_grad():
        assert torch.equal(joined(**batch).logits, model(**batch).logits)


def test_training_the_upper_part_changes_only_upper_layers_of_the_joined_model() -> None:
    model = transformer().eval()
    parts = split(model, 1)
    windows = rows()
    optimizer = torch.optim.SGD(parts.upper.parameters(), lr=0.1)
    logits = parts.upper(**inputs(parts.stored(windows, lines(windows)))).logits
    cross_entropy(logits, torch.arange(len(LENGTHS)) % CLASSES).backward()
    optimizer.step()
    before, after = model.state_dict(), parts.joined(parts.upper).state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all(f"layer.{LAYERS - 1}." in name or "pooler" in name or "classifier" in name for name in changed)


def test_gradients_of_the_upper_layers_are_those_of_the_whole_model() -> None:
    model = transformer().eval()  # without dropout
    parts = split(model, 2)
    windows = rows()
    states = lower_states(parts.lower, inputs(windows))  # in float32: storing would round them
    labels = torch.arange(len(LENGTHS)) % CLASSES
    upper = parts.upper.eval()
    cross_entropy(
        upper(inputs_embeds=states, attention_mask=inputs(windows)["attention_mask"]).logits, labels
    ).backward()
    cross_entropy(model(**inputs(windows)).logits, labels).backward()
    whole = dict(model.named_parameters())
    for name, parameter in upper.named_parameters():
        if (layer := name.partition("layer.")[2].partition(".")[0]).isdigit():
            name = name.replace(f"layer.{layer}.", f"layer.{int(layer) + LAYERS - 2}.")
        torch.testing.assert_close(parameter.grad, whole[name].grad, atol=1e-6, rtol=1e-4)


def test_states_are_stored_once_in_half_precision(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    windows = rows()
    parts = split(transformer())
    first = parts.stored(windows, lines(windows))
    (file,) = (tmp_path / "states").iterdir()
    assert np.load(file).dtype == STORED
    assert len(np.load(file)) == sum(LENGTHS)
    monkeypatch.setattr(parts, "_computed", lambda *arguments: pytest.fail("the states were stored"))
    again = parts.stored(windows, lines(windows))
    assert np.array_equal(first.states, again.states)
    other = rows(seed=1)
    with pytest.raises(pytest.fail.Exception):
        parts.stored(other, lines(other))


def test_padding_has_no_states_and_known_words_are_passed_on() -> None:
    windows = rows()
    stored = split(transformer()).stored(windows, lines(windows))
    batch = stored.inputs(torch.tensor([3, 0]), known=np.arange(int(windows.counts.sum())) == 0)
    assert batch["inputs_embeds"].shape[:2] == batch["attention_mask"].shape == (2, 7)
    assert not batch["inputs_embeds"][0, LENGTHS[3] :].any()
    assert batch["words"].tolist() == [7]  # the first word of the second row
    assert stored.words(torch.tensor([1])).tolist() == windows.words(torch.tensor([1])).tolist()


def test_rows_mixed_at_a_layer_of_the_upper_part_equal_those_of_the_whole() -> None:
    model = transformer().eval()
    parts = split(model, 2)
    windows = rows()
    stored = parts.stored(windows, lines(windows))
    halves = torch.tensor([0, 1]), torch.tensor([2, 3])
    order = torch.tensor([2, 3, 1, 0])

    def batches(examples: Any) -> list[dict[str, Any]]:
        return [{name: v for name, v in examples.inputs(half).items() if name != "words"} for half in halves]

    with torch.no_grad():
        expected = mixed_log_probabilities(model, batches(windows), 2, 0.7, order)
        mixed = mixed_log_probabilities(parts.upper.eval(), batches(stored), 1, 0.7, order)
    torch.testing.assert_close(mixed, expected, atol=5e-3, rtol=0)


@pytest.mark.parametrize("trained", [0, LAYERS, LAYERS + 1])
def test_refuses_a_number_of_layers_that_leaves_nothing_below_or_above(trained: int) -> None:
    with pytest.raises(ConfigError, match=r"model\.train_layers is \d"):
        split(transformer(), trained)


def test_refuses_a_model_that_is_not_the_sum_of_its_parts() -> None:
    with pytest.raises(ConfigError, match=r"cannot be trained alone; use model\.train_layers=all"):
        split(transformer("electra", embedding_size=8))  # projects its embeddings


def test_a_copy_of_stored_states_can_be_pickled() -> None:
    import pickle

    windows = rows()
    stored = split(transformer()).stored(windows, lines(windows))
    copied: StoredStates = pickle.loads(pickle.dumps(stored))
    assert torch.equal(
        copied.inputs(torch.tensor([1]))["inputs_embeds"], stored.inputs(torch.tensor([1]))["inputs_embeds"]
    )
