"""Word vectors in every file format, damaged files, and the vectors of a vocabulary."""

import gzip
import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from drift.data.word_tokens import PADDING, UNKNOWN, WordTokenizer
from drift.data.word_vectors import WordVectors, read_vectors, vectors_for
from drift.errors import DataError, FileError

VECTORS = {"cat": [0.5, -1.0, 2.0], "the": [1.5, 0.0, 0.25], "größe": [-2.0, 3.0, 1e-3], ",": [0.0, 1.0, 1.0]}


def lines(vectors: dict[str, list[float]], end: str = "\n") -> bytes:
    return "".join(f"{word} {' '.join(map(str, row))}{end}" for word, row in vectors.items()).encode()


def binary(vectors: dict[str, list[float]], end: bytes) -> bytes:
    body = b"".join(word.encode() + b" " + np.array(row, "<f4").tobytes() + end for word, row in vectors.items())
    return f"{len(vectors)} 3\n".encode() + body


def save_matrix(folder: Path, matrix: np.ndarray, words: bytes) -> Path:
    np.save(folder / "v.npy", matrix)
    (folder / "v.words.tsv.gz").write_bytes(gzip.compress(words))
    return folder / "v.npy"


def as_matrix(folder: Path) -> Path:
    words = "".join(f"{word}\t{row}\n" for row, word in enumerate(VECTORS)).encode()
    return save_matrix(folder, np.array([*VECTORS.values()]), words)


def save(name: str, content: bytes) -> Callable[[Path], Path]:
    def into(folder: Path) -> Path:
        (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return folder / name

    return into


FORMS = {
    "glove": save("v.txt", lines(VECTORS)),
    "fasttext": save("v.vec", b"4 3\n" + lines(VECTORS, end=" \n")),
    "windows line ends": save("v.vec", b"4 3\r\n" + lines(VECTORS, end="\r\n")),
    "gzipped": save("v.vec.gz", b"4 3\n" + lines(VECTORS)),
    "word2vec": save("v.bin", binary(VECTORS, b"")),
    "word2vec with line breaks": save("v.bin.gz", binary(VECTORS, b"\n")),
    "matrix": as_matrix,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wanted", [None, {"the", "größe", "absent"}])
def test_every_form_gives_the_same_vectors(form: str, wanted: set[str] | None, tmp_path: Path) -> None:
    actual = read_vectors(FORMS[form](tmp_path), wanted)
    expected = {word: row for word, row in VECTORS.items() if wanted is None or word in wanted}
    assert actual.matrix.shape == (len(expected), 3)  # only the wanted words
    assert actual.matrix.dtype == np.float32
    assert actual.words.keys() == expected.keys()
    for word, row in expected.items():
        np.testing.assert_allclose(actual.matrix[actual.words[word]], row, rtol=1e-6)


def test_words_that_share_a_row_still_share_it_after_reading(tmp_path: Path) -> None:
    path = save_matrix(tmp_path, np.arange(15, dtype=np.float16).reshape(5, 3), b"a\t3\nb\t1\nc\t3\nd\t0\n")
    actual = read_vectors(path, {"a", "b", "c"})
    assert actual.matrix.tolist() == [[3, 4, 5], [9, 10, 11]]
    assert actual.words == {"a": 1, "b": 0, "c": 1}


def test_of_a_repeated_word_the_first_vector_counts(tmp_path: Path) -> None:
    actual = read_vectors(save("v.txt", b"a 1 2\nb 3 4\na 5 6\n")(tmp_path))
    assert actual.words == {"a": 0, "b": 1}
    assert actual.matrix.tolist() == [[1, 2], [3, 4]]


def test_words_may_contain_spaces_if_there_is_no_header(tmp_path: Path) -> None:
    assert read_vectors(save("v.txt", b"a 1 2\n. . . 3 4\n")(tmp_path)).words == {"a": 0, ". . .": 1}


def test_undecodable_bytes_affect_only_their_word(tmp_path: Path) -> None:
    actual = read_vectors(save("v.txt", b"a 1 2\n\xff\xfe 3 4\n")(tmp_path), {"a", "\udcff"})
    assert actual.words == {"a": 0}


NOTHING_WANTED = "has none of the wanted words"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.txt", b"a 1 2\nb 3\n", "v.txt:2: 1 numbers after the word, not 2; fix the line"),
        ("v.txt", b"a 1 2\n\n", "v.txt:2: 0 numbers"),
        ("v.txt", b"alone\n", "v.txt:1: 0 numbers after the word, not a vector"),
        ("v.txt", b"a 1 2\nb 3 x\n", "v.txt:2: could not convert string to float: b'x'"),
        ("v.txt", b"a 1 2\nb 3 nan\n", "v.txt:2: a number is not finite"),
        ("v.txt", b"", "v.txt: is empty"),
        ("v.vec", b"2 2\na 1 2\nb 3 4 5\n", "v.vec:3: 3 numbers after the word, not 2"),
        ("v.vec", b"3 2\na 1 2\nb 3 4\n", "v.vec:3: ends after 2 of 3 vectors"),
        ("v.vec", b"0 2\n", NOTHING_WANTED),
        ("v.bin", b"\xba\x16O/ not ours", "v.bin:1: no line 'count dim'"),
        ("v.bin", binary(VECTORS, b"")[:-1], "v.bin: ends within vector 4 of 4"),
        ("v.bin", binary(VECTORS, b"") + b"more", "v.bin: continues after the 4 vectors"),
        ("v.bin", b"1 1\na " + np.array([np.inf], "<f4").tobytes(), "v.bin: vector 1: a number is not finite"),
        ("v.npy", b"not numpy", "v.npy: not a .npy file"),
    ],
)
def test_an_error_in_a_file_names_file_and_line(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_vectors(save(name, content)(tmp_path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("matrix", "words", "message"),
    [
        (np.zeros((2, 3)), b"a\t0\nb\t2\n", "v.words.tsv.gz:2: not 'word TAB row' with a row below 2"),
        (np.zeros((2, 3)), b"a\t0\nb 1\n", "v.words.tsv.gz:2: not"),
        (np.zeros((2, 3)), b"a\t-1\n", "v.words.tsv.gz:1: not"),
        (np.zeros(3), b"a\t0\n", "v.npy: float64 of shape (3,)"),
        (np.zeros((2, 3), dtype=int), b"a\t0\n", "v.npy: int64 of shape (2, 3)"),
        (np.array([[np.nan]]), b"a\t0\n", "v.npy: a number is not finite"),
        (np.zeros((2, 3)), b"", NOTHING_WANTED),
    ],
)
def test_an_invalid_matrix_is_an_error(matrix: np.ndarray, words: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_vectors(save_matrix(tmp_path, matrix, words))
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["v.vec.gz", "v.bin.gz"])
@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-9], lambda data: b"1" + data, lambda data: data[:30] + b"\xff" * 9],
    ids=["cut", "no gzip at all", "overwritten"],
)
def test_a_damaged_gzip_is_an_error(name: str, damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    content = b"4 3\n" + lines(VECTORS) if name == "v.vec.gz" else binary(VECTORS, b"")
    (tmp_path / name).write_bytes(damage(gzip.compress(content)))
    with pytest.raises(DataError, match=f"{name}.*; get the file again"):
        read_vectors(tmp_path / name)


@pytest.mark.parametrize("name", ["v.vec", "v.vec.gz", "v.bin", "v.npy"])
def test_a_missing_file_is_an_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=f"{name}: No such file or directory"):
        read_vectors(tmp_path / name)


def test_a_matrix_without_its_words_is_an_error(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.zeros((1, 2)))
    with pytest.raises(FileError, match=r"v\.words\.tsv\.gz: No such file"):
        read_vectors(tmp_path / "v.npy")


def known_vectors() -> WordVectors:
    generator = np.random.default_rng(5)
    return WordVectors({f"w{n}": n for n in range(50)}, generator.normal(0, 0.2, (50, 40)).astype(np.float32))


def test_words_without_a_vector_get_random_vectors_of_the_same_spread() -> None:
    vectors = known_vectors()
    words = ["w7", *(f"new{n}" for n in range(50)), "w3"]
    actual = vectors_for(words, vectors, seed=0)
    assert actual.matrix.shape == (54, 40)
    assert actual.matrix.dtype == np.float32
    assert np.flatnonzero(actual.known).tolist() == [2, 53]
    np.testing.assert_array_equal(actual.matrix[[2, 53]], vectors.matrix[[7, 3]])
    assert not actual.matrix[PADDING].any()
    assert actual.matrix[UNKNOWN].any()
    assert actual.matrix[~actual.known][1:].std() == pytest.approx(0.2, rel=0.2)


def test_random_vectors_depend_on_the_seed() -> None:
    first, same, other = (vectors_for(["w7", "new"], known_vectors(), seed=seed).matrix for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert (first[3] != other[3]).all()


def test_coverage_counts_tokens() -> None:
    actual = vectors_for(["w1", "new", "w2"], known_vectors(), seed=0)  # ids 2, 3, 4
    assert actual.coverage([[2, 2, 4], [3, UNKNOWN], [2, 3, 3]]) == 4 / 8


def test_a_vocabulary_without_any_vector_is_refused() -> None:
    with pytest.raises(DataError, match="none of the 2 words has a vector"):
        vectors_for(["x", "y"], known_vectors(), seed=0)


DATA = Path(os.environ.get("DRIFT_DATA") or "nowhere")


@pytest.mark.skipif(not (DATA / "vectors").is_dir(), reason="set DRIFT_DATA to a folder with agnews and vectors")
def test_most_words_of_real_news_have_a_real_vector() -> None:
    with gzip.open(DATA / "agnews" / "train.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in itertools.islice(file, 2000)]
    tokenizer = WordTokenizer.from_texts(texts, min_count=1)
    vectors = read_vectors(DATA / "vectors" / "spacy-md-300d.npy", set(tokenizer.words))
    actual = vectors_for(tokenizer.words, vectors, seed=0)
    assert actual.coverage(tokenizer(texts)["input_ids"]) > 0.98

    def likeness(one: str, other: str) -> float:
        a, b = (actual.matrix[tokenizer.ids[word]] for word in (one, other))
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    assert likeness("software", "computer") > likeness("software", "coach") + 0.1  # rows belong to the right words
