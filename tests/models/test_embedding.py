"""Each vector equals that of its text alone, in order; cached vectors are not computed again."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from drift.data.vector_store import VectorStore
from drift.errors import ConfigError, DataError, FileError
from drift.models import embedding
from drift.models.embedding import Embedder, _tokenized, embed
from drift.models.encoders import load_encoder

pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
NAME = "paraphrase-MiniLM-L3-v2"
ENCODER = Path(os.environ.get("DRIFT_MODELS") or "nowhere") / NAME
pytestmark = pytest.mark.skipif(not ENCODER.is_dir(), reason=f"set DRIFT_MODELS to a folder with {NAME}")

DISTINCT = 6
TEXTS = ["Shares fell.", "", "A goal in the last minute of the match", "goal " * 300, "Shares fell.", "x", "ψυχή 😀"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "embeddings"


@pytest.fixture
def forwards(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of texts of each forward pass, in order."""
    seen: list[int] = []
    compute = embedding.text_vectors

    def counted(encoder: torch.nn.Module, ids: torch.Tensor, mask: torch.Tensor, pool: str) -> torch.Tensor:
        seen.append(len(ids))
        return compute(encoder, ids, mask, pool)

    monkeypatch.setattr(embedding, "text_vectors", counted)
    return seen


@pytest.mark.parametrize("pool", ["mean", "cls"])
def test_each_vector_is_that_of_its_text_alone(pool: str) -> None:
    vectors = embed(TEXTS, NAME, pool=pool, max_length=32, batch_tokens=100)
    encoder, tokenizer = load_encoder(NAME)
    assert vectors.dtype == np.float32
    assert isinstance(vectors, np.memmap)
    for text, vector in zip(TEXTS, vectors, strict=True):
        with torch.no_grad():
            inputs = tokenizer(text, truncation=True, max_length=32, return_tensors="pt")
            hidden = encoder(**inputs).last_hidden_state[0]
        np.testing.assert_allclose(vector, hidden[0] if pool == "cls" else hidden.mean(0), atol=1e-5)


def test_pieces_in_order_and_the_number_of_jobs_change_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = np.array(embed(TEXTS, NAME))
    monkeypatch.setattr(embedding, "TEXTS_PER_FILE", 2)
    threads = torch.get_num_threads()
    shutil.rmtree(cache)
    one = np.array(embed(TEXTS, NAME, jobs=1))
    np.testing.assert_allclose(one, whole, atol=1e-5)
    shutil.rmtree(cache)
    np.testing.assert_array_equal(embed(TEXTS, NAME, jobs=3), one)
    assert torch.get_num_threads() == threads


def test_no_texts_have_no_vectors() -> None:
    assert embed([], NAME).shape == (0, 384)
    assert embed([], NAME).shape == (0, 384)


@pytest.mark.parametrize("form", [tuple, np.array, "datasets"])
def test_any_sequence_of_texts_will_do(form: Callable | str, forwards: list[int]) -> None:
    expected = embed(TEXTS, NAME)
    forwards.clear()
    if form == "datasets":
        texts = pytest.importorskip("datasets").Dataset.from_dict({"text": TEXTS})["text"]
    else:
        texts = form(TEXTS)
    np.testing.assert_array_equal(embed(texts, NAME), expected)
    assert forwards == []


@pytest.mark.parametrize("change", [dict(max_length=16), dict(pool="cls"), dict(precision="bfloat16")])
def test_what_changes_the_vectors_is_computed_anew(change: dict, forwards: list[int]) -> None:
    embed(TEXTS, NAME)
    assert sum(forwards) == DISTINCT
    embed(**{"texts": TEXTS, "encoder": NAME, **change})
    assert sum(forwards) == 2 * DISTINCT


def test_each_text_is_computed_once_in_whatever_order_and_company(forwards: list[int]) -> None:
    expected = np.array(embed(TEXTS, NAME))
    forwards.clear()
    np.testing.assert_array_equal(embed(TEXTS[::-1], NAME), expected[::-1])
    np.testing.assert_array_equal(Embedder(NAME).rows([TEXTS[3], TEXTS[0], TEXTS[3]]), expected[[3, 0, 3]])
    assert forwards == []
    np.testing.assert_array_equal(Embedder(NAME).rows([TEXTS[2], "new", TEXTS[5], "new"])[::2], expected[[2, 5]])
    assert sum(forwards) == 1
    np.testing.assert_array_equal(Embedder(NAME).rows(["new"]), embed(["new"], NAME))  # stored by an earlier one
    assert sum(forwards) == 1


def test_many_small_files_become_one(cache: Path, monkeypatch: pytest.MonkeyPatch, forwards: list[int]) -> None:
    monkeypatch.setattr(embedding, "FILES_TO_MERGE", 3)
    embedder = Embedder(NAME)
    texts = [f"text number {number}" for number in range(7)]
    vectors = np.concatenate([embedder.rows([text]) for text in texts])
    assert len(list(cache.rglob("*.texts.npy"))) == 3  # two of three texts each, and the last text
    assert len(forwards) == 7
    np.testing.assert_array_equal(Embedder(NAME).rows(texts), vectors)
    assert len(forwards) == 7


def test_a_prediction_needs_no_cache_to_write_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a-file").write_text("")
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "a-file"))
    alone = Embedder(NAME).rows(TEXTS)
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    np.testing.assert_allclose(alone, embed(TEXTS, NAME), atol=1e-5)


def test_truncated_texts_are_counted_as_by_the_tokenizer(forwards: list[int]) -> None:
    texts = ["word " * length for length in range(1, 40)] + [
        "x y " * 900,
        "a " * 14 + " " * 9000,
        "b " * 13 + "\n" * 9999,
    ]
    _, tokenizer = load_encoder(NAME)
    expected = sum(len(tokenizer(text)["input_ids"]) > 16 for text in texts)
    for _ in range(2):  # computed, then from the cache
        assert Embedder(NAME, max_length=16).embed(texts).truncated == expected
    assert sum(forwards) == len(texts)


def test_bfloat16_keeps_the_direction_of_vectors() -> None:
    exact, rough = (np.array(embed(TEXTS[:3], NAME, precision=name)) for name in ("float32", "bfloat16"))
    cosine = (exact * rough).sum(1) / np.linalg.norm(exact, axis=1) / np.linalg.norm(rough, axis=1)
    assert cosine.min() > 0.999
    assert np.abs(exact - rough).max() > 0


def test_an_encoder_is_known_by_its_content_not_its_name(tmp_path: Path, forwards: list[int]) -> None:
    expected = embed(TEXTS, NAME)
    forwards.clear()
    folder = tmp_path / "other-name"
    shutil.copytree(ENCODER, folder, copy_function=shutil.copyfile)
    np.testing.assert_array_equal(embed(TEXTS, str(folder)), expected)
    assert forwards == []
    model, _ = load_encoder(NAME)
    with torch.no_grad():
        model.embeddings.LayerNorm.bias.add_(0.1)
    model.save_pretrained(folder)
    assert np.abs(embed(TEXTS, str(folder)) - expected).max() > 1e-3


def test_an_interrupted_embedding_goes_on_where_it_was(forwards: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "TEXTS_PER_FILE", 2)

    @contextmanager
    def stops_in_the_third_piece(title: str, total: int) -> Iterator[Callable[[], None]]:
        done = 0

        def tick() -> None:
            nonlocal done
            done += 1
            if done == 5:
                raise KeyboardInterrupt

        yield tick

    threads = torch.get_num_threads()
    with pytest.raises(KeyboardInterrupt):
        embed(TEXTS, NAME, progress=stops_in_the_third_piece)
    assert torch.get_num_threads() == threads
    forwards.clear()
    fewer = np.array(embed(TEXTS, NAME))
    assert sum(forwards) == 2  # of seven texts four are stored, and the fifth is the first again
    forwards.clear()
    more = embed([*TEXTS, "one more"], NAME)
    assert sum(forwards) == 1
    np.testing.assert_allclose(more[: len(TEXTS)], fewer, atol=1e-5)


@pytest.mark.parametrize("damaged", [".npy", ".texts.npy"])
def test_a_file_cut_short_is_made_again(cache: Path, forwards: list[int], damaged: str) -> None:
    expected = np.array(embed(TEXTS, NAME))
    for file in [file for file in cache.rglob("*.npy") if damaged in file.name]:
        file.write_bytes(file.read_bytes()[:100])
    np.testing.assert_array_equal(embed(TEXTS, NAME), expected)
    assert sum(forwards) == 2 * DISTINCT


def test_progress_ticks_once_per_text_including_cached_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "TEXTS_PER_FILE", 2)
    embed(TEXTS[:4], NAME)
    ticks: list[int] = []

    @contextmanager
    def progress(title: str, total: int) -> Iterator[Callable[[], None]]:
        assert total == len(TEXTS)
        yield lambda: ticks.append(1)

    embed(TEXTS, NAME, progress=progress)
    assert len(ticks) == len(TEXTS)


@pytest.mark.parametrize(
    "text",
    ["word and " * 50_000, "x" * 100_000, "y" * 5000 + " then words", " " * 9000 + "after blanks", "日本語" * 3000],
)
def test_long_texts_have_the_tokens_they_have_when_read_to_the_end(text: str) -> None:
    _, tokenizer = load_encoder(NAME)
    expected = tokenizer(text, truncation=True, max_length=16)["input_ids"]
    assert _tokenized(tokenizer, ["first", text], 16)[0][1] == expected


def test_faults_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"row 1 .*None"):
        embed(["a", None], NAME)  # type: ignore[list-item]
    with pytest.raises(DataError, match="half a character"):
        embed(["a\ud800"], NAME)
    with pytest.raises(ConfigError, match="pool is 'max'; give one of mean, cls"):
        embed(TEXTS, NAME, pool="max")
    for length in (2, 513):
        with pytest.raises(ConfigError, match=f"max_length is {length}.* 3 to 512"):
            embed(TEXTS, NAME, max_length=length)
    (tmp_path / "a-file").write_text("")
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "a-file"))
    with pytest.raises(FileError, match="DRIFT_CACHE"):
        embed(TEXTS[:1], NAME)


@pytest.mark.parametrize("other_finishes", [True, False])
def test_another_process_may_tidy_the_cache_meanwhile(
    cache: Path, monkeypatch: pytest.MonkeyPatch, other_finishes: bool
) -> None:
    expected = np.array(embed(TEXTS, NAME))
    shutil.rmtree(cache)
    monkeypatch.setattr(embedding, "TEXTS_PER_FILE", 2)
    truncated, seen = VectorStore.truncated, []

    def tidied(store: VectorStore, positions: np.ndarray) -> np.ndarray:
        """Called when all parts are written: the other process removes them, after it has written the whole file."""
        result = truncated(store, positions)
        if not seen:
            seen.append(1)
            if other_finishes:
                embed(TEXTS, NAME)
            else:
                for file in cache.rglob("*.npy"):
                    file.unlink()
        return result

    monkeypatch.setattr(VectorStore, "truncated", tidied)
    np.testing.assert_allclose(embed(TEXTS, NAME), expected, atol=1e-5)
    assert len(list(cache.rglob("*.texts.npy"))) == 1
