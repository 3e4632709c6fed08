"""Other tools on the same rows as DRIFT: scikit-learn's classifiers on the same vectors, SetFit with the same encoder.

    DRIFT_DATA=... python benchmarks/rivals.py run scikit-learn
    DRIFT_DATA=... python benchmarks/rivals.py run setfit --python VENV/bin/python [--labels 30]
    python benchmarks/rivals.py table

`run` adds one line per tool, number of labels and seed to docs/results/rivals.jsonl and skips those that exist. `table`
updates the table in docs/results/rivals.md, from these lines and from those of `benchmarks/text.py run frozen`. SetFit
needs its own environment, because it may need other versions: `python -m venv VENV`,
`VENV/bin/pip install setfit 'transformers<5'`.
"""

import argparse
import inspect
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from threadpoolctl import threadpool_limits

from drift.data.labels import UNLABELED
from drift.models.embedding import embed
from drift.models.locating import encoder_path
from drift.runs.comparing.statistics import paired_t
from drift.runs.spec import RunSpec
from drift.tasks.heads import scaling
from drift.tasks.scoring import mean_and_spread
from drift.tasks.text.data import TextData, read_text_data
from recorded import RESULTS, add_line, read_lines, replace_tables, table

LINES, PAGE, OUR_LINES = RESULTS / "rivals.jsonl", RESULTS / "rivals.md", RESULTS / "text.jsonl"
LABELS = (30, 10)  # per class
SEEDS = {"scikit-learn": range(10), "setfit": range(3)}
OURS = {"supervised": "DRIFT's start", "self-training": "DRIFT's Self-training", "drift": "DRIFT"}

CONFIG = RunSpec.resolve(
    # As in benchmarks/text.py.
    [{"data": {"text": "text", "label": "label", "train_rows": 15000, "dev_rows": 500, "test_rows": 4000}}],
    finetune=False,
).config
STRENGTHS = (0.001, 0.01, 0.1, 1.0)
NEIGHBORS = (7, 20, 50)
STEPS, BATCH = 300, 16

Missing = Callable[[str, int, int], bool]  # whether tool, labels and seed have no line yet


def logistic(C: float = 1.0) -> LogisticRegression:
    return LogisticRegression(C=C, max_iter=1000)  # the default of 100 may not be enough to converge


CLASSIFIERS: dict[str, list[Any]] = {  # of several, the best on dev is scored
    "LogisticRegression": [logistic()],
    "LogisticRegression, C by dev": [logistic(C) for C in STRENGTHS],
    "SelfTrainingClassifier": [SelfTrainingClassifier(logistic())],
    "SelfTrainingClassifier, C by dev": [SelfTrainingClassifier(logistic(C)) for C in STRENGTHS],
    "LabelSpreading, neighbours by dev": [LabelSpreading(kernel="knn", n_neighbors=n) for n in NEIGHBORS],
}
HEADINGS = [
    *(
        "labels per class",
        "tool",
        "labels to train + dev",
        "seeds",
        "accuracy",
        "DRIFT - it",
        "p",
        "",
        "seconds per seed",
    ),
]


def read_data() -> TextData:
    folder = Path(os.environ["DRIFT_DATA"]) / "agnews"
    return read_text_data(CONFIG.data, {part: folder / f"{part}.jsonl.gz" for part in ("train", "dev", "test")}, seed=0)


def run_scikit(data: TextData, missing: Missing) -> Iterator[dict[str, Any]]:
    x, x_dev, x_test = vectors(data)
    for labels in LABELS:
        for seed in SEEDS["scikit-learn"]:
            rows = data.labeled_rows(labels, seed)
            y = np.full(len(x), UNLABELED)
            y[rows] = data.gold[rows]
            for tool, candidates in CLASSIFIERS.items():
                if not missing(tool, labels, seed):
                    continue
                seen = rows if isinstance(candidates[0], LogisticRegression) else slice(None)
                began = time.process_time()
                with threadpool_limits(1):
                    fitted = [candidate.fit(x[seen], y[seen]) for candidate in candidates]
                    dev_scores = [model.score(x_dev, data.dev.codes) for model in fitted] if len(fitted) > 1 else [0]
                    predicted = fitted[int(np.argmax(dev_scores))].predict(x_test)
                yield {
                    "tool": tool,
                    "labels": labels,
                    "seed": seed,
                    "accuracy": float(np.mean(predicted == data.test.codes)),
                    "budget": {"train": len(rows), "dev": len(x_dev) if len(fitted) > 1 else 0},
                    "cpu_seconds": round(time.process_time() - began, 1),
                    "version": sklearn.__version__,
                }


def vectors(data: TextData) -> list[np.ndarray]:
    """Vectors of train, dev and test, standardised by train, as for DRIFT's heads."""
    model = CONFIG.model
    unscaled = [
        embed(part["text"], model.name, max_length=model.max_length, pool=model.pool)
        for part in (data.texts, data.dev.texts, data.test.texts)
    ]
    mean, scale = scaling(unscaled[0])
    return [(x - mean) / scale for x in unscaled]


def run_setfit(data: TextData, missing: Missing, python: str) -> Iterator[dict[str, Any]]:
    for labels in LABELS:
        for seed in SEEDS["setfit"]:
            if not missing("SetFit", labels, seed):
                continue
            rows = data.labeled_rows(labels, seed)
            job = {
                "encoder": encoder_path(CONFIG.model.name),
                "max_length": CONFIG.model.max_length,
                "texts": list(data.texts.select(rows)["text"]),
                "labels": data.gold[rows].tolist(),
                "test": list(data.test.texts["text"]),
                "training": {"seed": seed, "max_steps": STEPS, "batch_size": BATCH},
            }
            answer = in_another_python(python, job)
            yield {
                "tool": "SetFit",
                "labels": labels,
                "seed": seed,
                "accuracy": float(np.mean(np.array(answer["classes"]) == data.test.codes)),
                "budget": {"train": len(rows), "dev": 0},
                "cpu_seconds": round(answer["cpu_seconds"], 1),
                "version": answer["version"],
            }


def in_another_python(python: str, job: dict[str, Any]) -> dict[str, Any]:
    """Run `setfit_worker` with a Python that has SetFit (DRIFT is not needed there), and return its answer."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "job.json").write_text(json.dumps(job), encoding="utf-8")
        program = f"{inspect.getsource(setfit_worker)}\nsetfit_worker()"
        environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        python = os.path.abspath(python)  # links are not resolved: the target does not see the environment's packages
        subprocess.run([python, "-c", program], cwd=folder, env=environment, check=True)
        return json.loads(Path(folder, "answer.json").read_text(encoding="utf-8"))


def setfit_worker() -> None:
    """Train on job.json and write answer.json: the classes of the test texts, and the processor time."""
    import json
    import time
    from pathlib import Path

    import datasets
    import setfit

    job = json.loads(Path("job.json").read_text(encoding="utf-8"))
    began = time.process_time()
    model = setfit.SetFitModel.from_pretrained(job["encoder"])
    model.model_body.max_seq_length = job["max_length"]
    settings = setfit.TrainingArguments(save_strategy="no", report_to="none", **job["training"])
    labeled = datasets.Dataset.from_dict({"text": job["texts"], "label": job["labels"]})
    setfit.Trainer(model=model, args=settings, train_dataset=labeled).train()
    classes = [int(label) for label in model.predict(job["test"])]
    answer = {"classes": classes, "cpu_seconds": time.process_time() - began, "version": setfit.__version__}
    Path("answer.json").write_text(json.dumps(answer), encoding="utf-8")


def lines_by_tool(labels: int) -> dict[str, list[dict[str, Any]]]:
    """One line per seed for every tool, including DRIFT and its baselines."""
    tools: dict[str, list[dict[str, Any]]] = {}
    for line in read_lines(OUR_LINES):
        if (line["kind"], line["cell"]) == ("frozen", f"agnews-{labels}"):
            shared = {"budget": line["budget"], "seconds": line["seconds"] / len(line["accuracy"])}
            tools[OURS[line["method"]]] = [
                {"seed": seed, "accuracy": accuracy, **shared} for seed, accuracy in enumerate(line["accuracy"])
            ]
    for line in read_lines(LINES):
        if line["labels"] == labels:
            tools.setdefault(line["tool"], []).append({**line, "seconds": line["cpu_seconds"]})
    return tools


def write_table() -> None:
    """All tools, and DRIFT against each of them."""
    rows = []
    for labels in sorted(LABELS):
        tools = lines_by_tool(labels)
        ours = {line["seed"]: line["accuracy"] for line in tools["DRIFT"]}
        for tool, seeds in tools.items():
            if len(seeds) < 2:
                continue
            scores = [line["accuracy"] for line in seeds]
            test = paired_t([ours[line["seed"]] for line in seeds], scores)
            tested = ["", "", ""] if tool == "DRIFT" else [test.gap(), test.p_text(), test.verdict()]
            budget, seconds = seeds[0]["budget"], np.mean([line["seconds"] for line in seeds])
            row = [labels, tool, f"{budget['train']} + {budget['dev']}", len(seeds), mean_and_spread(scores)]
            rows.append([*row, *tested, f"{seconds:.1f}"])
    replace_tables(PAGE, table(HEADINGS, rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("package", choices=list(SEEDS))
    runs.add_argument("--python", help="python of the environment that has SetFit")
    runs.add_argument("--labels", type=int, choices=LABELS, help="labels per class (default: both)")
    commands.add_parser("table")
    options = parser.parse_args()
    if options.command == "table":
        write_table()
        return
    if options.package == "setfit" and options.python is None:
        parser.error("SetFit needs --python, the python of an environment that has it")
    done = {(line["tool"], line["labels"], line["seed"]) for line in read_lines(LINES)}

    def missing(tool: str, labels: int, seed: int) -> bool:
        return (tool, labels, seed) not in done and options.labels in (None, labels)

    data = read_data()
    setfit = options.package == "setfit"
    for line in run_setfit(data, missing, options.python) if setfit else run_scikit(data, missing):
        add_line(LINES, line)
        print(*line.values(), flush=True)


if __name__ == "__main__":
    main()
