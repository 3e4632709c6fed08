"""The record of a run: `metrics.json`, typed and versioned. It is validated once, when it is read."""

from typing import Any, Literal, Self

from pydantic import Field, ValidationError

from drift.errors import FileError
from drift.tasks.record_parts import (
    Budget,
    Calibration,
    Changes,
    ClassShares,
    Estimate,
    HeldOutScores,
    Int8,
    Mistake,
    Part,
    Scores,
    SourceChange,
    SourcesRecord,
    StartChoice,
    Tuning,
    WeakLabelShares,
)
from drift.training.convergence import PhaseEnd
from drift.weak.diagnostics import Summary

VERSION = 2  # 1: written by drift 0.1, which did not write a version

PARTS = ("dev", "test")  # what is scored


class RunRecord(Part):
    """The fields that every run records. Tasks add theirs in a subclass.

    unit: what is classified, in the plural. measures: the scores that are shown, with their titles; model selection
    uses the first. start_on_dev: scores of θinit. kept_seed: the seed whose model is in the folder; if `averaged`, the
    first of all seeds, whose average is in the folder. phases: why each phase ended, and after how many steps.
    estimate: cross-fitted accuracy, if labels were left out in turn. precision: number format in which the student was
    trained; its parameters are float32 in any case. peak_memory: of the process, in GB.
    """

    version: int = 1
    task: str
    unit: str
    measures: dict[str, str] = Field(min_length=1)
    method: str
    model: str
    kind: str
    classes: list[str]
    weak: bool
    training_rows: int
    label_budget: Budget
    seeds: list[int] = Field(min_length=1)
    kept_seed: int
    kept_because: str
    averaged: bool = False
    steps: int
    seconds: float
    precision: Literal["float32", "bfloat16", "float16"] | None = None
    peak_memory: float | None = None
    phases: list[PhaseEnd] = Field(default_factory=list)
    start_on_dev: list[Scores] | None
    best_steps: list[int] | None
    dev: HeldOutScores | None = None
    test: HeldOutScores | None = None
    calibration: Calibration | None = None
    class_shares: ClassShares | None = None
    choice: StartChoice | None = None
    estimate: Estimate | None = None
    changes: Changes | None = None
    tuning: Tuning | None = None
    int8: Int8 | None = None
    notes: list[str] = Field(default_factory=list)

    @classmethod
    def read(cls, content: Any, where: str) -> Self:
        """Validate the content of a `metrics.json`. where: the file, for messages."""
        version = content.get("version", 1) if isinstance(content, dict) else 1
        if isinstance(version, int) and version > VERSION:
            raise FileError(f"{where} has version {version}; this drift reads up to {VERSION}: install a newer one")
        try:
            record = cls.model_validate(content)
        except ValidationError as error:
            raise FileError(f"{where} is damaged: {first_fault(error)}; copy the run's folder again") from None
        if faults := record.faults():
            raise FileError(f"{where} is damaged: {faults[0]}; copy the run's folder again")
        return record

    def faults(self) -> list[str]:
        """Fields that contradict each other, such as lists of different lengths. Subclasses add their own checks."""
        faults = []
        if self.kept_seed not in self.seeds:
            faults.append(f"kept_seed: {self.kept_seed} is not one of the seeds")
        by_seed = {} if self.start_on_dev is None else {"start_on_dev": self.start_on_dev}
        scored = {part: found for part in PARTS if (found := self.scores_on(part)) is not None}
        by_seed |= {f"{part}.scores": each.scores for part, each in scored.items()}
        by_seed |= {f"{part}.start": each.start for part, each in scored.items() if each.start is not None}
        for name, scores in by_seed.items():
            lacking = [measure for measure in self.measures for seed in scores if measure not in seed]
            faults += [f"{name}: a seed has no {lacking[0]}"] if lacking else []
        lengths = {name: len(scores) for name, scores in by_seed.items()}
        lengths |= {} if self.best_steps is None else {"best_steps": len(self.best_steps)}
        faults += [
            f"{name}: {length} entries for {len(self.seeds)} seeds"
            for name, length in lengths.items()
            if length != len(self.seeds)
        ]
        return faults

    def content(self) -> dict[str, Any]:
        """What `metrics.json` holds: only the fields that were set."""
        return self.model_dump(mode="json", exclude_unset=True)

    @property
    def kept(self) -> int:
        """Position of the kept seed among the seeds."""
        return self.seeds.index(self.kept_seed)

    @property
    def measure(self) -> str:
        """The score that model selection uses."""
        return next(iter(self.measures))

    @property
    def held_out(self) -> str | None:
        """The part that results are reported on: "test", else "dev", else None."""
        return "test" if self.test is not None else "dev" if self.dev is not None else None

    def scores_on(self, part: str) -> HeldOutScores | None:
        """Scores on "dev" or "test"."""
        scores: HeldOutScores | None = getattr(self, part)
        return scores

    def model_scores(self, part: str) -> Scores | None:
        """Scores of the kept model on "dev" or "test"; None if there was no such part."""
        scores = self.scores_on(part)
        if scores is None or scores.model is not None:
            return None if scores is None else scores.model
        return scores.scores[self.kept]  # written before models could be averages


def first_fault(error: ValidationError) -> str:
    """The first fault that pydantic found, and how many more there are, on one line."""
    fault = error.errors()[0]
    field = ".".join(map(str, fault["loc"])) or "it"
    more = f" (and {error.error_count() - 1} more faults)" if error.error_count() > 1 else ""
    return f"{field}: {fault['msg'][:1].lower()}{fault['msg'][1:]}{more}"


class ClassRecord(RunRecord):
    """The record of a run that gives one class to each row. confusion: counts by true and predicted class."""

    confusion: list[list[int]] | None = None
    mistakes: list[Mistake] | None = None
    weak_labels: WeakLabelShares | None = None
    rules: Summary | None = None
    sources: SourcesRecord | None = None
    source_changes: list[SourceChange] | None = None

    def faults(self) -> list[str]:
        faults = super().faults()
        if self.held_out is not None:
            required = {"confusion": self.confusion, "calibration": self.calibration}
            missing = [name for name, value in required.items() if value is None]
            faults += [f"{name}: field required, as there are scores" for name in missing]
        return faults + self.shape_faults("confusion", self.confusion)

    def shape_faults(self, name: str, counts: list[list[int]] | None) -> list[str]:
        """Faults of a matrix of counts from class to class. name: the field."""
        sizes = set() if counts is None else {len(counts), *map(len, counts)}
        return [f"{name}: not {len(self.classes)} rows and columns"] if sizes - {len(self.classes)} else []
