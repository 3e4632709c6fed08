"""Settings of runs on the words of sentences."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from drift.data.sentence_formats import LABELS, SPANS, WEAK, WEAK_SPANS, is_conll
from drift.errors import ConfigError
from drift.tasks.settings import EncoderSettings, TableSettings


class TokenDataSettings(TableSettings):
    """Sentences and the tags of their words."""

    tokens: str | None = Field(None, description="Column with the words of each sentence, or with raw text.")
    scheme: str | None = Field(
        None, description="Scheme of the tags: IOB2, IOB1, BIOES or IO; default: recognised from the tags."
    )
    uncovered: Literal["ignore", "O", "dev"] = Field(
        "dev",
        description="Words without a weak tag: ignore leaves them out, O takes them for O, dev chooses what scores"
        " better on dev.",
    )
    labeled_rows: int | None = Field(
        None, ge=1, description="Keep the tags of this many sentences, drawn by seed (simulates a small budget)."
    )
    label_names: ClassVar[Iterable[str]] = (*LABELS, *SPANS)
    weak_names: ClassVar[Iterable[str]] = (*WEAK, *WEAK_SPANS)

    @classmethod
    def recognise(cls, data: Mapping[str, Any], sources: Mapping[str, Any]) -> dict[str, Any]:
        if is_conll(sources["train"]) and data.get("split"):
            raise ConfigError(f"{sources['train']}: CoNLL files have no such column; leave --split out, give --test")
        return super().recognise(data, sources)


class TokenModelSettings(EncoderSettings):
    """The model of words."""

    name: str = Field("all-MiniLM-L6-v2", description="Name or folder of an encoder.")
    layers: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="Layers of the encoder to keep; default: all, or half of them if the encoder is fixed.",
    )

    @field_validator("name")
    @classmethod
    def _default(cls, value: str) -> str:
        """The default of texts is not that of words."""
        return str(cls.model_fields["name"].default) if value == "default" else value
