"""The record of a run: `metrics.json`, typed and versioned. It is validated once, when it is read."""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from drift.errors import FileError
from drift.training.convergence import PhaseEnd
from drift.weak.diagnostics import Share, Summary

VERSION = 2  # 1: written by drift 0.1, which did not write a version

PARTS = ("dev", "test")  # what is scored

Scores = dict[str, float]


class Part(BaseModel):
    """Base of the parts of a record: an unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


class HeldOutScores(Part):
    """Scores on dev or test.

    rows: how many rows were scored. scores: one dictionary per seed. start: the same for θinit.
    model, start_model: of the model that is kept, and of the same combination of seeds at θinit.
    interval: 95 % interval of the model's accuracy, for the number of rows; None for other measures.
    baselines: of simple answers, by name, such as the majority class.
    """

    rows: int
    scores: list[Scores] = Field(min_length=1)
    start: list[Scores] | None = None
    model: Scores | None = None
    start_model: Scores | None = None
    interval: tuple[float, float] | None = None
    baselines: dict[str, Scores] = {}


class Estimate(Part):
    """Accuracy on gold labels that the predicting heads were not trained on. start: of θinit. labels: how many."""

    labels: int
    start: float
    accuracy: float
    interval: tuple[float, float]


class ClassShares(Part):
    """Class shares that pseudo-labels were balanced towards, in class order, and what they are based on.

    They are those of the kept seed, or the mean over seeds if the model is an average.
    """

    shares: list[float]
    source: str


class StartChoice(Part):
    """In how many of the seeds the start was kept in place of the game, without a dev set, and why."""

    kept_start: int
    seeds: int
    reason: str


class Budget(Part):
    """Gold labels that the run used: to train, and on dev for model selection."""

    train: int
    dev: int
    total: int


class ReliabilityBin(Part):
    """Rows of similar confidence: how many, their mean confidence, and how often they were right."""

    rows: int
    confidence: float
    accuracy: float


class Calibration(Part):
    """Expected calibration error and reliability, before and after the temperature."""

    temperature: float
    error_before: float
    error_after: float
    bins_before: list[ReliabilityBin]
    bins_after: list[ReliabilityBin]


class ChangedRow(Part):
    """An unlabelled row whose predicted class changed during the second phase. label: its true class, if known."""

    text: str
    before: str
    after: str
    label: str | None


class Changes(Part):
    """How many of the watched unlabelled rows changed class after θinit.

    known: how many of those have a known true class; right_before, right_after: how many of these were right.
    """

    watched: int
    changed: int
    known: int
    right_before: int
    right_after: int
    examples: list[ChangedRow]


class Mistake(Part):
    """A row that was classified wrongly with high confidence."""

    text: str
    label: str
    predicted: str
    confidence: float


class WeakLabelShares(Part):
    """How many rows have a weak label, and how many of those that also have a gold label are right."""

    labeled: Share
    accuracy: Share


class SourceRecord(Part):
    """A source of noisy labels.

    source: "column", "rules" or "names". coverage: rows with a vote. estimated_accuracy: of its votes, from how sources
    agree; None if nothing can be said. accuracy: on rows with a gold label. labels: votes by class.
    """

    name: str
    source: str
    coverage: Share
    estimated_accuracy: float | None = None
    accuracy: Share
    labels: dict[str, int]


class Agreement(Part):
    """How often two sources that vote on the same row agree."""

    first: str
    second: str
    agree: Share


class Disagreement(Part):
    """A row on which sources disagree. votes: by source. label: the combined one."""

    text: str
    votes: dict[str, str]
    label: str


class CaughtTexts(Part):
    """What the name of a class caught. texts: nearest to it. labeled: certain enough for a label."""

    name: str
    texts: int
    labeled: int
    examples: list[str]


class SourcesRecord(Part):
    """All sources of noisy labels. combined: how. mixture: whether groups of texts corrected the class names."""

    combined: str
    sources: list[SourceRecord]
    agreement: list[Agreement] = []
    disagreements: list[Disagreement] = []
    caught: list[CaughtTexts] = []
    mixture: bool | None = None


class SourceChange(Part):
    """The share of a source's votes that the start and the result agree with, on the rows that are watched."""

    name: str
    start: Share
    result: Share


class TrialRecord(Part):
    """One trial of a settings search. ended: complete, pruned or diverged. looks: dev evaluations."""

    settings: Scores
    dev: float | None
    ended: str
    steps: int
    looks: int


class Tuning(Part):
    """A settings search on dev: its cost, the settings it chose, and every trial."""

    trials: int
    pruned: int
    diverged: int
    steps: int
    dev_looks: int
    dev_labels: int
    settings: Scores
    dev: float
    tried: list[TrialRecord]


class Int8(Part):
    """The ONNX file in int8 beside the one in float32, on some rows of a part: size in MB, and accuracy of both.

    agreement: rows with the same class. kept: the file is in the folder. Accuracies are None without labels.
    """

    part: str
    rows: int
    agreement: float
    accuracy: float | None
    float32_accuracy: float | None
    megabytes: float
    float32_megabytes: float
    kept: bool


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
    phases: list[PhaseEnd] = []
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
    notes: list[str] = []

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
