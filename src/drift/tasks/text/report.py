"""Sections of the page about a text classifier: mistakes, weak labels, and code that serves the model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drift.report.page import Section, Table
from drift.tasks.standalone import quoted
from drift.tasks.text.model import ENCODER
from drift.tasks.text.record import TextRecord
from drift.tasks.text.source_report import source_sections
from drift.tasks.text.students import FROZEN
from drift.weak.diagnostics import table as rule_table


def mistake_sections(record: TextRecord) -> list[Section]:
    """Rows that were classified wrongly with high confidence."""
    mistakes = record.mistakes
    if not mistakes:
        return []
    text = (
        f"The {len(mistakes)} misclassified {record.held_out} rows with the highest confidence. Some of their labels"
        " may be wrong."
    )
    rows = [[each.text, each.label, each.predicted, f"{100 * each.confidence:.0f} %"] for each in mistakes]
    headings = ["text", "true class", "predicted as", "confidence"]
    return [Section("Confident mistakes", [text], [Table(headings, rows)])]


def weak_label_sections(record: TextRecord) -> list[Section]:
    """Coverage and accuracy of the weak labels, and of each rule."""
    shares = record.weak_labels
    if shares is None:
        return []
    text = [f"{shares.labeled} {record.unit} have a weak label. Weak labels are used only to initialise the model."]
    if shares.accuracy.of:
        text.append(f"Right: {shares.accuracy} that also have a gold label. Nothing was selected by this.")
    tables = []
    if record.rules is not None:
        caption = f"Coverage, overlap and conflict are shares of {record.rules.coverage.of:,} texts"
        tables = [Table(*rule_table(record.rules), caption)]
    return [Section("Weak labels", text, tables), *source_sections(record)]


def service_lines(record: TextRecord, config: Mapping[str, Any], model: Path, onnx: Path) -> list[str]:
    """Python code that classifies texts with the ONNX file, without torch or this package."""
    tokenizer = model / ENCODER if record.kind == FROZEN.name else model
    length = config["model"]["max_length"]
    return [
        "import onnxruntime",
        "from transformers import AutoTokenizer",
        "",
        f"CLASSES = {record.classes!r}",
        f"tokenizer = AutoTokenizer.from_pretrained({quoted(tokenizer)})",
        f"session = onnxruntime.InferenceSession({quoted(onnx)})",
        "",
        "",
        "def classify(texts):",
        f'    tokens = tokenizer(texts, truncation=True, max_length={length}, padding=True, return_tensors="np")',
        '    inputs = {name: tokens[name].astype("int64") for name in ("input_ids", "attention_mask")}',
        "    (probabilities,) = session.run(None, inputs)",
        "    return [dict(zip(CLASSES, row.tolist())) for row in probabilities]",
    ]
