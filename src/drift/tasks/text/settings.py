"""Settings of runs on texts."""

from typing import Annotated, Literal

from pydantic import Field

from drift.tasks.settings import EncoderSettings, TableSettings
from drift.weak.combining import Combining


class TextDataSettings(TableSettings):
    """Texts and their classes."""

    text: str | None = Field(None, description="Column with the texts.")
    add: tuple[str, ...] = Field(
        (), description="Tables with further rows and their labels, which may be of new classes."
    )
    labels_per_class: int | None = Field(
        None, ge=1, description="Keep this many labels per class, drawn by seed (simulates a small budget)."
    )
    more_weak: tuple[str, ...] = Field(
        (), description="Further columns with noisy labels: COLUMN, COLUMN=CONFIDENCE, or PREFIX* (a column per class)."
    )
    classes: dict[str, tuple[str, ...]] | None = Field(
        None, description="Names of classes as a source of noisy labels, each with phrases that describe it."
    )
    combine: Combining = Field(
        "auto", description="How several sources are combined: auto, majority, weighted, dawid-skene or label-model."
    )
    gold: Literal["auto", "train", "measure"] = Field(
        "auto",
        description="Beside noisy labels, gold labels of the training table are trained on, or only measure. auto: they"
        " are trained on with class names, unless every row has one.",
    )


class TextModelSettings(EncoderSettings):
    """The model of texts."""

    name: str = Field("default", description="Name or folder of an encoder, default, textcnn or vampire.")
    pool: Literal["auto", "mean", "cls", "layers"] = Field(
        "auto", description="How a fixed encoder turns a text into one vector; auto: what suits the encoder."
    )
    self_contained: bool = Field(
        False, description="Store a fixed encoder in the run's folder, not only its name and checksum."
    )
    vectors: str | None = Field(
        None, description="Word vectors for textcnn: a file in fastText, GloVe or word2vec format, or npy."
    )
    windows: tuple[Annotated[int, Field(ge=1, le=100)], ...] = Field(
        (2, 3, 4, 5), min_length=1, max_length=20, description="Widths of the convolutions of textcnn."
    )
    maps: int = Field(500, ge=1, le=10_000, description="Feature maps per window of textcnn.")
    min_count: int = Field(2, ge=1, description="textcnn and vampire: words that occur less often are unknown.")
    train_vectors: bool = Field(True, description="textcnn: train the word vectors too.")
