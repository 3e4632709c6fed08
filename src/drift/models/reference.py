"""A reference to an encoder instead of a copy: its name, revision and checksum, which are checked when it is opened."""

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift.data.files import expanded
from drift.errors import DriftError, FileError
from drift.models.catalogue import known_encoder
from drift.models.encoders import load_encoder
from drift.models.late_encoder import late_encoder
from drift.models.locating import READY, SOURCES, encoder_path, located
from drift.models.quantised import file_sum

if TYPE_CHECKING:
    from drift.models.embedding import Embedder

TOKENIZER = "tokenizer.json"


@dataclass(frozen=True)
class EncoderReference:
    """The encoder of a trained head.

    name: as for `encoder_path`, never "default". revision: on the model hub, if it is known. checksum: of weights and
    tokenizer; None if the encoder is not a folder. identity, precision: see `Embedder`; vectors in the cache are found
    by them. copied: the encoder is stored with the head.
    """

    name: str
    revision: str | None
    checksum: str | None
    identity: str
    precision: str
    copied: bool

    @classmethod
    def of(cls, name: str, embedder: "Embedder", *, copied: bool) -> "EncoderReference":
        """A reference to the encoder of a run. copied: store the encoder too."""
        path = Path(encoder_path(name))
        if name == "default":
            name = located(name).encoder.name
        elif expanded(name).is_dir():
            name = str(expanded(name).absolute())
        entry = known_encoder(name)
        folder = path if path.is_dir() else None
        revision = entry.revision if entry else (None if folder else embedder.identity.rpartition("@")[2])
        return cls(name, revision, checksum(folder) if folder else None, embedder.identity, embedder.precision, copied)

    def content(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    def load(self) -> tuple[Any, Any]:
        """The encoder and its tokenizer; FileError if this machine has another encoder of that name, or none."""
        if self.checksum is None:
            model, tokenizer = load_encoder(self.name)
            if (commit := getattr(model.config, "_commit_hash", None)) != self.revision:
                raise FileError(self._refusal(f"revision {commit}", f"revision {self.revision}"))
            return model, tokenizer
        return late_encoder(str(self._folder()))

    def _folder(self) -> Path:
        """The folder with the right content."""
        others = []
        for folder in self._candidates():
            if (found := checksum(folder)) == self.checksum:
                return folder
            others.append(found[:12])
        assert self.checksum is not None
        raise FileError(self._refusal(f"checksum {', '.join(others)}", f"checksum {self.checksum[:12]}"))

    def _candidates(self) -> list[Path]:
        """All folders on this machine that this name may mean; fetched or converted only if there is none."""
        entry = known_encoder(self.name)
        ready = [SOURCES[place](entry) for place in READY] if entry else []
        if folders := [folder for folder in ready if folder]:
            return folders
        try:
            path = Path(encoder_path(self.name))
        except DriftError as error:
            raise FileError(f"the encoder of the run is missing: {error}") from error
        if not path.is_dir():
            raise FileError(
                f"the encoder of the run, {self.name}, is not on this machine; copy it there, or train with"
                " --self-contained"
            )
        return [path]

    def _refusal(self, found: str, expected: str) -> str:
        return (
            f"the run was trained on {self.name} with {expected}, but the one on this machine has {found}; copy the"
            " same one into $DRIFT_MODELS, or train again, with --self-contained to keep the encoder in the folder"
        )


def checksum(folder: Path) -> str:
    """A hash of the weights and the tokenizer of an encoder. Its other files may differ by version of transformers."""
    weights = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("*.bin"))
    digest = hashlib.sha256()
    for file in [*weights, folder / TOKENIZER]:
        if file.is_file():
            digest.update(f"{file.name} {file_sum(file)}\n".encode())
    return digest.hexdigest()
