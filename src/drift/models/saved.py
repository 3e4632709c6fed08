"""Folders of trained models, with a description that is written last and checked first."""

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
    """Write a module of transformers and its tokenizer in Hugging Face format. folder: where to write."""
    import transformers

    with without_bars(transformers):
        module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def write_description(folder: Path, about: dict[str, Any]) -> None:
    """Write the description of a folder, with a list of its files. about: its content, which has a `format`."""
    files = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    content = json.dumps({**about, "files": files}, indent=2, ensure_ascii=False)
    (folder / DESCRIPTION).write_text(content + "\n", encoding="utf-8")
    for weights in folder.rglob("*.safetensors"):  # safetensors writes files that other users cannot read
        weights.chmod((folder / DESCRIPTION).stat().st_mode)


def read_description(folder: Path, expected: str, load: Callable[[dict[str, Any]], Model]) -> Model:
    """Return the model of a folder; FileError if the folder has another format or is incomplete.

    folder: the model's folder. expected: its format. load: a function from the description to the model.
    """
    try:
        about = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        if about["format"] != expected:
            raise FileError(f"{folder} is {about['format']!r}, not {expected}; it needs another version of drift")
        # transformers opens a folder without a tokenizer too, and treats every word as unknown.
        if missing := [name for name in about["files"] if not (folder / name).is_file()]:
            raise FileError(f"{folder} lacks {', '.join(missing)}; copy it again")
        return load(about)
    except FileError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise FileError(
            f"{folder} cannot be opened as a trained model ({type(error).__name__}: {reason}); copy it again"
        ) from error
