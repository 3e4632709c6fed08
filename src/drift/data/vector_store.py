"""Vectors of texts on disk, found again by text: in any order, in any file, from any process."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from drift.data.cache import cache_file, cache_folder, content_key, make_room
from drift.data.sealed import is_sealed

MOST_OPEN = 64  # files that are open at once
TEXTS = ".texts.npy"  # beside the vectors of each file: hashes of their texts, and whether the texts were truncated


def text_keys(texts: Iterable[str]) -> np.ndarray:
    """One hash of 128 bits per text, `(n, 2)` in uint64."""
    digests = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
    return np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 2)


class VectorStore:
    """All vectors that were computed with the same settings, `(n, width)` in float32 in every file.

    settings: what the vectors depend on besides the text. width: of a vector.

    A file holds the vectors of some texts; a second one beside it, written last, their hashes. Memory holds 40 bytes
    per stored text.
    """

    def __init__(self, settings: Sequence[object], width: int) -> None:
        self.folder = cache_folder() / "embeddings" / content_key([], *settings)
        self.width = width
        self._sealed: set[Path] = set()  # files whose checksums were found to fit
        self._in_use: set[Path] = set()  # files that this process needs: they are not removed to make room
        self.refresh()

    def refresh(self) -> None:
        """Read which texts are stored."""
        self._files: list[Path] = []
        self._open: dict[int, np.ndarray] = {}
        self._keys = np.empty((0, 2), dtype="<u8")  # sorted by the first word
        self._places = np.empty((0, 3), dtype=np.int64)  # file, row, truncated
        keys, places = [self._keys], [self._places]
        for file in sorted(self.folder.glob(f"*{TEXTS}")):
            listed = read_array(file)
            if listed is not None and _fits(listed, _shape(_vectors(file)), self.width):
                for known, more in zip((keys, places), self._indexed(file, listed), strict=True):
                    known.append(more)
        self._keys, self._places = np.concatenate(keys), np.concatenate(places)
        order = np.argsort(self._keys[:, 0], kind="stable")
        self._keys, self._places = self._keys[order], self._places[order]

    def _indexed(self, file: Path, listed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Keys and places of the texts of one more file."""
        number = np.full(len(listed), len(self._files))
        self._files.append(file)
        return listed[:, :2], np.stack([number, np.arange(len(listed)), listed[:, 2].astype(np.int64)], 1)

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Where the vectors of these texts are, as positions for `read`, `(n,)`; -1 where there is none."""
        positions = np.minimum(np.searchsorted(self._keys[:, 0], keys[:, 0]), max(len(self._keys) - 1, 0))
        if not len(self._keys):
            return np.full(len(keys), -1)
        found = np.where((self._keys[positions] == keys).all(1), positions, -1)
        for number in np.unique(self._places[found[found >= 0], 0]):
            file = self._files[number]
            self._in_use |= {file, _vectors(file)}
            if not self._is_sealed(_vectors(file)):  # not to be trusted, or another process has removed it
                found[(found >= 0) & (self._places[found, 0] == number)] = -1
        return found

    def _is_sealed(self, file: Path) -> bool:
        """Whether a file is there and can be trusted. Its checksum is computed once."""
        if file in self._sealed:
            return file.is_file()
        if is_sealed(file):
            self._sealed.add(file)
        return file in self._sealed

    def truncated(self, positions: np.ndarray) -> np.ndarray:
        """Whether texts were truncated, `(n,)`. positions: as for `read`."""
        return np.asarray(self._places[positions, 2], dtype=bool)

    def read(self, positions: np.ndarray) -> np.ndarray:
        """Vectors, `(n, width)`. positions: from `find`, none is -1. FileNotFoundError if a file was removed since."""
        vectors = np.empty((len(positions), self.width), dtype=np.float32)
        places = self._places[positions]
        for number in np.unique(places[:, 0]):
            here = np.flatnonzero(places[:, 0] == number)
            vectors[here] = self._array(int(number))[places[here, 1]]
        return vectors

    def _array(self, number: int) -> np.ndarray:
        if number not in self._open:
            while len(self._open) >= MOST_OPEN:
                self._open.pop(next(iter(self._open)))
            file = self._files[number]
            self._open[number] = np.load(_vectors(file), mmap_mode="r")
            touch(file, _vectors(file))
        return self._open[number]

    def file_of(self, keys: np.ndarray) -> Path:
        """The file of exactly these texts in this order."""
        return self.folder / f"{hashlib.sha256(keys.tobytes()).hexdigest()[:32]}{TEXTS}"

    def whole(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Vectors, memory-mapped, and truncations of exactly these texts if one file holds them; else None."""
        file = self.file_of(keys)
        listed = read_array(file)
        if listed is None or _shape(_vectors(file)) != (len(keys), self.width) or not self._is_sealed(_vectors(file)):
            return None
        vectors = np.load(_vectors(file), mmap_mode="r")
        touch(file, _vectors(file))
        return vectors, listed[:, 2].astype(bool)

    def write(self, keys: np.ndarray, truncated: np.ndarray, vectors: Iterable[np.ndarray]) -> Path:
        """Write a file. vectors: of these texts in parts, consumed one at a time, so that memory stays constant."""
        file = self.file_of(keys)
        write_array(_vectors(file), vectors, (len(keys), self.width))
        listed = np.column_stack([keys, truncated.astype("<u8")])
        with cache_file(file) as aside, aside.open("wb") as target:
            np.save(target, listed)
        self._sealed.add(_vectors(file))
        self._in_use |= {file, _vectors(file)}
        make_room(keep=self._in_use)
        new_keys, new_places = self._indexed(file, listed)
        order = np.argsort(new_keys[:, 0], kind="stable")
        at = np.searchsorted(self._keys[:, 0], new_keys[order, 0])
        self._keys = np.insert(self._keys, at, new_keys[order], axis=0)
        self._places = np.insert(self._places, at, new_places[order], axis=0)
        return file

    def merge(self, files: Sequence[Path]) -> None:
        """Replace files by one that holds all their texts."""
        listed = np.concatenate([np.load(file) for file in files])
        self.write(listed[:, :2], listed[:, 2].astype(bool), (np.load(_vectors(file)) for file in files))
        self.remove(files)

    def remove(self, files: Iterable[Path]) -> None:
        """Delete files, and forget them."""
        for file in files:
            for each in (file, _vectors(file)):
                each.unlink(missing_ok=True)
        self.refresh()


def _fits(listed: np.ndarray, vectors: tuple[int, ...] | None, width: int) -> bool:
    """Whether a file is whole; it is not if it is damaged, or if another process is still writing. vectors: shape."""
    return listed.ndim == 2 and vectors == (len(listed), width)


def _shape(file: Path) -> tuple[int, ...] | None:
    """The shape that a file of vectors says it has; None if the file is missing or cut short."""
    try:
        array = np.load(file, mmap_mode="r")
    except (OSError, ValueError, EOFError):
        return None
    shape: tuple[int, ...] = array.shape
    return shape


def _vectors(file: Path) -> Path:
    return file.with_name(file.name.removesuffix(TEXTS) + ".npy")


def touch(*files: Path) -> None:
    """Note that files of the cache were used."""
    for file in files:
        try:
            os.utime(file)
        except OSError:  # another user's, or removed by another process
            continue


def read_array(file: Path) -> np.ndarray | None:
    """Return the array in a file, memory-mapped; None if the file is missing or cannot be trusted."""
    if not is_sealed(file):
        return None
    try:
        array: np.ndarray = np.load(file, mmap_mode="r")
    except (OSError, ValueError, EOFError):  # removed by another process in between
        return None
    return array


def write_array(
    path: Path, arrays: Iterable[np.ndarray], shape: tuple[int, ...], dtype: np.dtype | None = None
) -> None:
    """Write arrays, concatenated along the first axis, as one array of this shape to the cache.

    dtype: of all arrays; default: float32. arrays: consumed one at a time, so that they are never all in memory.
    """
    with cache_file(path) as aside, aside.open("wb") as file:
        header = {"descr": "<f4" if dtype is None else dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for array in arrays:
            file.write(array.tobytes())
