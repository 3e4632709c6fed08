"""Token ids on disk: equal to those of the tokenizer, computed once, written atomically."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from drift.data.texts import CHUNK, store_texts
from drift.data.tokenized import tokenize
from drift.errors import ConfigError, DataError

datasets = pytest.importorskip("datasets", reason="needs datasets: pip install 'drift-ssl[text]'")
ENCODER = Path(os.environ.get("DRIFT_MODELS") or "nowhere") / "paraphrase-MiniLM-L3-v2"
real = pytest.mark.skipif(not ENCODER.is_dir(), reason="set DRIFT_MODELS to a folder with paraphrase-MiniLM-L3-v2")
TEXTS = ["one", "", "a much longer text, of many words and more", "two words", "naïve 東京"]


class Letters:
    """One token per letter, between 1 and 2 like [CLS] and [SEP] of BERT; counts the texts it was called with."""

    pad_token_id: int | None = 9

    def __init__(self, key: str = "letters") -> None:
        self.key, self.seen = key, 0

    def __call__(self, texts: list[str], /, *, truncation: bool, max_length: int) -> dict[str, list[list[int]]]:
        self.seen += len(texts)
        most = max_length - 2 if truncation else None
        return {"input_ids": [[1, *(ord(letter) for letter in text[:most]), 2] for text in texts]}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path))
    return tmp_path / "tokens"


@pytest.fixture(scope="module")
def bert() -> Any:
    return pytest.importorskip("transformers").AutoTokenizer.from_pretrained(ENCODER)


@real
@pytest.mark.parametrize("rows", [[0], [4, 2, 0], [1, 1], [3, 1, 4, 0, 2]])
@pytest.mark.parametrize("max_length", [5, 64])
def test_a_batch_equals_the_output_of_the_tokenizer(bert: Any, rows: list[int], max_length: int) -> None:
    inputs = tokenize(TEXTS, bert, max_length=max_length).inputs(torch.tensor(rows))
    expected = bert(
        [TEXTS[row] for row in rows], padding=True, truncation=True, max_length=max_length, return_tensors="pt"
    )
    assert set(inputs) == {"input_ids", "attention_mask"}
    for name, tensor in inputs.items():
        assert tensor.dtype == torch.int64
        torch.testing.assert_close(tensor, expected[name], rtol=0, atol=0)


@real
def test_a_model_reads_the_same_without_token_types(bert: Any) -> None:
    model = pytest.importorskip("transformers").AutoModel.from_pretrained(ENCODER).eval()
    inputs = tokenize(TEXTS, bert, max_length=32).inputs(range(len(TEXTS)))
    with torch.no_grad():
        typed = model(**bert(TEXTS, padding=True, return_tensors="pt")).last_hidden_state
        torch.testing.assert_close(model(**inputs).last_hidden_state, typed, rtol=0, atol=0)


@real
def test_truncated_counts_the_rows_that_lost_tokens(bert: Any) -> None:
    whole = [len(ids) for ids in bert(TEXTS)["input_ids"]]
    for max_length in range(2, max(whole) + 2):
        assert tokenize(TEXTS, bert, max_length=max_length).truncated == sum(n > max_length for n in whole)


@pytest.mark.parametrize("max_length", range(2, 8))
def test_truncated_is_counted_for_a_tokenizer_that_does_not_report_it(max_length: int) -> None:
    tokens = tokenize(["", "a", "ab", "abc", "abcd"], Letters(), max_length=max_length)
    assert tokens.truncated == sum(letters + 2 > max_length for letters in range(5))
    assert tokens.lengths.tolist() == [min(letters + 2, max_length) for letters in range(5)]


@pytest.mark.parametrize("rows", [1, CHUNK, CHUNK + 1, 2 * CHUNK + 5])
def test_every_row_is_found_in_its_chunk(rows: int) -> None:
    texts = [str(row) for row in range(rows)]
    tokens = tokenize(texts, Letters(), max_length=16)
    assert len(tokens) == rows
    assert tokens.lengths.dtype == np.int32
    assert tokens.lengths.tolist() == [len(text) + 2 for text in texts]
    order = np.random.default_rng(0).permutation(rows)
    ids = tokens.inputs(torch.from_numpy(order))["input_ids"]
    assert ["".join(chr(i) for i in line if i not in (1, 2, 9)) for line in ids.tolist()] == [texts[i] for i in order]


def test_no_texts_make_no_rows() -> None:
    tokens = tokenize([], Letters(), max_length=8)
    assert (len(tokens), tokens.truncated) == (0, 0)
    assert tokens.inputs([])["input_ids"].shape == (0, 0)


def test_padding_can_be_to_a_fixed_length() -> None:
    tokens = tokenize(["a", "ab"], Letters(), max_length=8)
    inputs = tokens.inputs([0, 1], pad_to=6)
    assert inputs["input_ids"].tolist() == [[1, 97, 2, 9, 9, 9], [1, 97, 98, 2, 9, 9]]
    assert inputs["attention_mask"].tolist() == [[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0]]
    with pytest.raises(ConfigError, match="pad_to=3 is less than the 4 tokens"):
        tokens.inputs([0, 1], pad_to=3)


@pytest.mark.parametrize("row", [-1, 2])
def test_a_row_out_of_range_is_refused(row: int) -> None:
    with pytest.raises(IndexError, match=f"{row} of 2"):
        tokenize(["a", "b"], Letters(), max_length=8).inputs([row])


def test_a_dataset_gives_the_same_as_its_texts(cache: Path) -> None:
    stored = store_texts(str(row) for row in range(CHUNK + 10))
    chosen = stored.select([CHUNK + 3, 5, 7])
    tokenizer = Letters()
    tokens = tokenize(chosen, tokenizer, max_length=8)
    as_list = tokenize([str(CHUNK + 3), "5", "7"], tokenizer, max_length=8)
    assert len(list(cache.iterdir())) == 1  # the same content
    assert torch.equal(tokens.inputs([0, 1, 2])["input_ids"], as_list.inputs([0, 1, 2])["input_ids"])


def test_a_second_call_tokenizes_nothing() -> None:
    tokenizer = Letters()
    first = tokenize(TEXTS, tokenizer, max_length=8)
    seen = tokenizer.seen
    second = tokenize(TEXTS, tokenizer, max_length=8)
    assert tokenizer.seen == seen > 0
    assert second.truncated == first.truncated
    assert torch.equal(second.inputs(range(5))["input_ids"], first.inputs(range(5))["input_ids"])


def test_other_texts_tokenizers_and_lengths_are_tokenized_again(cache: Path) -> None:
    tokenize(TEXTS, Letters(), max_length=8)
    tokenize(TEXTS[::-1], Letters(), max_length=8)
    tokenize(TEXTS, Letters("other"), max_length=8)
    tokenize(TEXTS, Letters(), max_length=9)
    assert len(list(cache.iterdir())) == 4


@real
def test_earlier_calls_of_a_tokenizer_do_not_change_its_key(bert: Any, cache: Path) -> None:
    tokenize(TEXTS, bert, max_length=8)
    bert(TEXTS, padding="max_length", truncation=True, max_length=99)
    tokenize(TEXTS, bert, max_length=8)
    assert len(list(cache.iterdir())) == 1


def test_progress_ticks_once_per_chunk_and_not_from_the_cache() -> None:
    titles: list[tuple[str, int]] = []
    ticks: list[None] = []

    @contextmanager
    def progress(title: str, total: int) -> Iterator[Callable[[], None]]:
        titles.append((title, total))
        yield lambda: ticks.append(None)

    for _ in range(2):
        tokenize(["a"] * (2 * CHUNK + 1), Letters(), max_length=8, progress=progress)
    assert titles == [("Tokenizing", 3)]
    assert len(ticks) == 3


KILLED = """
import os, signal
from tests.data.test_tokenized import CHUNK, Letters, tokenize

class Dies(Letters):
    def __call__(self, texts, /, **options):
        if self.seen > 2 * CHUNK:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(texts, **options)

tokenize(["some text"] * 4 * CHUNK, Dies(), max_length=16)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_the_partial_file_of_a_killed_process_is_not_used(cache: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED], cwd=Path(__file__).parents[2])
    assert killed.returncode == -signal.SIGKILL
    (half,) = cache.iterdir()
    assert half.stat().st_size > 4 * CHUNK * len("some text")  # it was in the middle of writing
    assert len(tokenize(["some text"] * 4 * CHUNK, Letters(), max_length=16)) == 4 * CHUNK


def test_an_error_leaves_no_file(cache: Path) -> None:
    class Fails(Letters):
        def __call__(self, texts: list[str], /, *, truncation: bool, max_length: int) -> dict[str, list[list[int]]]:
            if self.seen > CHUNK:
                raise KeyboardInterrupt
            return super().__call__(texts, truncation=truncation, max_length=max_length)

    with pytest.raises(KeyboardInterrupt):
        tokenize(["a"] * 3 * CHUNK, Fails(), max_length=8)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("as_source", [list, lambda texts: datasets.Dataset.from_dict({"text": texts})])
def test_a_missing_text_is_named_before_anything_is_tokenized(as_source: Callable[[list[Any]], Any]) -> None:
    tokenizer = Letters()
    with pytest.raises(DataError, match=r"row 1001 .*None is not a text"):
        tokenize(as_source([*["a"] * 1001, None, "b"]), tokenizer, max_length=8)
    assert tokenizer.seen == 0


def test_a_dataset_without_texts_is_refused() -> None:
    with pytest.raises(DataError, match=r"columns \['body'\]; rename"):
        tokenize(datasets.Dataset.from_dict({"body": ["a"]}), Letters(), max_length=8)


@pytest.mark.parametrize("max_length", [-1, 0, 1])
@pytest.mark.parametrize("name", ["letters", pytest.param("bert", marks=real)])
def test_a_length_that_cannot_hold_the_special_tokens_is_refused(
    name: str, max_length: int, request: pytest.FixtureRequest
) -> None:
    tokenizer = Letters() if name == "letters" else request.getfixturevalue("bert")
    with pytest.raises(ConfigError, match=f"max_length={max_length} is less than the 2 tokens"):
        tokenize(TEXTS, tokenizer, max_length=max_length)


def test_a_tokenizer_without_padding_or_without_a_name_is_refused() -> None:
    unpadded, unnamed = Letters(), Letters(key="")
    unpadded.pad_token_id = None
    with pytest.raises(ConfigError, match="no padding token"):
        tokenize(TEXTS, unpadded, max_length=8)
    with pytest.raises(ConfigError, match="Letters is no fast tokenizer"):
        tokenize(TEXTS, unnamed, max_length=8)
