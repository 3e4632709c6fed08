"""What came of a run: the classifier, its scores with their spread, and what a reader must know to judge them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.budget import LabelBudget
from drift.data.files import atomic_folder
from drift.data.table_formats import first_line
from drift.errors import DriftError
from drift.tasks.base import Task
from drift.tasks.calibration import fit_temperature
from drift.tasks.judging import changes
from drift.tasks.nodes.model import NodeModel
from drift.tasks.text.model import TextModel
from drift.tasks.tokens.model import TokenModel
from drift.training.evaluation import Score
from drift.training.progress import progress
from drift.training.run_folder import METRICS, RunFolder
from drift.training.trainer import Outcome

Model = TextModel | TokenModel | NodeModel

MODEL, ONNX, REPORT = "model", "model.onnx", "report.html"


@dataclass
class Run:
    """A trained classifier and its account. metrics: what `metrics.json` holds."""

    model: Model
    metrics: dict[str, Any]
    path: Path | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        return self.model.classes

    def predict_proba(self, rows: Any) -> Any:
        """Probability of each class: of texts, or the nodes of a `Graph`, `(n, C)`; of sentences `(words, C)` each."""
        return self.model.predict_proba(rows)

    def predict(self, rows: Any) -> list[Any]:
        """The most likely class of each text or node, or the tags of the words of each sentence, a list of words."""
        found = self.predict_proba(rows)
        if isinstance(self.model, TokenModel):
            return [self.model.tags(probabilities) for probabilities in found]
        return [self.classes[code] for code in found.argmax(-1)]

    def save(self, folder: RunFolder, *, onnx: bool = True, quiet: bool = True) -> None:
        """Write model, ONNX file, metrics and the page about them into the run's folder; seconds, so with a bar."""
        from drift.runs.report import write_report  # imported late: it draws, and it knows this module

        self.path = folder.path
        with progress("Writing model and page", 3, shown=not quiet) as tick:
            with atomic_folder(folder.path / MODEL) as aside:
                self.model.save(aside)
                tick("as ONNX" if onnx else "")
                if onnx:
                    self._export(aside / ONNX)
            tick("the page")
            folder.write_json(METRICS, {**self.metrics, "notes": self.notes})
            write_report(folder.path)
            tick()

    def _export(self, file: Path) -> None:
        """Write the ONNX file; where that cannot be, a note says so, for the model is trained and worth keeping."""
        if self.model.kind in ("textcnn", "vampire"):
            name = "TextCNN" if self.model.kind == "textcnn" else "VAMPIRE"
            self.notes.append(f"no model.onnx: {name} reads words by a list of its own, which ONNX does not hold")
            return
        if not isinstance(self.model, TextModel):  # a tagger's folder is in Hugging Face form, which others export
            return
        from drift.models.onnx_export import export_classifier

        try:
            export_classifier(self.model.module, self.model.tokenizer, file, temperature=self.model.temperature)
        except (DriftError, RuntimeError) as error:  # of ours, and of torch's exporter
            self.notes.append(f"warning: no model.onnx ({first_line(error)})")


@dataclass(frozen=True)
class Predictions:
    """What every seed says of held-out rows. probabilities: `(seeds, n, C)`; labels: `(n,)`."""

    probabilities: np.ndarray
    labels: np.ndarray
    score: Score


def account(
    task: Task, budget: LabelBudget, outcome: Outcome, predictions: Mapping[str, Predictions], chosen: int, model: Model
) -> Run:
    """Scores of every seed, the calibration of the one that is kept, and the budget.

    predictions: of dev and test, where there are such. chosen: the place of the seed that is kept.
    """
    has_dev = "dev" in predictions
    metrics: dict[str, Any] = {
        "task": task.config.task,
        "unit": task.unit,
        "measures": task.measures,
        "method": task.config.method_name,
        "model": task.config.model.name,
        "kind": task.kind,
        **task.facts(),
        "label_budget": {"train": budget.train, "dev": budget.dev, "total": budget.total},
        "seeds": list(task.seeds),
        "kept_seed": task.seeds[chosen],
        "kept_because": "best on dev" if has_dev else "first: there is no dev set to choose by",
        "steps": outcome.steps,
        "seconds": round(outcome.seconds, 1),
        "start_on_dev": outcome.start,
        "best_steps": outcome.best_steps,
    }
    for name, found in predictions.items():
        scores = [found.score(trial, found.labels) for trial in found.probabilities]
        metrics[name] = {"rows": len(found.labels), "scores": scores}
    if has_dev:
        dev = predictions["dev"]
        model = model.calibrated(fit_temperature(dev.probabilities[chosen], dev.labels))
    where = "test" if "test" in predictions else "dev"
    if where in predictions:
        metrics |= task.judge(where, predictions[where].probabilities[chosen], model)
    if outcome.flips is not None:
        metrics["changes"] = changes(outcome.flips.of_trial(chosen), metrics["classes"], task.shown)
    return Run(model, metrics, notes=[*task.notes(), *_alike(metrics, predictions)])


def _alike(metrics: Mapping[str, Any], predictions: Mapping[str, Predictions]) -> list[str]:
    """A note where seeds are many and their scores one: a spread of 0 would be taken for certainty."""
    seeds, scores = len(metrics["seeds"]), [metrics[part]["scores"] for part in predictions]
    if seeds == 1 or not scores or any(one != of_part[0] for of_part in scores for one in of_part):
        return []
    return [
        f"all {seeds} seeds have the same scores, as nothing random was left: ± 0 does not say that the score is sure,"
        " for with other rows labelled it would be another"
    ]
