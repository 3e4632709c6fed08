"""The end of a run's page: how to use the classifier, and what it would take to make it again."""

import shlex
from collections.abc import Mapping
from typing import Any

from drift.models.text_model import ENCODER
from drift.report.page import Section, Table
from drift.runs.result import MODEL, ONNX
from drift.training.run_folder import CONFIG, ENVIRONMENT, RunFolder

KINDS = {
    "frozen": "a head on a fixed encoder",
    "finetuned": "an encoder that was trained whole",
    "textcnn": "a TextCNN",
    "gcn": "a graph convolutional network",
    "grand": "GRAND, a graph random neural network",
}


def how_to_use(folder: RunFolder, metrics: Mapping[str, Any], config: Mapping[str, Any]) -> list[Section]:
    """On the command line, in Python, and, where the run has an ONNX file, in a program without torch."""
    run, model, kind = shlex.quote(str(folder.path)), folder.path / MODEL, metrics["kind"]
    commands = [
        f"drift predict {run} new.csv -o labelled.csv",
        f"drift evaluate {run} labelled.csv",
        f"drift suggest {run} unlabelled.csv -n 50 -o to-label.csv",
    ]
    python = [
        "import drift",
        f"run = drift.load({str(folder.path)!r})",
        'run.predict(["a text"])        # the names of classes',
        'run.predict_proba(["a text"])  # (n, C), in the order of run.classes',
    ]
    sections = [
        Section("How to use it", commands=commands),
        Section("In Python", [f"The model is {KINDS[kind]}: {metrics['model']}."], commands=python),
    ]
    if (model / ONNX).exists():
        tokenizer = model / ENCODER if kind == "frozen" else model
        length = config["model"]["max_length"]
        served = [
            "import onnxruntime",
            "from transformers import AutoTokenizer",
            "",
            f"CLASSES = {metrics['classes']!r}",
            f"tokenizer = AutoTokenizer.from_pretrained({str(tokenizer)!r})",
            f"session = onnxruntime.InferenceSession({str(model / ONNX)!r})",
            "",
            "def classify(texts):",
            f'    tokens = tokenizer(texts, truncation=True, max_length={length}, padding=True, return_tensors="np")',
            '    inputs = {name: tokens[name].astype("int64") for name in ("input_ids", "attention_mask")}',
            "    (probabilities,) = session.run(None, inputs)",
            "    return [dict(zip(CLASSES, row.tolist())) for row in probabilities]",
        ]
        sections.append(Section("In a service, without torch", commands=served))
    return sections


def where_it_came_from(folder: RunFolder) -> list[Section]:
    """Every setting, the command, the commit and the versions."""
    made = folder.read_json(ENVIRONMENT)
    rows = [
        ["command", shlex.join(made["command"])],
        ["commit", made["git_commit"] or "not in a git repository"],
        ["python", made["python"]],
        ["platform", made["platform"]],
        *([name, version] for name, version in made["packages"].items()),
    ]
    settings = (folder.path / CONFIG).read_text(encoding="utf-8")
    return [
        Section("Settings", ["All of them, as they were resolved."], commands=[settings]),
        Section("Where it came from", tables=[Table(["what", "which"], rows)]),
    ]
