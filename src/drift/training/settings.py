"""Settings of training."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from drift.settings import Settings

MOST_ROWS = 1_000_000_000  # in one optimizer step; graphs are trained on all nodes at once


class TrainingSettings(Settings):
    """Both phases, the optimizer, evaluation and checkpoints."""

    seed: int = Field(
        0,
        ge=0,
        description="Random seed of weights, batches and dropout; with one thread, the same seed gives the same bits.",
    )
    until: Literal["converged", "steps"] = Field(
        "steps",
        description="When a phase ends: after initial_steps and steps, or when it has converged; these are then the"
        " maxima.",
    )
    initial_steps: int = Field(
        300, ge=0, description="Steps of the first phase, on labelled or weakly labelled rows, which finds the start."
    )
    steps: int = Field(600, ge=0, description="Steps of the second phase, by the method; T in the paper.")
    window: int = Field(
        50,
        ge=1,
        description="Convergence: steps over which the loss of the first phase is averaged, and between checks of the"
        " second phase.",
    )
    tolerance: float = Field(
        0.01,
        ge=0,
        lt=1,
        description="Convergence: a phase has converged when, twice in a row, the mean loss of a window falls by less"
        " than this part of the first loss, or the predicted classes drift by no more than this share.",
    )
    return_to_start: bool = Field(
        True, description="Without a dev set, return to the start if the second phase was unstable or did harm."
    )
    keep_weak_labels: bool = Field(
        False,
        description="Learn from weak labels in the second phase, too. The paper uses them only to initialise the"
        " model.",
    )
    minutes: float | None = Field(
        None,
        gt=0,
        description="Minutes for preparing the data and training; of those left for training, at most half are for the"
        " first phase. Default: no limit.",
    )
    batch_size: int = Field(32, ge=1, le=MOST_ROWS, description="Labelled rows per optimizer step, over all processes.")
    unlabeled_batch_size: int | None = Field(
        None, ge=1, le=MOST_ROWS, description="Unlabelled rows per optimizer step; default: batch_size."
    )
    optimizer: Literal["adamw", "adam", "sgd"] = Field("adamw", description="The optimizer of the student.")
    learning_rate: float = Field(
        1e-5, gt=0, description="Learning rate of both phases; the paper uses 1e-5 for transformers."
    )
    initial_learning_rate: float | None = Field(
        None, gt=0, description="Learning rate of the first phase; default: learning_rate."
    )
    weight_decay: float = Field(
        1e-4,
        ge=0,
        description="Weight decay, not of biases; the paper uses 1e-4. Heads on a fixed encoder with C > 20 classes get"
        " 20 / C of it.",
    )
    initial_weight_decay: float | None = Field(
        None, ge=0, description="Weight decay of the first phase; default: weight_decay."
    )
    momentum: float = Field(0.9, ge=0, lt=1, description="Momentum of sgd.")
    schedule: Literal["constant", "linear", "cosine"] = Field(
        "constant", description="Schedule of the learning rate in each phase."
    )
    warmup_steps: int = Field(
        0, ge=0, description="Steps over which the learning rate rises from 0, at the beginning of each phase."
    )
    clip: float | None = Field(
        None, gt=0, description="Maximum gradient norm (leader + interaction); default: no limit."
    )
    accumulation: int = Field(1, ge=1, le=MOST_ROWS, description="Micro-batches per step; more of them save memory.")
    exact_accumulation: bool = Field(
        False,
        description="Compute class masses over the whole batch instead of per micro-batch; costs one more forward of"
        " each model.",
    )
    precision: Literal["no", "bf16", "fp16", "auto"] = Field(
        "no",
        description="Mixed precision; no is float32 throughout; auto: bf16 where the processor or GPU computes it, else"
        " no. Parameters and the teacher's average are float32 in either case.",
    )
    bucket_by_length: bool = Field(True, description="Make batches of rows of similar length, which reduces padding.")
    evaluate_every: int = Field(50, ge=1, description="Steps between dev evaluations.")
    patience: int | None = Field(
        None, ge=1, description="End a phase after this many dev evaluations without improvement; default: never."
    )
    checkpoint_every: int = Field(100, ge=1, description="Steps between checkpoints.")
    keep_checkpoints: int = Field(2, ge=1, description="Number of checkpoints to keep.")
    trace_every: int = Field(10, ge=1, description="Steps between entries of the trace.")
    predictions_at: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        (),
        description="Steps of the second phase after which the predictions of all training rows are written; 0 is the"
        " start.",
    )
    trackers: tuple[Literal["tensorboard", "wandb", "mlflow"], ...] = Field(
        (), description="Experiment trackers that also receive the trace; each is a package of its own."
    )
    threads: int | None = Field(None, ge=1, le=1024, description="CPU threads per process; default: torch's choice.")

    @model_validator(mode="after")
    def _exact_needs_pieces(self) -> "TrainingSettings":
        if self.exact_accumulation and self.accumulation == 1:
            raise ValueError("exact_accumulation needs accumulation of 2 or more")
        return self

    @model_validator(mode="after")
    def _predictions_are_made(self) -> "TrainingSettings":
        if late := [step for step in self.predictions_at if step > self.steps]:
            raise ValueError(f"predictions_at has {late[0]}, but training.steps is {self.steps}; give steps up to that")
        return self
