"""What a task is: its settings, data, models, predictions and page. One folder per task; `TASKS` lists them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import yaml

from drift.data.shares import prior_shares
from drift.data.tokenized import Progress
from drift.errors import ConfigError
from drift.methods.method import Method
from drift.quality.curves import Curve
from drift.quality.findings import TableCheck
from drift.report.page import Section
from drift.settings import Settings
from drift.tasks.config import RunConfig, without_name
from drift.tasks.explaining import Explanation, LabeledRows
from drift.tasks.parts import CheckOptions, Draw, Prepared, Representations, Sample, TableOptions, Trained, Usage
from drift.tasks.record import RunRecord
from drift.tasks.service import Service
from drift.training.flips import Flips

DEFAULTS = "defaults.yaml"  # beside the module of each task


@dataclass(frozen=True)
class Kind:
    """A kind of model that a task can train.

    name: as it is called in records, defaults and presets.
    title: for a reader, such as "a head on a fixed encoder".
    build: makes the student of a run; its arguments differ by task.
    stacked: all seeds are trained at once, as one module.
    averaged: the model to keep can be the average of all seeds: `finish` of its students accepts None for a position.
    exports_onnx: whether the trained model can be written as ONNX; no_onnx: a note that says why not.
    tip: shown after the title when a run ends.
    preset: the section of a preset that describes this kind, if the paper treats it separately.
    from_user_code: the model is built by a user's function, which must be named again to load the model.
    large: the folder of the model holds a copy of an encoder.
    """

    name: str
    title: str
    build: Callable[..., Any]
    stacked: bool = False
    averaged: bool = False
    exports_onnx: bool = False
    no_onnx: str = ""
    tip: str = ""
    preset: str | None = None
    from_user_code: bool = False
    large: bool = False


class Task(ABC):
    """One run of a task. The class describes the task; an object holds the data of one run.

    A run calls `read`, then `fingerprint` and `prepare`, trains, and then calls `facts`, `judge` and `describe` for its
    record.
    """

    name: ClassVar[str]
    unit: ClassVar[str]  # what is classified, in the plural
    title: ClassVar[str] = "Classifier"  # of a model card
    hub_task: ClassVar[str] = ""  # the name of the task on the Hugging Face Hub
    offers: ClassVar[frozenset[str]] = frozenset()  # what its data offers to methods: see `Method.needs`
    data_settings: ClassVar[type[Settings]]
    model_settings: ClassVar[type[Settings]]
    record_type: ClassVar[type[RunRecord]] = RunRecord
    kinds: ClassVar[Mapping[str, Kind]]
    usage: ClassVar[Usage]
    ask_for_scores: ClassVar[str] = "--dev or --test"  # how a user gets a score
    splits_itself: ClassVar[bool] = False  # dev and test are parts of the training source
    finetunes: ClassVar[bool] = False  # whether encoders are fine-tuned by default, on a machine without an accelerator
    explains: ClassVar[bool] = False  # whether it has `explain`
    reads_chunks: ClassVar[bool] = True  # predictions are made chunk by chunk, so that a bar can show progress

    def __init__(
        self, config: RunConfig, kind: Kind, method: type[Method], seeds: Sequence[int], progress: Progress
    ) -> None:
        self.config, self.kind, self.method, self.seeds, self.progress = config, kind, method, tuple(seeds), progress
        self.method_settings: Any = method.settings_type.read(without_name(config.method), "method")

    # The description: which models and settings there are.

    @classmethod
    @abstractmethod
    def choose_kind(cls, model: Mapping[str, Any], *, finetune: bool) -> Kind:
        """The kind of model that the settings ask for. finetune: whether to fine-tune if they leave that open."""

    @classmethod
    def defaults(cls, kind: Kind, *, weak: bool) -> dict[str, Any]:
        """The default settings for a kind of model; `weak`: for noisy labels. Read from `defaults.yaml` of the task."""
        for base in cls.__mro__:  # a subclass of a task need not have a file of its own
            package = base.__module__.rpartition(".")[0]
            if package and (file := files(package) / DEFAULTS).is_file():
                break
        else:
            raise ConfigError(f"there is no {DEFAULTS} beside {cls.__name__}; add one, or override `defaults`")
        content = yaml.safe_load(file.read_text("utf-8"))[kind.name]
        over = content.pop("weak", {})
        if weak:
            for section, values in over.items():
                content[section] = {**content.get(section, {}), **values}
        return dict(content)

    @classmethod
    def complete(cls, settings: dict[str, Any], kind: Kind) -> dict[str, Any]:
        """Settings with what follows from the kind of model; by default nothing."""
        return settings

    @classmethod
    def is_weak(cls, data: Mapping[str, Any]) -> bool:
        """Whether these settings of the data ask for weak labels."""
        return any(data.get(source) is not None for source in ("weak", "rules", "classes"))

    @classmethod
    def hint(cls, option: str) -> str:
        """Advice for a user who gave this option of `fit`, which is for other tasks; empty if there is none."""
        return ""

    @classmethod
    def scored_rows(cls, config: Mapping[str, Any], part: str, count: int) -> tuple[Any, ...]:
        """Identifies the rows of "dev" or "test": two runs with the same tuple were scored on the same rows."""
        data = config["data"]
        limit = data.get(f"{part}_rows")
        return data.get(part), limit, None if limit is None else config["training"]["seed"], count

    # A run.

    @property
    @abstractmethod
    def measures(self) -> dict[str, str]:
        """The scores that are shown, with their titles; model selection uses the first."""

    @abstractmethod
    def read(self, sources: Mapping[str, Any]) -> None:
        """Read all data. sources: train, unlabeled, dev and test, as paths or objects."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A hash of the data that was read: other rows or labels give another."""

    @abstractmethod
    def prepare(self) -> Prepared:
        """Build the student and its training data."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Fields of the record about the data: at least classes, weak and training_rows."""

    @abstractmethod
    def judge(self, part: str, probabilities: np.ndarray, model: Any) -> dict[str, Any]:
        """Fields of the record about the kept model on dev or test. probabilities: `(n, C)`, before the temperature."""

    def model_name(self, model: Any) -> str:
        """The name of the student's model in the record. model: the kept one. Default: the name in the settings."""
        return str(self.config.model.name)

    def baselines(self, part: str) -> dict[str, np.ndarray]:
        """Simple answers on dev or test by name, to compare the model with: probabilities `(n, C)`. Default: none."""
        return {}

    def refine(self, part: str, probabilities: np.ndarray, score: Callable[[np.ndarray], Any]) -> np.ndarray:
        """What the model to keep answers on dev or test, if it uses more than the trained student. Dev comes first.

        probabilities: of the student, `(seeds, n, C)`. score: of the probabilities of one seed, `(n, C)`.
        """
        return probabilities

    def refined_model(self, model: Any) -> Any:
        """The model to keep with what `refine` adds, from the model that `Prepared.finish` made. Default: unchanged."""
        return model

    def judge_flips(self, flips: Flips) -> dict[str, Any]:
        """Fields of the record about what the second phase changed on watched rows. flips: of the kept trial."""
        return {}

    @abstractmethod
    def describe(self, target: int) -> str:
        """Describe a training row, word or node for a reader. target: its number."""

    @abstractmethod
    def notes(self) -> list[str]:
        """What a user should know about the data, such as guessed columns and overlaps."""

    def sample(self, most: int) -> Sample | None:
        """Rows on which two forms of a model are compared, at most so many. Default: none, so there is one form."""
        return None

    @property
    def same_labels(self) -> bool:
        """Whether all seeds are trained with the same labels. If not, each seed simulates another user's labels."""
        return getattr(self.config.data, "labels_per_class", None) is None

    def labeled_rows(self, model: Any) -> LabeledRows | None:
        """Rows that were trained on, with vectors by the kept model, for explanations. Default: none."""
        return None

    def use_classes(self, classes: Sequence[str]) -> None:
        """Check the method's prior against the classes. A prior of shares becomes a tuple in class order."""
        prior = getattr(self.method_settings, "prior", None)
        if prior is not None and not isinstance(prior, str):
            shares = prior_shares(prior, classes, name="method.prior")
            self.method_settings = self.method_settings.model_copy(update={"prior": shares})

    def use_fewer_seeds(self, fitting: int) -> None:
        """Train so many seeds at most, and at least one, unless the settings say how many."""
        if self.config.seeds == "auto":
            self.seeds = self.seeds[: max(1, fitting)]

    # A trained model.

    @staticmethod
    @abstractmethod
    def load_model(folder: Path) -> Any:
        """Open a trained model. If its kind has `from_user_code`, the model has a method `made_by(name)`."""

    @staticmethod
    @abstractmethod
    def predict_chunks(run: Trained, source: Any, out: str | Path | None, options: TableOptions) -> Iterator[list[Any]]:
        """Predict a table chunk by chunk: yields the labels of each, after writing them to `out` if that is given."""

    @staticmethod
    @abstractmethod
    def evaluate(run: Trained, source: Any, options: TableOptions) -> dict[str, Any]:
        """Scores on the labelled rows of a table: `rows`, `labeled_rows`, and scores between 0 and 1."""

    @classmethod
    def explain(cls, run: Trained, rows: Sequence[Any], words: int, nearest: int) -> list[Explanation]:
        """Why each row gets its prediction: its words that matter most, and the nearest labelled rows."""
        raise ConfigError(f"predictions of --task {cls.name} cannot be explained; give a run on texts")

    @classmethod
    def explain_table(cls, run: Trained, source: Any, count: int, options: TableOptions) -> list[Explanation]:
        """The same for rows of a table, which are drawn at random from its beginning."""
        return cls.explain(run, [], 0, 0)

    @classmethod
    def service(cls, run: Trained, onnx: Path | None) -> Service:
        """Predictions for single requests. onnx: a file of the run to use instead of torch, if it has one."""
        raise ConfigError(
            f"runs of --task {cls.name} cannot be served row by row; predict whole files with drift predict"
        )

    @classmethod
    def representations(cls, run: Trained) -> Representations:
        """Learned vectors of the run's data, for a picture."""
        raise ConfigError(f"runs of --task {cls.name} have no representations to draw; give runs on a graph")

    @classmethod
    def suggest(cls, run: Trained, source: Any, n: int, out: Any, options: TableOptions) -> list[Any]:
        """Rows of a table that are most worth labelling."""
        raise ConfigError(f"rows cannot be suggested by a run of --task {cls.name}; give the folder of a run on texts")

    # A table, before any run.

    @classmethod
    def check(cls, source: Any, options: CheckOptions) -> TableCheck:
        """What is suspicious in a table, such as labels that are probably wrong."""
        raise ConfigError(f"tables of --task {cls.name} cannot be checked; give --task text or tokens")

    @classmethod
    def curve(cls, source: Any, options: CheckOptions) -> Curve:
        """Accuracy against the number of labels of a table."""
        raise ConfigError(f"curves are not drawn for --task {cls.name}; give a table of texts")

    # The page.

    @staticmethod
    def result_sections(record: Any, draw: Draw) -> list[Section]:
        """Sections about the results, after the learning curves."""
        return []

    @staticmethod
    def weak_label_sections(record: Any) -> list[Section]:
        """Sections about the weak labels, if there were any."""
        return []

    @staticmethod
    def source_tables(record: Any) -> list[tuple[list[str], list[list[str]]]]:
        """Tables about the sources of weak labels that the terminal shows: headings and rows."""
        return []

    @staticmethod
    def example_sections(record: Any) -> list[Section]:
        """Sections with examples, such as mistakes."""
        return []

    @staticmethod
    def standalone(model: Any, record: Any, onnx: str | None) -> str | None:
        """A Python file for the model's folder that uses it without this package; None if there is none.

        onnx: the name of the ONNX file in the folder, if it has one.
        """
        return None

    @staticmethod
    def service_lines(record: Any, config: Mapping[str, Any], model: Path, onnx: Path) -> list[str]:
        """Python code that uses the ONNX file without this package; empty if there is none."""
        return []
