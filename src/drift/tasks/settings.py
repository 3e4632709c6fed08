"""Settings that several tasks share."""

from typing import Literal

from pydantic import Field

from drift.settings import Settings


class TableSettings(Settings):
    """Where rows and labels come from. A file is stored by its path, an object passed in Python by a description."""

    train: str = Field("", description="Training table; rows with a blank label are unlabelled.")
    unlabeled: str | None = Field(None, description="Table with more unlabelled rows; its labels are ignored.")
    dev: str | None = Field(
        None, description="Validation table for model selection; its labels count toward the label budget."
    )
    test: str | None = Field(None, description="Test table; scored once, at the end.")
    label: str | None = Field(None, description="Column with the labels.")
    weak: str | None = Field(None, description="Column with noisy labels, from a crowd, a language model or rules.")
    rules: str | None = Field(None, description="File with rules that give noisy labels.")
    labels_are: Literal["random", "per-class"] | None = Field(
        None,
        description="How rows were chosen for labelling: random, so that class counts are evidence of class shares, or"
        " per-class. Default: as the counts suggest.",
    )
    dev_rows: int | None = Field(None, ge=1, description="Use only this many rows of dev, drawn by seed.")
    train_rows: int | None = Field(None, ge=1, description="Use only this many rows of train, drawn by seed.")
    test_rows: int | None = Field(None, ge=1, description="Score only this many rows of test, drawn by seed.")
    encoding: str = Field("utf-8", description="Encoding of CSV, TSV, JSON lines and CoNLL files.")

    @property
    def is_weak(self) -> bool:
        return self.weak is not None or self.rules is not None


class EncoderSettings(Settings):
    """Which encoder, and how much of it is trained."""

    name: str = Field("default", description="Name or folder of an encoder, or default.")
    frozen: bool | None = Field(
        None, description="Train only a head on fixed vectors; default: true on a machine without a GPU."
    )
    max_length: int = Field(128, ge=2, description="Maximum number of sub-words read at once.")
    dropout: float | None = Field(None, ge=0, lt=1, description="Dropout rate; default: the model's own.")
