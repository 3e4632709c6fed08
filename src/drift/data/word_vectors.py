"""Read pretrained word vectors from published files, only for the words that are needed."""

import gzip
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from drift.data.word_tokens import FIRST_WORD, PADDING
from drift.errors import DataError, FileError

WORDS_SUFFIX = ".words.tsv.gz"


@dataclass(frozen=True)
class WordVectors:
    """Word vectors. words: the row of each word; words may share a row. matrix: `(rows, D)`, float32."""

    words: dict[str, int]
    matrix: np.ndarray


@dataclass(frozen=True)
class VocabularyVectors:
    """Vectors for the ids of a vocabulary. matrix: `(V, D)`. known: whether each is pretrained, `(V,)`."""

    matrix: np.ndarray
    known: np.ndarray

    def coverage(self, input_ids: Iterable[Sequence[int]]) -> float:
        """The share of tokens that have a pretrained vector. input_ids: the token ids of each text."""
        return float(self.known[list(chain.from_iterable(input_ids))].mean())


def vectors_for(words: Sequence[str], vectors: WordVectors, *, seed: int) -> VocabularyVectors:
    """Vectors for the words of a `WordTokenizer`, in the order of its ids.

    The vector of padding is zero. Words without a vector, and the unknown word, get random vectors with the standard
    deviation of the pretrained ones, as in Kim (2014). words: the vocabulary. seed: of the random vectors.
    """
    rows = np.array([-1] * FIRST_WORD + [vectors.words.get(word, -1) for word in words])
    known = rows >= 0
    if not known.any():
        raise DataError(f"none of the {len(words)} words has a vector; are the vectors of another language?")
    pretrained = vectors.matrix[rows[known]]
    noise = np.random.default_rng(seed).standard_normal((len(rows), pretrained.shape[1]), dtype=np.float32)
    matrix = noise * pretrained.std()
    matrix[known] = pretrained
    matrix[PADDING] = 0
    return VocabularyVectors(matrix, known)


def read_vectors(path: str | os.PathLike[str], wanted: Set[str] | None = None) -> WordVectors:
    """Read word vectors from a file. wanted: the words to read; None for all.

    The name of the file determines its format:
    - `name.npy`: a matrix; the file `name.words.tsv.gz` next to it has lines of word TAB row
    - `name.bin`: the binary format of word2vec
    - any other: the text format of fastText and GloVe, one word and its numbers per line; a first line "count dim" is
      optional

    The last two may be gzipped (`.gz`). Of a repeated word, the first vector counts.
    """
    path = Path(path)
    if path.suffix == ".npy":
        return _read_matrix(path, wanted)
    read = _read_binary if path.name.removesuffix(".gz").endswith(".bin") else _read_text
    keep = None if wanted is None else {word.encode("utf-8", "surrogatepass") for word in wanted}
    words: dict[str, int] = {}
    rows: list[np.ndarray] = []
    with _opened(path) as file:
        for word, row in read(file, path, lambda word: keep is None or word in keep):
            if words.setdefault(word.decode("utf-8", "replace"), len(rows)) == len(rows):
                rows.append(row)
    if not rows:
        raise _none_wanted(path)
    return WordVectors(words, np.stack(rows))


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield cast(BinaryIO, file)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: damaged gzip ({error}); get the file again") from error
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}; give the file of the word vectors") from error


def _read_text(file: BinaryIO, path: Path, wanted: Callable[[bytes], bool]) -> Iterator[tuple[bytes, np.ndarray]]:
    count, width, number = None, None, 0
    for number, line in enumerate(file, 1):
        line = line.rstrip()
        if number == 1 and (header := _header(line)):
            count, width = header
            continue
        fields = line.count(b" ")
        if width is None:
            width = fields
        inside = fields - width  # GloVe, which has no header, has some words that contain spaces
        if not fields or inside < 0 or (inside and count is not None):
            raise DataError(
                f"{path}:{number}: {fields} numbers after the word, not {width or 'a vector'}; fix the line"
            )
        *word, numbers = line.split(b" ", inside + 1)
        if wanted(name := b" ".join(word)):
            yield name, _vector(numbers, f"{path}:{number}")
    if count is not None and number - 1 != count:
        raise DataError(f"{path}:{number}: ends after {number - 1} of {count} vectors; get the file again")
    if not number:
        raise DataError(f"{path}: is empty; give the file of the word vectors")


def _read_binary(file: BinaryIO, path: Path, wanted: Callable[[bytes], bool]) -> Iterator[tuple[bytes, np.ndarray]]:
    header = _header(file.readline(100))
    if header is None:
        raise DataError(
            f"{path}:1: no line 'count dim', so not word2vec's binary form; of a fastText model, give the .vec file"
        )
    count, width = header
    for number in range(1, count + 1):
        word = bytearray()
        while (byte := file.read(1)) not in (b" ", b""):
            word += byte
        data = file.read(4 * width)
        if len(data) < 4 * width:
            raise DataError(f"{path}: ends within vector {number} of {count}; get the file again")
        name = bytes(word).lstrip(b"\n")  # some writers end each vector with a line break
        if wanted(name):
            yield name, _finite(np.frombuffer(data, "<f4").astype(np.float32), f"{path}: vector {number}")
    if file.read(2).strip():
        raise DataError(f"{path}: continues after the {count} vectors its first line names; get the file again")


def _read_matrix(path: Path, wanted: Set[str] | None) -> WordVectors:
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}; give the file of the word vectors") from error
    except (ValueError, EOFError) as error:
        raise DataError(f"{path}: not a .npy file of numbers; get the file again") from error
    if matrix.ndim != 2 or matrix.dtype.kind != "f":
        raise DataError(f"{path}: {matrix.dtype} of shape {matrix.shape}; vectors are floats of shape (rows, numbers)")
    list_of_words = path.with_suffix(WORDS_SUFFIX)
    words: dict[str, int] = {}
    with _opened(list_of_words) as file:
        for number, line in enumerate(file, 1):
            word, tab, row = line.decode("utf-8", "replace").rstrip("\r\n").partition("\t")
            if not tab or not row.isdecimal() or int(row) >= len(matrix):
                raise DataError(
                    f"{list_of_words}:{number}: not 'word TAB row' with a row below {len(matrix)}; fix the line"
                )
            if wanted is None or word in wanted:
                words.setdefault(word, int(row))
    if not words:
        raise _none_wanted(path)
    used, row_of_word = np.unique(np.array([*words.values()], dtype=np.int64), return_inverse=True)
    rows = _finite(matrix[used].astype(np.float32), str(path))
    return WordVectors(dict(zip(words, row_of_word.tolist(), strict=True)), rows)


def _none_wanted(path: Path) -> DataError:
    return DataError(f"{path}: has none of the wanted words; are the vectors of another language?")


def _header(line: bytes) -> tuple[int, int] | None:
    """Count and width, if the line is a header."""
    fields = line.split()
    return (int(fields[0]), int(fields[1])) if len(fields) == 2 and all(field.isdigit() for field in fields) else None


def _vector(numbers: bytes, where: str) -> np.ndarray:
    try:
        return _finite(np.array([float(number) for number in numbers.split()], dtype=np.float32), where)
    except ValueError as error:
        raise DataError(f"{where}: {error}; fix the line") from error


def _finite(vectors: np.ndarray, where: str) -> np.ndarray:
    if not np.isfinite(vectors).all():
        raise DataError(f"{where}: a number is not finite; fix it or get the file again")
    return vectors
