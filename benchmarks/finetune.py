"""Accuracy against seconds: ways to train on the same labels and texts, with the same encoder and one thread.

    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/finetune.py run --cell agnews --way upper [--draw 0]
    ENV/bin/python benchmarks/finetune.py run --cell agnews --way setfit   # the environment of setfit_peer.py
    python benchmarks/finetune.py render                                   # the section in docs/results/speed.md

Cells: `agnews`, 30 labels per class and 2,500 texts, with bge-small-en-v1.5 and 2 minutes; `imdb`, 1,000 texts with the
weak labels of rules, the same encoder and 3 minutes; `agnews-l3`, the first with paraphrase-MiniLM-L3-v2 and half a
minute; `conll03`, 1,000 sentences with distant tags, granite-embedding-30m-english and 2 minutes. Ways:

    frozen    plain `drift fit`: heads on fixed vectors
    float32   `--finetune`, every layer, in float32
    bfloat16  the same in mixed precision
    upper     the upper third of the layers on stored states, in mixed precision
    lora      LoRA of rank 8 on queries and values of every layer, by the package peft, in mixed precision
    setfit    SetFit: pairs of the labelled texts, in float32; it does not use the unlabelled ones

A way gets the minutes of its cell, of CPU time from the texts to the last step, with an empty cache: `--minutes` with
another clock. Imports are not counted. Its student is copied at its start and at `MARKS`, and scored on the test texts
afterwards: accuracy, or entity F1 of tags. One line per cell, way and draw in docs/results/finetune.jsonl; lines that
exist are not measured again. Settings are the defaults; LoRA has ten times the learning rate.
"""

import argparse
import gzip
import json
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from default_suite import Cell, draw
from recorded import RESULTS, add_line, read_lines, table

LINES = RESULTS / "finetune.jsonl"
MARKS = (0.25, 0.5, 0.75)  # of the minutes, and the end
MAX_LENGTH = 256  # tokens, the default of `drift fit`
LORA = {"r": 8, "lora_alpha": 16, "lora_dropout": 0.0, "target_modules": ["query", "value"]}
WAYS = ("frozen", "float32", "bfloat16", "upper", "lora", "setfit")


@dataclass(frozen=True)
class Setting:
    """What the ways of a cell share. minutes: of CPU time. pool: of SetFit's encoder, as `drift fit` has it."""

    data: str
    encoder: str
    pool: str
    minutes: float
    task: str = "text"
    ways: tuple[str, ...] = WAYS


CELLS = {
    "agnews": Setting("agnews", "bge-small-en-v1.5", "cls", 2.0),
    "imdb": Setting("imdb", "bge-small-en-v1.5", "cls", 3.0),
    "agnews-l3": Setting("agnews", "paraphrase-MiniLM-L3-v2", "mean", 0.5),
    "conll03": Setting("conll03", "granite-embedding-30m-english", "cls", 2.0, "tokens", WAYS[:-1]),
}


def tables(data: str, number: int) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """Training and test rows of a draw, and the column with the labels to train on."""
    if data == "agnews":
        drawn = draw(Cell("agnews", 1, "per class", 30), number)
        return drawn.train, drawn.test, "label"
    parts = [_sample(data, part, rows, number) for part, rows in (("train", 1000), ("test", 500))]
    if "tokens" in parts[0]:
        return parts[0][["tokens", "weak"]], parts[1][["tokens", "labels"]], "weak"
    return parts[0][["text", "weak"]].fillna(""), parts[1][["text", "label"]], "weak"


def _sample(data: str, part: str, rows: int, number: int) -> pd.DataFrame:
    with gzip.open(Path(os.environ["DRIFT_DATA"], data, f"{part}.jsonl.gz"), "rt", encoding="utf-8") as file:
        table = pd.DataFrame(map(json.loads, file))
    return table.sample(rows, random_state=number).reset_index(drop=True)


def with_drift(setting: Setting, way: str, number: int) -> dict[str, Any]:
    """Train by a way of `drift fit`."""
    import torch
    import transformers.models.bert.modeling_bert  # noqa: F401, not counted

    import drift.tasks.text.students
    import drift.tasks.tokens.students
    import drift.training.trainer
    from drift.models.precision import chosen_mixed_precision
    from drift.runs.request import request
    from drift.runs.run import make_trainer, new_task, prepare
    from drift.training.callbacks import Callback, TrainingState
    from drift.training.devices import Accelerated
    from drift.training.evaluation import predict
    from drift.training.threads import keep_freed_memory

    keep_freed_memory()  # as the command does
    budget = 60 * setting.minutes
    train, test, label = tables(setting.data, number)
    settings: dict[str, Any] = {"training.precision": "no" if way in ("frozen", "float32") else "bf16"}
    settings |= {} if way == "frozen" else {"training.minutes": setting.minutes}
    drift.training.trainer.time = SimpleNamespace(monotonic=time.process_time)  # type: ignore[assignment]
    if way != "frozen":
        settings |= {"model.train_layers": "auto" if way == "upper" else "all"}
    if way == "lora":
        settings |= {"training.learning_rate": 1e-3}
        of_texts, of_words = drift.tasks.text.students, drift.tasks.tokens.students
        of_texts.load_classifier = _with_lora(of_texts.load_classifier, "SEQ_CLS")  # type: ignore[assignment]
        of_words.load_tagger = _with_lora(of_words.load_tagger, "TOKEN_CLS")  # type: ignore[assignment]
    columns = {"label": label} if label == "label" else {"weak": label}
    columns |= {"text": "text"} if setting.task == "text" else {}
    spec = request(
        train,
        test=test,
        model=setting.encoder,
        finetune=way != "frozen",
        seed=number,
        task=setting.task,
        **columns,
        settings=settings,
    )

    snapshots: list[dict[str, Any]] = []
    marks = MARKS if way == "frozen" else (0, *MARKS)
    began = time.process_time()

    class Copy(Callback):
        """Copies of the student at its start and at the marks."""

        def on_run_begin(self, state: TrainingState) -> None:
            if way != "frozen":
                self.take(state, 1)

        def on_step_end(self, state: TrainingState) -> None:
            seconds = time.process_time() - began
            due = sum(seconds >= mark * budget for mark in marks)
            if due > len(snapshots):
                self.take(state, due)

        def take(self, state: TrainingState, due: int) -> None:
            weights = {name: value.clone() for name, value in state.method.student.state_dict().items()}
            line = {"seconds": time.process_time() - began, "phase": state.phase, "steps": state.total_steps}
            while len(snapshots) < due:
                snapshots.append({**line, "weights": weights})

    task = new_task(spec, quiet=True)
    task.read(spec.sources)
    prepared = prepare(task)
    ready = time.process_time() - began
    machine = Accelerated(precision=chosen_mixed_precision(task.config.training.precision))
    trainer = make_trainer(task, prepared, machine=machine, callbacks=[Copy()], prepared_in=ready)
    trainer.run()
    ended = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    student = trainer.method.student
    final = {name: value.clone() for name, value in student.state_dict().items()}
    line = {"seconds": ended, "phase": "end", "steps": trainer.state.total_steps}
    held_out = prepared.test()
    assert held_out is not None
    points: dict[float, dict[str, Any]] = {}
    for each in [*snapshots, {**line, "weights": final}]:
        if each["seconds"] not in points:
            student.load_state_dict(each.pop("weights"))
            part = held_out.part
            found = predict(trainer.method, part.examples, part.rows, machine, trials=trainer.trials)
            mean = found.clamp_min(1e-30).log().mean(0) if trainer.trials else found
            scores = held_out.score(mean.softmax(-1).numpy() if trainer.trials else mean.numpy(), part.labels.numpy())
            points[each["seconds"]] = {**each, "accuracy": next(iter(scores.values()))}
    torch.set_num_threads(1)
    return {
        "prepared": ready,
        "megabytes": memory,
        "trained_weights": sum(p.numel() for p in student.parameters() if p.requires_grad),
        "points": list(points.values()),
    }


def _with_lora(load: Any, task: str) -> Any:
    from peft import LoraConfig, get_peft_model

    def loaded(*arguments: Any, **options: Any) -> tuple[Any, Any]:
        module, tokenizer = load(*arguments, **options)
        return get_peft_model(module, LoraConfig(task_type=task, **LORA)), tokenizer

    return loaded


def with_setfit(setting: Setting, number: int) -> dict[str, Any]:
    """Train by SetFit until the time is up; a head is fitted on each copy of the encoder."""
    import torch
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments
    from sklearn.linear_model import LogisticRegression
    from transformers import TrainerCallback

    from setfit_peer import encoder

    torch.manual_seed(number)
    budget = 60 * setting.minutes
    train, test, label = tables(setting.data, number)
    known = train[train[label] != ""]
    texts, names = list(known["text"]), sorted(set(known[label]))
    codes = [names.index(name) for name in known[label]]
    body = encoder(str(Path(os.environ["DRIFT_MODELS"], setting.encoder)), setting.pool)
    body.max_seq_length = MAX_LENGTH
    model = SetFitModel(model_body=body, model_head=LogisticRegression(max_iter=1000))
    snapshots: list[dict[str, Any]] = []

    class Copy(TrainerCallback):
        def on_step_end(self, arguments: Any, state: Any, control: Any, **more: Any) -> None:
            seconds = time.process_time() - began
            if sum(seconds >= mark * budget for mark in MARKS) > len(snapshots) or seconds >= budget:
                weights = {name: value.clone() for name, value in body.state_dict().items()}
                snapshots.append({"seconds": seconds, "steps": state.global_step, "weights": weights})
            control.should_training_stop = seconds >= budget

    with tempfile.TemporaryDirectory() as aside:
        arguments = TrainingArguments(
            output_dir=aside,
            batch_size=16,
            num_epochs=1,
            num_iterations=20,
            seed=number,
            report_to="none",
            save_strategy="no",
            show_progress_bar=False,
        )
        trainer = Trainer(model, arguments, train_dataset=Dataset.from_dict({"text": texts, "label": codes}))
        trainer.add_callback(Copy())
        began = time.process_time()
        trainer.train_embeddings(texts, codes, args=arguments)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    points = []
    for each in snapshots:
        body.load_state_dict(each.pop("weights"))
        at = time.process_time()
        head = LogisticRegression(max_iter=1000).fit(body.encode(texts, show_progress_bar=False), codes)
        each["seconds"] += time.process_time() - at
        predicted = np.array(names)[head.predict(body.encode(list(test["text"]), show_progress_bar=False))]
        points.append({**each, "phase": "pairs", "accuracy": float((predicted == test["label"].to_numpy()).mean())})
    return {"prepared": 0.0, "megabytes": memory, "trained_weights": None, "points": points}


def current() -> list[dict[str, Any]]:
    """Lines of today's code; earlier ones have a random last layer in the beginning."""
    return [line for line in read_lines(LINES) if "last_layer" not in line]


def run(cell: str, way: str, number: int) -> None:
    """Measure one line, if it is missing."""
    if any((line["cell"], line["way"], line["draw"]) == (cell, way, number) for line in current()):
        return
    with tempfile.TemporaryDirectory() as cache:
        os.environ["DRIFT_CACHE"] = cache
        setting = CELLS[cell]
        result = with_setfit(setting, number) if way == "setfit" else with_drift(setting, way, number)
    line = {"cell": cell, "way": way, "draw": number, "minutes": setting.minutes, **result}
    add_line(LINES, line)
    print(json.dumps(line))


def render() -> None:
    """Replace the section on fine-tuning in docs/results/speed.md, and draw the figure."""
    lines = {(line["cell"], line["way"]): line for line in current() if line["draw"] == 0}
    earlier = {(line["cell"], line["way"]): line for line in read_lines(LINES) if "last_layer" in line}
    rows = []
    for cell in CELLS:
        frozen = lines.get((cell, "frozen"))
        for way, line in _of_cell(cell, lines, earlier):
            points = line["points"]
            best = max(points, key=lambda point: point["accuracy"])
            goal = None if frozen is None else frozen["points"][-1]["accuracy"] + 0.01
            reached = [p["seconds"] for p in points if goal is not None and p["accuracy"] >= goal]
            rows.append(
                [
                    cell,
                    way,
                    f"{line['prepared']:.0f}",
                    points[-1]["steps"],
                    f"{points[-1]['seconds']:.0f}",
                    f"{100 * points[-1]['accuracy']:.1f}",
                    f"{100 * best['accuracy']:.1f} at {best['seconds']:.0f} s",
                    "" if way == "frozen" or goal is None else f"{reached[0]:.0f}" if reached else "not reached",
                ]
            )
    headings = ["data", "way", "preparation, s", "steps", "s in all", "accuracy", "best copy", "s to frozen + 1 point"]
    page = RESULTS / "speed.md"
    before, _, after = page.read_text(encoding="utf-8").partition(SECTION)
    rest = after[after.index("\n## ") :] if "\n## " in after else ""
    missing = [f"{cell} {way}" for cell in CELLS for way in CELLS[cell].ways if (cell, way) not in lines]
    absent = f"\n\nNot measured yet: {', '.join(missing)}." if missing else ""
    section = f"{SECTION}\n\n{TEXT}\n\n" + "\n".join(table(headings, rows)) + absent + f"\n\n{PICTURE}\n"
    page.write_text(before + section + rest, encoding="utf-8")
    print(section)
    draw_curves(lines)


def _of_cell(cell: str, *tables: dict[tuple[str, str], dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Ways of a cell with their lines; those of earlier code last."""
    for number, lines in enumerate(tables):
        for way in CELLS[cell].ways:
            if (cell, way) in lines:
                yield way + (", random last layer" if number else ""), lines[cell, way]


def draw_curves(lines: dict[tuple[str, str], dict[str, Any]]) -> None:
    """Accuracy of the copies against seconds, one panel per cell."""
    from matplotlib.figure import Figure

    from drift.report.figures import CLASS_COLOURS, save, style

    with style():
        figure = Figure(figsize=(4.2 * len(CELLS), 3.4), layout="constrained")
        for axis, cell in zip(figure.subplots(1, len(CELLS)), CELLS, strict=True):
            for colour, way in zip(CLASS_COLOURS, WAYS, strict=False):
                if (line := lines.get((cell, way))) is None:
                    continue
                points = line["points"][-1:] if way == "frozen" else line["points"]
                x, y = ([p["seconds"] for p in points], [100 * p["accuracy"] for p in points])
                axis.plot(x, y, "o-", color=colour, label=way, markersize=4)
                if way == "frozen":
                    axis.axhline(y[-1], color=colour, linewidth=0.8, linestyle=":")
            axis.set(xlabel="seconds of CPU time", ylabel="test accuracy (%)", title=cell)
            if axis.lines:
                axis.legend(fontsize=8)
        save(figure, RESULTS / "figures", "finetune")


SECTION = "## Fine-tuning"
PICTURE = "![Test accuracy against seconds of CPU time, one line per way to train](figures/finetune.png)"
TEXT = """\
Ways to train on the same labels with the same encoder and one thread, by `python benchmarks/finetune.py`, whose
docstring says what each way is. Each has a number of minutes of CPU time from the texts to the last step, with an empty
cache: 2 on agnews, 3 on imdb, half a minute on agnews-l3, which has an encoder of 3 layers, and 2 on conll03, whose
column "accuracy" is the entity F1. One draw of labels; 964 test texts of AG News, 500 of IMDB and 500 sentences:
differences of a point are noise. Nothing is selected on the test texts; the best copy is shown to tell a way that gets
worse with time. Ways were measured one after another on a busy machine, which slows them by different amounts. Where it
says "random last layer", earlier code began so, with a first phase on the labels and a constant rate of 1e-4
([0077](../decisions/0077-fine-tuning-begins-with-a-head.md))."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "render"])
    parser.add_argument("--cell", choices=CELLS, default="agnews")
    parser.add_argument("--way", choices=WAYS, default="upper")
    parser.add_argument("--draw", type=int, default=0)
    options = parser.parse_args()
    if options.command == "render":
        render()
    else:
        run(options.cell, options.way, options.draw)


if __name__ == "__main__":
    main()
