"""Folders of trained models, with a description that is written last and checked first."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from safetensors import SafetensorError

from drift.data.files import check_inside
from drift.data.reading import read_text
from drift.errors import FileError
from drift.models.encoders import without_bars

DESCRIPTION = "drift.json"

LARGEST = 2**26  # bytes of a description; class names may be many

Model = TypeVar("Model")


class Description(BaseModel):
    """Base of what `drift.json` says of a model. It is validated before any other file of the folder is opened.

    files: of the folder, besides this one. Subclasses add the fields of a task.
    """

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)

    format: str
    classes: list[str] = Field(min_length=1)
    temperature: float = Field(gt=0)
    files: list[str]

    @field_validator("files")
    @classmethod
    def _inside(cls, files: list[str]) -> list[str]:
        for name in files:
            if not name or Path(name).is_absolute() or ".." in Path(name).parts or "\\" in name or "\0" in name:
                raise ValueError(f"{name!r} is not a file inside the folder")
        return files


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


def read_description(
    folder: Path, expected: str, fields: "type[Description]", load: Callable[[dict[str, Any]], Model]
) -> Model:
    """Return the model of a folder after checks; FileError if the folder has another format or is incomplete.

    folder: the model's folder. expected: its format. fields: what its description has. load: a function from the
    description to the model.
    """
    try:
        about = _read_json(folder)
        if not isinstance(about, dict):
            raise ValueError(f"{DESCRIPTION} holds {type(about).__name__}, not fields by name")
        if about.get("format", expected) != expected:
            raise FileError(f"{folder} is {about['format']!r}, not {expected}; it needs another version of drift")
        described = fields.model_validate(about)
        check_inside(folder)
        # transformers opens a folder without a tokenizer too, and treats every word as unknown.
        if missing := [name for name in described.files if not (folder / name).is_file()]:
            raise FileError(f"{folder} lacks {', '.join(missing)}; copy it again")
        return load(described.model_dump(exclude_unset=True))
    except ValidationError as error:
        fault = error.errors()[0]
        field = ".".join(map(str, fault["loc"])) or "it"
        raise FileError(
            f"{folder / DESCRIPTION} is damaged: {field}: {' '.join(fault['msg'].split())}; copy the folder again"
        ) from None
    except FileError:
        raise
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        RuntimeError,
        RecursionError,
        SafetensorError,
    ) as error:
        reason = " ".join(str(error).split())
        raise FileError(
            f"{folder} cannot be opened as a trained model ({type(error).__name__}: {reason}); copy it again"
        ) from error


def _read_json(folder: Path) -> Any:
    try:
        return json.loads(read_text(folder / DESCRIPTION, most=LARGEST))
    except FileError as error:
        raise FileError(f"{folder} cannot be opened as a trained model ({error}); copy it again") from error
