"""How a run trains: every number of it, with its meaning."""

from typing import Literal

from pydantic import Field, model_validator

from drift.settings import Settings


class TrainingSettings(Settings):
    """Both phases, the optimiser, what is watched and what is kept."""

    seed: int = Field(
        0, ge=0, description="Decides weights, batches and dropout; one thread and one seed give one result."
    )
    initial_steps: int = Field(300, ge=0, description="Steps on labelled (or weakly labelled) rows to find the start.")
    steps: int = Field(600, ge=0, description="Steps of the method after that; T in the paper.")
    batch_size: int = Field(32, ge=1, description="Labelled rows an optimiser step sees, over all processes.")
    unlabeled_batch_size: int | None = Field(
        None, ge=1, description="Unlabelled rows a step; as batch_size if left out."
    )
    optimizer: Literal["adamw", "adam", "sgd"] = Field("adamw", description="What moves the student.")
    learning_rate: float = Field(1e-5, gt=0, description="Of both phases; the paper uses 1e-5 for transformers.")
    initial_learning_rate: float | None = Field(None, gt=0, description="Of the first phase, if it is another.")
    weight_decay: float = Field(1e-4, ge=0, description="Of weights, not biases; the paper uses 1e-4.")
    initial_weight_decay: float | None = Field(None, ge=0, description="Of the first phase, if it is another.")
    momentum: float = Field(0.9, ge=0, lt=1, description="Of sgd.")
    schedule: Literal["constant", "linear", "cosine"] = Field(
        "constant", description="Of the learning rate, each phase."
    )
    warmup_steps: int = Field(0, ge=0, description="Steps over which the learning rate rises from 0, each phase.")
    clip: float | None = Field(None, gt=0, description="Longest gradient, both terms together; longer ones are scaled.")
    accumulation: int = Field(1, ge=1, description="Micro-batches a step is cut into, to save memory.")
    exact_accumulation: bool = Field(
        False,
        description="Class masses of the whole batch, not of micro-batches; costs one more forward of each model.",
    )
    precision: Literal["no", "bf16", "fp16"] = Field("no", description="Mixed precision; no is float32 throughout.")
    bucket_by_length: bool = Field(True, description="Batches of rows of like length, so that little is padding.")
    evaluate_every: int = Field(50, ge=1, description="Steps between looks at the dev set.")
    patience: int | None = Field(None, ge=1, description="Looks without a better dev score after which a phase ends.")
    checkpoint_every: int = Field(100, ge=1, description="Steps between checkpoints.")
    keep_checkpoints: int = Field(2, ge=1, description="How many of the newest to keep.")
    trace_every: int = Field(10, ge=1, description="Steps between entries of the trace.")
    predictions_at: tuple[int, ...] = Field(
        (),
        description="Steps of the second phase after which every training row's prediction is written; 0 is the start.",
    )
    trackers: tuple[Literal["tensorboard", "wandb", "mlflow"], ...] = Field(
        ("tensorboard",), description="Where curves go beside the trace."
    )
    threads: int | None = Field(
        None, ge=1, description="CPU threads a process computes with; torch's choice if left out."
    )

    @model_validator(mode="after")
    def _exact_needs_pieces(self) -> "TrainingSettings":
        if self.exact_accumulation and self.accumulation == 1:
            raise ValueError("exact_accumulation needs accumulation of 2 or more")
        return self
