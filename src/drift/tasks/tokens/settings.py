"""Settings of runs on the words of sentences."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from drift.data.sentence_formats import LABELS, SPANS, WEAK, WEAK_SPANS, is_conll
from drift.errors import ConfigError
from drift.tasks.settings import EncoderSettings, TableSettings


class TokenDataSettings(TableSettings):
    """Sentences and the tags of their words."""

    tokens: str | None = Field(None, description="Column with the words of each sentence, or with raw text.")
    scheme: str | None = Field(
        None, description="Scheme of the tags: IOB2, IOB1, BIOES or IO; default: recognised from the tags."
    )
    uncovered: Literal["ignore", "O", "common", "dev"] = Field(
        "dev",
        description="Words without a weak tag: ignore leaves them out, O takes them for O, common takes only common"
        " words for O and leaves the others out, dev chooses what scores best on dev.",
    )
    outside_share: float = Field(
        1.0,
        gt=0,
        le=1,
        description="Share of the weak tags O that is learned, drawn by seed. Dictionaries miss entities, so that O is"
        " less reliable than other tags: with less of it, a tagger finds more entities than its dictionary has.",
    )
    labeled_rows: int | None = Field(
        None, ge=1, description="Keep the tags of this many sentences, drawn by seed (simulates a small budget)."
    )
    classes: dict[str, tuple[str, ...]] | None = Field(
        None, description="Names of entity types as a source of weak tags, each with phrases that describe it."
    )
    names_encoder: str = Field(
        "default", description="Encoder of texts that compares phrases with names; name or folder."
    )
    gliner: str | None = Field(
        None, description="GLiNER model that finds entities by their names, in place of the encoder; name or folder."
    )
    label_names: ClassVar[Iterable[str]] = (*LABELS, *SPANS)
    weak_names: ClassVar[Iterable[str]] = (*WEAK, *WEAK_SPANS)

    @model_validator(mode="after")
    def _gliner_has_names(self) -> "TokenDataSettings":
        if self.gliner is not None and not self.classes:
            raise ValueError("gliner needs the names of the types: give --classes")
        return self

    @classmethod
    def recognise(cls, data: Mapping[str, Any], sources: Mapping[str, Any]) -> dict[str, Any]:
        if is_conll(sources["train"]) and data.get("split"):
            raise ConfigError(f"{sources['train']}: CoNLL files have no such column; leave --split out, give --test")
        return super().recognise(data, sources)


class TokenModelSettings(EncoderSettings):
    """The model of words."""

    name: str = Field("default", description="Name or folder of an encoder.")
    layers: Annotated[int, Field(ge=1, le=1000)] | Literal["auto"] | None = Field(
        None,
        description="Layers of the encoder to keep; auto: two thirds, as the uppermost are specialised in whole texts;"
        " default: all, or half of them if the encoder is fixed.",
    )
    rule_votes: Annotated[float, Field(ge=0, le=100)] | Literal["auto"] = Field(
        "auto",
        description="Weight of the rules in the trained tagger, added to the log-probability of the tags that they"
        " give. auto: chosen on dev, 8 without a dev set; 0: rules only train it.",
    )
