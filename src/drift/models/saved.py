"""A trained model's folder: what is in it, by a description that is written last and checked first."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError

from drift.errors import FileError
from drift.models.encoders import without_bars

DESCRIPTION = "drift.json"

Model = TypeVar("Model")


def save_pretrained(module: Any, tokenizer: Any, folder: Path) -> None:
    """Write a module of transformers and its tokenizer in Hugging Face form."""
    import transformers

    with without_bars(transformers):
        module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def write_description(folder: Path, about: dict[str, Any]) -> None:
    """Say what the folder holds, every file of it by name. about: with a `format`."""
    files = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    content = json.dumps({**about, "files": files}, indent=2, ensure_ascii=False)
    (folder / DESCRIPTION).write_text(content + "\n", encoding="utf-8")
    for weights in folder.rglob("*.safetensors"):  # which safetensors lets nobody else read
        weights.chmod((folder / DESCRIPTION).stat().st_mode)


def read_description(folder: Path, expected: str, opened: Callable[[dict[str, Any]], Model]) -> Model:
    """What `opened` makes of the description, if the folder is of the expected format and whole."""
    try:
        about = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        if about["format"] != expected:
            raise FileError(f"{folder} is {about['format']!r}, not {expected}; it needs another version of drift")
        # transformers opens a folder without its tokenizer too, and takes every word for unknown.
        if lost := [name for name in about["files"] if not (folder / name).is_file()]:
            raise FileError(f"{folder} lacks {', '.join(lost)}; copy it again")
        return opened(about)
    except FileError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise FileError(
            f"{folder} cannot be opened as a trained model ({type(error).__name__}: {reason}); copy it again"
        ) from error
