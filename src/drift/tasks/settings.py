"""Settings that several tasks share."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from drift.data.columns import LABEL_NAMES, WEAK_NAMES, recognised_weak
from drift.data.table_splits import recognised_split, split_table
from drift.data.tables import source_name
from drift.errors import ConfigError, DriftError
from drift.methods.shares import LabelsAre
from drift.settings import Settings

MOST_TOKENS = 100_000  # that an encoder may be given of a text


class TableSettings(Settings):
    """Where rows and labels come from. A file is stored by its path, an object passed in Python by a description."""

    train: str = Field("", description="Training table; rows with a blank label are unlabelled.")
    unlabeled: str | None = Field(None, description="Table with more unlabelled rows; its labels are ignored.")
    labels: tuple[str, ...] = Field(
        (), description="Tables with labels of rows of train or unlabeled, matched by row number and content."
    )
    dev: str | None = Field(
        None, description="Validation table for model selection; its labels count toward the label budget."
    )
    test: str | None = Field(None, description="Test table; scored once, at the end.")
    split: str | None = Field(
        None,
        description='Column of the training table that says train, dev or test; default: split, "" for none.',
    )
    label: str | None = Field(None, description="Column with the labels.")
    weak: str | None = Field(None, description="Column with noisy labels, from a crowd, a language model or rules.")
    rules: str | None = Field(None, description="File with rules that give noisy labels.")
    labels_are: LabelsAre | None = Field(
        None,
        description="How rows were chosen for labelling: random, so that class counts are evidence of class shares,"
        " per-class, or suggested by a model. Default: as the counts suggest.",
    )
    dev_rows: int | None = Field(None, ge=1, description="Use only this many rows of dev, drawn by seed.")
    train_rows: int | None = Field(None, ge=1, description="Use only this many rows of train, drawn by seed.")
    test_rows: int | None = Field(None, ge=1, description="Score only this many rows of test, drawn by seed.")
    encoding: str = Field("utf-8", description="Encoding of CSV, TSV, JSON lines and CoNLL files.")

    recognised: tuple[str, ...] = Field(
        (), description="Which of split and weak were recognised by the names of columns; set by the run itself."
    )
    label_names: ClassVar[Iterable[str]] = LABEL_NAMES  # typical columns of gold labels
    weak_names: ClassVar[Iterable[str]] = WEAK_NAMES  # typical columns of weak labels

    @property
    def is_weak(self) -> bool:
        return self.weak is not None or self.rules is not None or bool(getattr(self, "classes", None))

    @classmethod
    def recognise(cls, data: Mapping[str, Any], sources: Mapping[str, Any]) -> dict[str, Any]:
        """Settings that follow from the training table: its split column, with dev and test, and its weak labels.

        data: the settings as given. sources: train, dev and test, as paths or objects. A table that cannot be read is
        left for the run to report, and so are values that are no names.
        """
        if any(not isinstance(data.get(name), (str, NoneType)) for name in ("encoding", "split", "label", "weak")):
            return {}
        train, encoding = sources["train"], data.get("encoding") or "utf-8"
        found: dict[str, Any] = {}
        parts: dict[str, Any] = {}
        try:
            if (split := data.get("split")) is None and (split := recognised_split(train, encoding=encoding)):
                found["split"] = split
        except DriftError:
            return {}
        if split:
            _check_parts(split, sources)
            parts = split_table(train, split, encoding=encoding)
        if data.get("weak") is None and data.get("rules") is None:
            names = {"weak_names": cls.weak_names, "label_names": cls.label_names}
            rows = parts.get("train", train)
            with suppress(DriftError):
                if weak := recognised_weak(rows, data.get("label"), **names, encoding=encoding):
                    found["weak"] = weak
        if found:
            found["recognised"] = tuple(found)
        return found | {part: source_name(train) for part in ("dev", "test") if part in parts}

    def recognition_notes(self) -> list[str]:
        """Messages about columns that were recognised by their names."""
        notes = {
            "split": f'column {self.split!r} says which rows are train, dev and test; --split "" uses all to train',
            "weak": f"column {self.weak!r} is taken for weak labels; --label {self.weak} takes it for gold labels",
        }
        return [note for name, note in notes.items() if name in self.recognised]


def _check_parts(split: str, sources: Mapping[str, Any]) -> None:
    """Refuse tables of dev and test beside a split column. A stored configuration names the training table itself."""
    train = sources["train"]
    for part in ("dev", "test"):
        given = sources.get(part)
        same = given is train or (isinstance(given, (str, Path)) and str(given) == str(train))
        if given is not None and not same:
            raise ConfigError(
                f"column {split!r} of {source_name(train)} says which rows are train, dev and test, and --{part}"
                f' {source_name(given)} was given too; leave that out, or give --split "" to use all rows for training'
            )


class EncoderSettings(Settings):
    """Which encoder, and how much of it is trained."""

    name: str = Field("default", description="Name or folder of an encoder, or default.")
    frozen: bool | None = Field(
        None, description="Train only a head on fixed vectors; default: true on a machine without a GPU."
    )
    train_layers: Annotated[int, Field(ge=1, le=1000)] | Literal["all", "auto"] = Field(
        "auto",
        description="Layers of an encoder to fine-tune, counted from the last: the others run once per text, and their"
        " outputs are stored. all: every layer; auto: all with a GPU, else a third of them (tokens: three quarters).",
    )
    probe: bool = Field(
        False,
        description="Fine-tuning: fit the last layer before the layers below it are trained, to the labels of words, or"
        " to a head on fixed vectors of texts that is trained as without --finetune.",
    )
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        "auto",
        description="Number format of a fixed encoder of texts, or of fixed layers; auto: bfloat16 where the processor"
        " computes it.",
    )
    max_length: int = Field(128, ge=2, le=MOST_TOKENS, description="Maximum number of sub-words read at once.")
    dropout: float | None = Field(None, ge=0, lt=1, description="Dropout rate; default: the model's own.")
