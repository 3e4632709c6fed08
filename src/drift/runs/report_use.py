"""The end of a run's page: how to use the classifier, and what it would take to make it again."""

import shlex
from collections.abc import Mapping
from typing import Any

from drift.report.page import Section, Table
from drift.runs.result import MODEL, ONNX
from drift.tasks.text.model import ENCODER
from drift.training.run_folder import CONFIG, ENVIRONMENT, RunFolder

KINDS = {
    "frozen": "a head on a fixed encoder",
    "finetuned": "an encoder that was trained whole",
    "textcnn": "a TextCNN",
    "vampire": "a linear classifier on word vectors and the states of VAMPIRE",
    "gcn": "a graph convolutional network",
    "sampled": "a graph convolutional network, trained on drawn neighbours",
    "grand": "GRAND, a graph random neural network",
    "factory": "one of your own making",
}


# By task: after `drift` on the command line, and after `drift.load` in Python.
USES: dict[str, tuple[list[str], list[str]]] = {
    "text": (
        [
            "predict RUN new.csv -o predicted.csv",
            "evaluate RUN labelled.csv",
            "suggest RUN unlabelled.csv -n 50 -o to-label.csv",
        ],
        [
            'run.predict(["a text"])        # the names of classes',
            'run.predict_proba(["a text"])  # (n, C), in the order of run.classes',
        ],
    ),
    "tokens": (
        ["predict RUN new.jsonl -o tagged.jsonl", "evaluate RUN tagged_by_hand.jsonl"],
        [
            'run.predict([["Ann", "left", "Bern"]])  # a list of tags for each sentence',
            "# Without this package: transformers.pipeline('token-classification', model=..., the folder `model`)",
        ],
    ),
    "nodes": (
        ["predict RUN GRAPH -o predicted.csv"],
        ["drift.predict(run, graph)  # the class of every node: of a named graph, a file, or a PyG Data"],
    ),
}


def how_to_use(folder: RunFolder, metrics: Mapping[str, Any], config: Mapping[str, Any]) -> list[Section]:
    """On the command line, in Python, and, where the run has an ONNX file, in a program without torch."""
    run, model, kind = shlex.quote(str(folder.path)), folder.path / MODEL, metrics["kind"]
    if not model.exists():
        again = [f"drift fit --config {shlex.quote(str(folder.path / CONFIG))} -o NEW"]
        return [Section("How to use it", ["The model was not kept. This makes it again:"], commands=again)]
    commands, python = USES[metrics["task"]]
    commands = [f"drift {command}".replace("RUN", run) for command in commands]
    opened = f"run = drift.load({str(folder.path)!r})"
    if kind == "factory":  # no code is imported that is not named
        commands = [f"{command} --model {shlex.quote(metrics['model'])}" for command in commands]
        opened = f"run = drift.load({str(folder.path)!r}, model={metrics['model']!r})"
    python = ["import drift", opened, *python]
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
