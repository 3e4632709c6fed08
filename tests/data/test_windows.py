"""Windows of sub-words: every word is predicted exactly once."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from drift.data.windows import Windows, make_windows
from drift.errors import ConfigError

transformers = pytest.importorskip("transformers")

MODELS = Path(os.environ.get("DRIFT_MODELS") or "nowhere")
WORDS = ["a", "antidisestablishmentarianism", "München", "x" * 300, "\u200b", "-", "Dr.", "it's"]


@pytest.fixture(scope="module", params=["paraphrase-MiniLM-L3-v2", "granite-embedding-30m-english"])
def tokenizer(request: pytest.FixtureRequest) -> object:
    if not (MODELS / request.param).is_dir():
        pytest.skip(f"set DRIFT_MODELS to a folder with {request.param}")
    return transformers.AutoTokenizer.from_pretrained(MODELS / request.param)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=80), min_size=1, max_size=4),
    st.sampled_from([8, 17, 40, 128]),
)
def test_every_word_is_predicted_once_and_in_order(
    tokenizer: object, sentences: list[list[str]], max_length: int
) -> None:
    windows = make_windows(sentences, tokenizer, max_length=max_length)
    rows = torch.arange(len(windows))
    assert windows.lengths.max() <= max_length
    assert windows.counts.sum() == sum(map(len, sentences))
    assert (np.bincount(windows.sentences, windows.counts) == [len(words) for words in sentences]).all()
    assert (windows.words(rows) == np.arange(windows.counts.sum())).all()
    inputs = windows.inputs(rows)
    assert inputs["attention_mask"].flatten()[inputs["words"]].all()
    assert len(set(inputs["words"].tolist())) == len(inputs["words"]) == windows.counts.sum()


def test_a_word_is_tokenized_as_in_running_text(tokenizer: object) -> None:
    sentence = ["John", "Smith", "lives", "in", "London", "near", "the", "Thames"]
    inputs = make_windows([sentence], tokenizer, max_length=64).inputs(torch.tensor([0]))
    assert inputs["input_ids"][0].tolist() == tokenizer(" ".join(sentence))["input_ids"]  # type: ignore[operator]


def test_words_are_predicted_at_their_first_sub_words(tokenizer: object) -> None:
    sentence = ["antidisestablishmentarianism", "in", "Llanfairpwllgwyngyll", "today"]
    inputs = make_windows([sentence], tokenizer, max_length=64).inputs(torch.tensor([0]))
    whole = tokenizer(" ".join(sentence))  # type: ignore[operator]
    firsts = [whole.char_to_token(len(" ".join([*sentence[:place], ""]))) for place in range(len(sentence))]
    assert inputs["words"].tolist() == firsts


def test_windows_of_a_long_sentence_have_context_on_both_sides(tokenizer: object) -> None:
    windows = make_windows([["a"] * 100], tokenizer, max_length=22)
    special = 2
    first, middle = windows.inputs(torch.tensor([0])), windows.inputs(torch.tensor([2]))
    assert first["words"][0] == 1  # only the special token comes before the first word
    assert middle["words"].min() > 1
    assert middle["words"].max() < windows.lengths[2] - special
    assert len(windows) == 10  # room for 20, of which 5 on either side are context


def test_only_known_words_are_included(tokenizer: object) -> None:
    windows = make_windows([["a", "b", "c"], ["d", "e"]], tokenizer, max_length=16)
    known = np.array([True, False, True, False, True])
    both, all_words = (windows.inputs(torch.tensor([1, 0]), known=mask)["words"] for mask in (known, None))
    assert all_words[[1, 2, 4]].tolist() == both.tolist()  # e, a, c


def test_no_room(tokenizer: object) -> None:
    with pytest.raises(ConfigError, match="max_length=3 leaves room for 1"):
        make_windows([["a"]], tokenizer, max_length=3)


def test_padding_is_no_word() -> None:
    windows = Windows([np.array([1, 2, 3]), np.array([1, 3])], [np.array([1]), np.array([], dtype=np.int64)], [0, 1], 9)
    inputs = windows.inputs(torch.tensor([1, 0]))
    assert inputs["input_ids"].tolist() == [[1, 3, 9], [1, 2, 3]]
    assert inputs["words"].tolist() == [4]
