"""`drift.push`: upload the model of a run to the Hugging Face Hub."""

from pathlib import Path
from typing import Any

from drift.data.table_formats import first_line
from drift.errors import ConfigError, FileError, needed_for
from drift.models.catalogue import known_encoder
from drift.runs.load import load
from drift.runs.result import MODEL, Run


def push(run: Run | str | Path, repository: str, *, public: bool = False, dry_run: bool = False) -> list[Path]:
    """Upload the model of a run, with its card, to the Hugging Face Hub.

    Only the folder `model` of the run is uploaded: neither its texts, nor the page, nor checkpoints. You are logged in
    with `hf auth login` or `$HF_TOKEN`; this function reads neither.

    Parameters
    ----------
    run : Run or path
        A finished run, or its folder.
    repository : str
        Where to: "user/name". It is created if it is not there.
    public : bool, default=False
        Let everybody read a repository that is created now.
    dry_run : bool, default=False
        Only return the files.

    Returns
    -------
    list of Path
        The files, relative to the folder of the model.
    """
    opened = run if isinstance(run, Run) else load(run)
    if opened.path is None:
        raise ConfigError("the run has no folder; train it with out=FOLDER, then push it")
    folder = opened.path / MODEL
    files = sorted(file.relative_to(folder) for file in folder.rglob("*") if file.is_file())
    if repository.count("/") != 1 or not all(repository.split("/")):
        raise ConfigError(f"{repository!r} names no repository; write user/name")
    _check_encoder(opened.model)
    if not dry_run:
        _upload(folder, repository, private=not public)
    return files


def _check_encoder(model: Any) -> None:
    """Refuse a model whose encoder nobody else can find."""
    if not getattr(model, "by_reference", False):
        return
    name = str(model.encoder.name)
    if Path(name).is_absolute() and not known_encoder(name):
        raise ConfigError(
            f"the model refers to the encoder in {name}, which others do not have; train it with --self-contained"
        )


def _upload(folder: Path, repository: str, *, private: bool) -> None:
    with needed_for("drift push"):
        from huggingface_hub import HfApi
    api = HfApi()
    try:
        api.create_repo(repository, private=private, exist_ok=True)
        api.upload_folder(repo_id=repository, folder_path=folder, commit_message="Upload a model trained with DRIFT")
    except (OSError, ValueError, RuntimeError) as error:  # those of the hub are of these classes
        raise FileError(
            f"{repository}: the hub refused ({first_line(error)}); log in with `hf auth login`, and check the name"
        ) from error
