"""Where an encoder is: on this machine, or to be fetched once. Nothing is requested from the network needlessly."""

import hashlib
import importlib.util
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from drift.data.cache import cache_folder
from drift.data.files import expanded
from drift.data.sealed import is_owned
from drift.errors import INSTALL, ConfigError, FileError
from drift.models.catalogue import DEFAULT, ENCODERS, FALLBACK, WORDS, Encoder, known_encoder
from drift.models.quantised import convert, file_sum, quantised_files

HUB_FILES = ("*.json", "*.txt", "*.model", "model.safetensors")
WEIGHTS = "model.safetensors"
MODEL_FILES = {".json", ".safetensors", ".bin", ".txt", ".model"}


@dataclass(frozen=True)
class Located:
    """An encoder of the table and its folder. source: a key of `SOURCES`."""

    encoder: Encoder
    folder: Path
    source: str


def located(name: str, *, source: str | None = None) -> Located:
    """Find an encoder of the table, and fetch or convert it first if it is not on this machine.

    name: "default" or a name in the table; without the default, the smaller encoder is used, with a warning.
    source: use only this one of `SOURCES`.

    What is on the machine comes first, the network last.
    """
    encoder = known_encoder(name)
    if encoder is None:
        raise ConfigError(f"{name} is not in the table of `drift encoders`; it lists {', '.join(ENCODERS)}")
    problems = []
    for place, find in SOURCES.items():
        if source not in (None, place):
            continue
        try:
            if folder := find(encoder):
                return Located(encoder, folder, place)
        except FileError as error:
            problems.append(str(error))
    if name == "default" and source is None and (folder := _package(ENCODERS[FALLBACK])):
        warnings.warn(_second_best(encoder), stacklevel=3)
        return Located(ENCODERS[FALLBACK], folder, "package")
    raise FileError(_missing(encoder, problems))


def encoder_path(name: str) -> str:
    """Return the folder of an encoder, or its name on the model hub.

    name: "default", a name in the table of `drift.models.catalogue` (fetched or converted first if needed), a folder,
        the name of a folder in `$DRIFT_MODELS`, else a name on the hub.
    """
    folder = expanded(name)
    if folder.is_dir() or folder.is_absolute() or name.startswith("."):
        if not (folder / "config.json").is_file():
            raise FileError(f"{name} is not a model folder: it has no config.json; give one that save_pretrained wrote")
        return str(folder)
    if known_encoder(name) is not None:
        return str(located(name).folder)
    shelf = os.environ.get("DRIFT_MODELS")
    return str(Path(shelf, name)) if shelf and Path(shelf, name).is_dir() else name


def folder_fingerprint(encoder: str) -> str | None:
    """A hash of the folder of an encoder; None if it is not in a folder. encoder: as for `encoder_path`."""
    folder = Path(encoder_path(encoder))
    if not folder.is_dir():
        return None
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in MODEL_FILES:
            with path.open("rb") as file:
                digest.update(f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


def words_default() -> str:
    """The name of the default encoder for tokens: a cased one, or the default for texts where that cannot be had."""
    if local_folder(ENCODERS[WORDS]) is not None or hub_answers():
        return WORDS
    name = located("default").encoder.name
    warnings.warn(
        f"{WORDS} is not on this machine; {name} is used, which does not see capital letters;"
        f" get the better one with `drift encoders get {WORDS}`",
        stacklevel=3,
    )
    return name


def local_folder(encoder: Encoder) -> tuple[str, Path] | None:
    """The source and folder of an encoder that is ready on this machine; None if it is not."""
    for place in READY:
        if folder := SOURCES[place](encoder):
            return place, folder
    return None


def nearest_source(encoder: Encoder) -> str:
    """Where an encoder that is not ready would come from."""
    try:
        files = quantised_files(encoder.quantised) if encoder.quantised else None
    except FileError:
        files = None
    return f"the package {encoder.quantised.package}" if encoder.quantised and files else "the model hub"


def _shelf(encoder: Encoder) -> Path | None:
    """A folder of this name in `$DRIFT_MODELS`."""
    shelf = os.environ.get("DRIFT_MODELS")
    return _model_folder(Path(shelf, encoder.name)) if shelf else None


def _converted(encoder: Encoder) -> Path | None:
    """The cache, converted earlier."""
    folder = _model_folder(converted_folder(encoder)) if encoder.quantised else None
    return folder if folder is not None and all(map(is_owned, folder.iterdir())) else None


def _package(encoder: Encoder) -> Path | None:
    """A Python package with the weights."""
    if encoder.module is None:
        return None
    package = importlib.util.find_spec(encoder.module)
    return None if package is None or package.origin is None else _model_folder(Path(package.origin).parent / "model")


def _hub_cache(encoder: Encoder) -> Path | None:
    """The cache of the model hub's library, at the pinned revision."""
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return None
    weights = try_to_load_from_cache(encoder.hub, WEIGHTS, revision=encoder.revision)
    return _model_folder(Path(weights).parent) if isinstance(weights, str) else None


def _quantised(encoder: Encoder) -> Path | None:
    """The int8 form inside a Python package, converted into the cache."""
    if encoder.quantised is None or (files := quantised_files(encoder.quantised)) is None:
        return None
    target = converted_folder(encoder)
    convert(files, encoder, target)
    return target


def _hub(encoder: Encoder) -> Path | None:
    """The model hub at the pinned revision, with a progress bar."""
    if not hub_answers():
        return None
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(encoder.hub, revision=encoder.revision, allow_patterns=list(HUB_FILES)))
    except Exception as error:  # of any of the libraries that transfer files
        raise FileError(f"{encoder.hub} could not be fetched ({str(error).splitlines()[0]})") from error
    if encoder.weights_sum and file_sum(folder / WEIGHTS) != encoder.weights_sum:
        raise FileError(f"{folder / WEIGHTS} is not the published file; delete it and fetch it again")
    return _model_folder(folder)


SOURCES: dict[str, Callable[[Encoder], Path | None]] = {
    "folder": _shelf,
    "cache": _converted,
    "package": _package,
    "hub-cache": _hub_cache,
    "quantised": _quantised,
    "hub": _hub,
}
"""How an encoder may be found, in this order."""
READY = ("folder", "cache", "package", "hub-cache")  # those that need no work


def converted_folder(encoder: Encoder) -> Path:
    """Where the converted int8 form of an encoder is kept."""
    return cache_folder() / "encoders" / f"{encoder.name}-int8"


def hub_answers() -> bool:
    """Return whether the model hub can be reached, with one request; the library itself retries for half a minute."""
    try:
        from huggingface_hub import constants, get_session

        get_session().head(constants.ENDPOINT, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    except Exception:  # of requests or httpx, depending on the library's version; or offline mode
        return False
    return True


def _model_folder(folder: Path) -> Path | None:
    return folder if (folder / "config.json").is_file() else None


def _second_best(encoder: Encoder) -> str:
    return (
        f"{DEFAULT} is not on this machine; {FALLBACK} is used, which classifies texts less accurately"
        f" (docs/results/encoders.md); get the better one with `{_advice(encoder)}`"
    )


def _missing(encoder: Encoder, problems: list[str]) -> str:
    reasons = "".join(f"; {problem}" for problem in problems) or ", and the model hub does not answer"
    ways = [*([INSTALL] if encoder.module else []), _advice(encoder), f"a folder $DRIFT_MODELS/{encoder.name}"]
    return f"{encoder.name} is not on this machine{reasons}; get it with {', or '.join(ways)}"


def _advice(encoder: Encoder) -> str:
    return encoder.quantised.install if encoder.quantised else f"drift encoders get {encoder.name}"
