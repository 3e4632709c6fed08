"""The parts of a run's record, as data: scores, budget, calibration, sources of labels, changes."""

from pydantic import BaseModel, ConfigDict, Field

from drift.weak.diagnostics import Share

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
