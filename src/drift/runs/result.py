"""The result of a run: the trained model and its record."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.files import atomic_folder
from drift.data.table_formats import first_line
from drift.errors import DriftError
from drift.tasks import Task
from drift.tasks.explaining import Explanation, LabeledRows
from drift.tasks.parts import Sample, Trained
from drift.tasks.record import RunRecord
from drift.tasks.record_parts import Int8, Tuning
from drift.tasks.standalone import FILE
from drift.training.evaluation import Score
from drift.training.progress import progress
from drift.training.run_folder import CONFIG, ENVIRONMENT, METRICS, RunFolder

BY_REFERENCE = (
    "the folder names its encoder instead of holding a copy, and has no model.onnx: --self-contained stores both,"
    " --onnx only the latter"
)
LABELED = "labeled.safetensors"  # beside the model: who shares the model shares no texts
MODEL, ONNX, INT8, REPORT = "model", "model.onnx", "model_int8.onnx", "report.html"
COMPARED, AGREEMENT = 300, 0.97  # rows on which both files are compared; the share with equal classes that is enough


@dataclass(repr=False)
class Run:
    """A trained model and its record.

    model: the trained model. record: scores, label budget and notes, typed. task: the class of the task.
    path: the folder of the run, if it has one. labeled: rows that it was trained on; read from the folder if None.
    """

    model: Any
    record: Any
    task: type[Task]
    path: Path | None = None
    labeled: LabeledRows | None = None

    def __repr__(self) -> str:
        """One line: task, method, classes, score and folder."""
        record = self.record
        parts = [record.task, record.method, f"{len(record.classes)} classes"]
        if (part := record.held_out) is not None:
            score = 100 * record.model_scores(part)[record.measure]
            rows = f"{record.scores_on(part).rows:,} {part} {record.unit}"
            parts.append(f"{record.measures[record.measure]} {score:.1f} % on {rows}")
        elif record.estimate is not None:
            parts.append(f"estimated accuracy {100 * record.estimate.accuracy:.1f} %")
        return f"Run({', '.join(parts)}{'' if self.path is None else f', {str(self.path)!r}'})"

    @property
    def classes(self) -> list[str]:
        """Names of the classes, in the order of the columns of `predict_proba`."""
        return list(self.model.classes)

    @property
    def metrics(self) -> dict[str, Any]:
        """The record as plain data: what `metrics.json` holds."""
        return dict(self.record.content())

    @property
    def notes(self) -> list[str]:
        """What a user should know about the data and the run."""
        return list(self.record.notes)

    def predict_proba(self, rows: Any) -> Any:
        """Probability of each class: `(n, C)` for texts or nodes of a `Graph`; one `(words, C)` per sentence."""
        return self.model.predict_proba(rows)

    def predict(self, rows: Any) -> list[Any]:
        """The most likely class of each text or node, or the tags of each sentence, given as a list of words."""
        return list(self.model.predict(rows))

    def explain(self, rows: Sequence[Any], *, words: int = 5, nearest: int = 3) -> list[Explanation]:
        """Why each text gets its label: the words without which it is less likely, and the nearest labelled rows.

        Costs one prediction per word. words, nearest: how many of each.
        """
        return list(self.task.explain(self.trained(), rows, words, nearest))

    def trained(self) -> Trained:
        """The model with what its task needs to use it on new data."""
        if self.labeled is None and self.path is not None and (self.path / LABELED).is_file():
            self.labeled = LabeledRows.load(self.path / LABELED)
        has_config = self.path is not None and (self.path / CONFIG).exists()  # a copied model may come without it
        if self.path is None or not has_config:
            return Trained(self.model, self.record, {}, self.labeled)
        from drift.runs.record import read_settings  # late: it imports this module

        config = read_settings(RunFolder(self.path), self.task).model_dump(mode="json")
        return Trained(self.model, self.record, config, self.labeled)

    def save(
        self,
        folder: RunFolder,
        *,
        onnx: bool | None = None,
        quiet: bool = True,
        sample: Callable[[int], Sample | None] = lambda most: None,
        page: bool = True,
    ) -> None:
        """Write model, ONNX files, record and page into the run's folder.

        onnx: None writes them unless the model refers to an encoder, which they would contain.
        sample: gives rows on which the file in int8 is compared with that in float32; without rows, there is only one.
        page: False leaves the page out; `write_report` writes it later.
        """
        from drift.runs.report import write_report  # late: it draws, and it imports this module

        self.path = folder.path
        if onnx is None and getattr(self.model, "by_reference", False):
            onnx = False
            self.record.notes.append(BY_REFERENCE)
        onnx = onnx is not False
        with progress("Writing model and page", 3, shown=not quiet) as tick:
            with atomic_folder(folder.path / MODEL) as aside:
                self.model.save(aside)
                tick("as ONNX" if onnx else "")
                if onnx:
                    self._export(aside / ONNX, sample)
                self._write_script(aside)
                self._write_card(aside, folder)
            tick("the page")
            if self.labeled is not None:
                self.labeled.save(folder.path / LABELED)
            folder.write_json(METRICS, self.record.content())
            if page:
                write_report(folder.path, task=self.task)
            tick()

    def _write_script(self, folder: Path) -> None:
        """Write `use.py`, if the model can be used without this package."""
        onnx = ONNX if (folder / ONNX).is_file() else None
        script = self.task.standalone(self.model, self.record, onnx)
        if script is not None:
            (folder / FILE).write_text(script, encoding="utf-8")

    def _write_card(self, model: Path, folder: RunFolder) -> None:
        from drift.runs.card import CARD, card

        made = folder.read_json(ENVIRONMENT) if (folder.path / ENVIRONMENT).is_file() else {}
        names = {file.name for file in model.iterdir()}
        config = self.trained().config
        (model / CARD).write_text(card(self.task, self.record, config, made, names), encoding="utf-8")

    def _export(self, file: Path, sample: Callable[[int], Sample | None]) -> None:
        """Write the ONNX file. If that fails, a note says so: the model is trained and worth keeping."""
        kind = self.task.kinds[self.record.kind]
        if not kind.exports_onnx:
            self.record.notes.extend([kind.no_onnx] if kind.no_onnx else [])
            return
        try:
            self.model.export_onnx(file)
            if (rows := sample(COMPARED)) is not None:
                self._export_int8(file, rows)
        except (DriftError, RuntimeError) as error:  # ours, and those of torch's exporter
            missing = INT8 if file.exists() else ONNX
            self.record.notes.append(f"warning: no {missing} ({first_line(error)})")

    def _export_int8(self, file: Path, sample: Sample) -> None:
        """Write the file in int8, compare it, and remove it if it answers differently too often."""
        target = file.with_name(INT8)
        whole, small = (p.argmax(-1) for p in self.model.export_int8(file, target, sample.rows))
        known = sample.codes >= 0
        right = [float((found == sample.codes)[known].mean()) if known.any() else None for found in (small, whole)]
        agreement = float((whole == small).mean())
        megabytes = [round(each.stat().st_size / 1e6, 1) for each in (target, file)]
        kept = agreement >= AGREEMENT
        self.record.int8 = Int8(
            part=sample.part,
            rows=len(whole),
            agreement=agreement,
            accuracy=right[0],
            float32_accuracy=right[1],
            megabytes=megabytes[0],
            float32_megabytes=megabytes[1],
            kept=kept,
        )
        same = f"gives {100 * agreement:.1f} % of {len(whole):,} {sample.part} {self.record.unit} the class of {ONNX}"
        if not kept:
            target.unlink()
            self.record.notes.append(f"no {INT8}: it {same}, less than {100 * AGREEMENT:.0f} %; use {ONNX}")
            return
        scored = "" if right[0] is None else f"; accuracy there {100 * right[0]:.1f} and {100 * (right[1] or 0):.1f} %"
        self.record.notes.append(f"{INT8}, {megabytes[0]:.0f} in place of {megabytes[1]:.0f} MB, {same}{scored}")


@dataclass(frozen=True)
class Predictions:
    """Predictions of every seed on held-out rows.

    probabilities: `(seeds, n, C)`; start: the same for θinit, if there was a second phase. labels: `(n,)`.
    """

    probabilities: np.ndarray
    labels: np.ndarray
    score: Score
    start: np.ndarray | None = None

    def score_of(self, probabilities: np.ndarray) -> Any:
        """The scores of other probabilities of the same rows, `(n, C)`."""
        return self.score(probabilities, self.labels)


def add_search(run: Run, search: Mapping[str, Any]) -> Run:
    """Add the result of a search of settings to a run's record. search: its `account`, and a `note` that sums it up."""
    record: RunRecord = run.record
    record.tuning = Tuning.model_validate(search["account"])
    record.notes.append(search["note"])
    return run
