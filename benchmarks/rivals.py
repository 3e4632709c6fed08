"""Other tools on the rows that DRIFT gets: scikit-learn's classifiers on the same vectors, SetFit on the same encoder.

    DRIFT_DATA=... python benchmarks/rivals.py run scikit-learn
    DRIFT_DATA=... python benchmarks/rivals.py run setfit --python VENV/bin/python [--labels 30]
    python benchmarks/rivals.py table

`run` adds a line a tool, number of labels and seed to docs/results/rivals.jsonl and skips those that are there; `table`
writes docs/results/rivals.md from them and from those of `benchmarks/text.py run frozen`. SetFit has an environment of
its own, for it may need other versions: `python -m venv VENV`, `VENV/bin/pip install setfit 'transformers<5'`.
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
from drift.models.encoders import encoder_path
from drift.runs.comparing.statistics import paired_t
from drift.runs.config import resolve
from drift.tasks.scoring import mean_and_spread
from drift.tasks.text.data import TextData, read_text_data
from drift.tasks.text.students import scaling
from recorded import RESULTS, add_line, read_lines

LINES, TABLE, OUR_LINES = RESULTS / "rivals.jsonl", RESULTS / "rivals.md", RESULTS / "text.jsonl"
LABELS = (30, 10)  # a class
SEEDS = {"scikit-learn": range(10), "setfit": range(3)}
OURS = {"supervised": "DRIFT's start", "self-training": "DRIFT's Self-training", "drift": "DRIFT"}

CONFIG = resolve(
    kind="frozen",
    weak=False,
    preset_name=None,
    profile="laptop",
    # As in benchmarks/text.py.
    layers=[{"data": {"text": "text", "label": "label", "train_rows": 15000, "dev_rows": 500, "test_rows": 4000}}],
)
STRENGTHS = (0.001, 0.01, 0.1, 1.0)
NEIGHBORS = (7, 20, 50)
STEPS, BATCH = 300, 16

Missing = Callable[[str, int, int], bool]  # whether tool, labels and seed have no line yet


def logistic(C: float = 1.0) -> LogisticRegression:
    return LogisticRegression(C=C, max_iter=1000)  # the default of 100 may end before it converges


CLASSIFIERS: dict[str, list[Any]] = {  # of several, the best on dev is scored
    "LogisticRegression": [logistic()],
    "LogisticRegression, C by dev": [logistic(C) for C in STRENGTHS],
    "SelfTrainingClassifier": [SelfTrainingClassifier(logistic())],
    "SelfTrainingClassifier, C by dev": [SelfTrainingClassifier(logistic(C)) for C in STRENGTHS],
    "LabelSpreading, neighbours by dev": [LabelSpreading(kernel="knn", n_neighbors=n) for n in NEIGHBORS],
}
NOTES = f"""\
AG News, 15,000 training rows of which some have labels, 4,000 test rows; one encoder, all-MiniLM-L6-v2, for all tools.
Test accuracy, mean ± standard deviation over seeds. Differences are paired, over the seeds that both have, with their
standard error and the p-value of a t-test; win, tie and loss are DRIFT's, at the level of 0.05.

- LogisticRegression, SelfTrainingClassifier and LabelSpreading are scikit-learn's, on the vectors that DRIFT's heads
  are trained on. Settings are its defaults but for max_iter = 1000, and for what is chosen on dev, seed by seed: C of
  {", ".join(map(str, STRENGTHS))}; neighbours of {", ".join(map(str, NEIGHBORS))}. LabelSpreading has the knn kernel,
  for its default, rbf, would hold 15,000 x 15,000 numbers.
- C = 0.0001 was added afterwards for one seed, 0 with 30 labels a class: dev chose it, and test went from 85.63 to
  83.28 for SelfTrainingClassifier, from 83.40 to 83.28 for LogisticRegression. The table has the first values alone.
- SetFit fine-tunes the encoder for {STEPS} steps of {BATCH} pairs, reads as many tokens of a text as the others, and
  has its defaults otherwise. One epoch of its own would be 675 steps with 30 labels a class, 75 with 10.
- DRIFT, its start and its Self-training choose the step to keep on dev. LogisticRegression, SetFit and the start learn
  from labelled rows alone, the others from all 15,000.
- Seconds of other tools are processor time of one thread from vectors, for SetFit from texts, to test predictions; what
  is chosen on dev counts every candidate. Embedding is in none of scikit-learn's. Those of DRIFT's rows are a tenth of
  the elapsed time of a fit of ten seeds, which embeds the texts only if it is the first to need them.

`python benchmarks/rivals.py run scikit-learn|setfit`, then `table`.
"""


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
                    trains_on_dev = [each.score(x_dev, data.dev.codes) for each in fitted] if len(fitted) > 1 else [0]
                    found = fitted[int(np.argmax(trains_on_dev))].predict(x_test)
                yield {
                    "tool": tool,
                    "labels": labels,
                    "seed": seed,
                    "accuracy": float(np.mean(found == data.test.codes)),
                    "budget": {"train": len(rows), "dev": len(x_dev) if len(fitted) > 1 else 0},
                    "cpu_seconds": round(time.process_time() - began, 1),
                    "version": sklearn.__version__,
                }


def vectors(data: TextData) -> list[np.ndarray]:
    """Of train, dev and test, standardised by those of train, as DRIFT's heads get them."""
    model = CONFIG.model
    found = [
        embed(part["text"], model.name, max_length=model.max_length, pool=model.pool)
        for part in (data.texts, data.dev.texts, data.test.texts)
    ]
    mean, scale = scaling(found[0])
    return [(x - mean) / scale for x in found]


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
    """What `setfit_worker` answers, run by a Python that has SetFit and need not have DRIFT."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "job.json").write_text(json.dumps(job), encoding="utf-8")
        program = f"{inspect.getsource(setfit_worker)}\nsetfit_worker()"
        environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        python = os.path.abspath(python)  # not resolved: an environment's python is a link to one without its packages
        subprocess.run([python, "-c", program], cwd=folder, env=environment, check=True)
        return json.loads(Path(folder, "answer.json").read_text(encoding="utf-8"))


def setfit_worker() -> None:
    """Train on job.json and write answer.json: the classes of the test texts, and the processor time it took."""
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
    """A line a seed, of DRIFT and its own baselines too."""
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
    """All tools beside each other, and DRIFT against each of them."""
    table = [
        "# DRIFT beside other tools",
        "",
        NOTES,
        "| labels a class | tool | labels to train + dev | seeds | accuracy | DRIFT - it | p | | seconds a seed |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for labels in sorted(LABELS):
        tools = lines_by_tool(labels)
        ours = {line["seed"]: line["accuracy"] for line in tools["DRIFT"]}
        for tool, seeds in tools.items():
            if len(seeds) < 2:
                continue
            scores = [line["accuracy"] for line in seeds]
            test = paired_t([ours[line["seed"]] for line in seeds], scores)
            against = "| | |" if tool == "DRIFT" else f"{test.gap()} | {test.p_text()} | {test.verdict()} |"
            budget, seconds = seeds[0]["budget"], np.mean([line["seconds"] for line in seeds])
            table.append(
                f"| {labels} | {tool} | {budget['train']} + {budget['dev']} | {len(seeds)} |"
                f" {mean_and_spread(scores)} | {against} {seconds:.1f} |"
            )
    TABLE.write_text("\n".join(table) + "\n", encoding="utf-8")
    print("\n".join(table))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("package", choices=list(SEEDS))
    runs.add_argument("--python", help="of the environment that has SetFit")
    runs.add_argument("--labels", type=int, choices=LABELS, help="a class; both if left out")
    commands.add_parser("table")
    options = parser.parse_args()
    if options.command == "table":
        write_table()
        return
    if options.package == "setfit" and options.python is None:
        parser.error("SetFit needs --python, the python of an environment that has it")
    there = {(line["tool"], line["labels"], line["seed"]) for line in read_lines(LINES)}

    def missing(tool: str, labels: int, seed: int) -> bool:
        return (tool, labels, seed) not in there and options.labels in (None, labels)

    data = read_data()
    setfit = options.package == "setfit"
    for line in run_setfit(data, missing, options.python) if setfit else run_scikit(data, missing):
        add_line(LINES, line)
        print(*line.values(), flush=True)


if __name__ == "__main__":
    main()
