"""What came of a run: the classifier, its scores with their spread, and what a reader must know to judge them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.budget import LabelBudget
from drift.data.files import whole_folder
from drift.data.table_formats import first_line
from drift.errors import ConfigError
from drift.models.text_model import TextModel
from drift.runs.config import RunConfig
from drift.runs.judging import judge, weak_label_shares
from drift.runs.text_data import TextData
from drift.tasks.calibration import fit_temperature
from drift.tasks.scoring import classification_scores
from drift.training.run_folder import METRICS, RunFolder
from drift.training.trainer import Outcome

MODEL, ONNX = "model", "model.onnx"


@dataclass
class Run:
    """A trained classifier and its account. metrics: what `metrics.json` holds."""

    model: TextModel
    metrics: dict[str, Any]
    path: Path | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        return self.model.classes

    def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
        """Probability of each class, `(n, C)`."""
        return self.model.predict_proba(texts)

    def predict(self, texts: Sequence[str]) -> list[str]:
        """The most likely class of each text."""
        return [self.classes[code] for code in self.predict_proba(texts).argmax(-1)]

    def save(self, folder: RunFolder, *, onnx: bool = True) -> None:
        """Write model, ONNX file, metrics and the page about them into the run's folder."""
        from drift.runs.report import write_report  # imported late: it draws, and it knows this module

        self.path = folder.path
        with whole_folder(folder.path / MODEL) as aside:
            self.model.save(aside)
            if onnx:
                self._export(aside / ONNX)
        folder.write_json(METRICS, {**self.metrics, "notes": self.notes})
        write_report(folder.path)

    def _export(self, file: Path) -> None:
        """Write the ONNX file; where that cannot be, a note says so, for the model is trained and worth keeping."""
        if self.model.kind == "textcnn":
            self.notes.append("no model.onnx: TextCNN reads words by a list of its own, which ONNX does not hold")
            return
        from drift.models.onnx_export import export_classifier

        try:
            export_classifier(self.model.module, self.model.tokenizer, file, temperature=self.model.temperature)
        except (ConfigError, RuntimeError) as error:  # of ours, and of torch's exporter
            self.notes.append(f"warning: no model.onnx ({first_line(error)})")


def account(
    config: RunConfig,
    kind: str,
    data: TextData,
    budget: LabelBudget,
    outcome: Outcome,
    predictions: Mapping[str, tuple[np.ndarray, np.ndarray]],
    seeds: Sequence[int],
    chosen: int,
    model: TextModel,
) -> Run:
    """Scores of every seed, the calibration of the one that is kept, and the budget.

    predictions: for dev and test, probabilities `(seeds, n, C)` and labels `(n,)`.
    """
    metrics: dict[str, Any] = {
        "method": config.method_name,
        "model": config.model.name,
        "kind": kind,
        "classes": data.classes,
        "weak": data.weak is not None,
        "label_budget": {"train": budget.train, "dev": budget.dev, "total": budget.total},
        "training_rows": len(data.gold),
        "seeds": list(seeds),
        "kept_seed": seeds[chosen],
        "kept_because": "best on dev" if data.dev is not None else "first: there is no dev set to choose by",
        "steps": outcome.steps,
        "seconds": round(outcome.seconds, 1),
        "start_on_dev": outcome.start,
        "best_steps": outcome.best_steps,
    }
    for name, (probabilities, labels) in predictions.items():
        metrics[name] = {
            "rows": len(labels),
            "scores": [classification_scores(trial, labels) for trial in probabilities],
        }
    if data.weak is not None:
        metrics["weak_labels"] = weak_label_shares(data.weak, data.gold)
    if data.rules is not None:
        metrics["rules"] = asdict(data.rules)
    if "dev" in predictions:
        probabilities, labels = predictions["dev"]
        model = model.calibrated(fit_temperature(probabilities[chosen], labels))
    judged, where = (data.dev, "dev") if data.test is None else (data.test, "test")
    if judged is not None:
        metrics |= judge(judged, predictions[where][0][chosen], model.temperature, data.classes)
    return Run(model, metrics, notes=list(data.notes) + _prior_notes(config, data))


def _prior_notes(config: RunConfig, data: TextData) -> list[str]:
    """A warning where labels are skewed and class mass would balance them."""
    codes = data.gold if data.weak is None else data.weak
    counts = np.bincount(codes[codes >= 0], minlength=len(data.classes))
    shares = counts / counts.sum()
    balanced = config.method.get("class_mass") and config.method.get("prior") is None
    if not balanced or config.data.labels_per_class is not None or shares.max() < 2 * shares.min():
        return []
    told = ", ".join(f"{name} {100 * share:.0f} %" for name, share in zip(data.classes, shares, strict=True))
    return [
        f"warning: classes are skewed ({told}) and pseudo-labels are balanced evenly; if the unlabelled rows are skewed"
        " alike, set method.prior to these shares, or method.class_mass=false"
    ]
