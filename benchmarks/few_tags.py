"""Few tagged sentences and no dictionary: start, self-training and `drift fit`, beside spaCy on the same sentences.

    python -m venv ENV && ENV/bin/pip install spacy              # an environment of its own, without drift
    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/few_tags.py run --spacy ENV/bin/python
    python benchmarks/few_tags.py render

`run` adds one line per dataset, number of sentences, row and seed to docs/results/few_tags.jsonl and skips those that
exist. Tagged sentences are drawn by seed; UNLABELED other training sentences are unlabelled. Rows: `drift`, the plain
command with fewer steps, with its start; `self-training`, the same with `--method self-training`; `spacy`. Nothing is
selected by the test scores. `render` writes the table in docs/results/taggers.md.
"""

import argparse
import gzip
import json
import os
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from drift.data.tags import spans_of, tags_of
from drift.runs.fit import fit
from drift.tasks.tokens.tagging import Tagging
from recorded import RESULTS, add_line, read_lines, table

LINES = RESULTS / "few_tags.jsonl"
CELLS, SIZES, ROWS = ("conll03", "mitr"), (50, 200), ("spacy", "drift", "self-training")
EPOCHS = 100  # of spaCy
UNLABELED = 1000  # sentences
STEPS = {"training.initial_steps": 150, "training.steps": 100}  # the defaults are 400 and 300
HEADINGS = ["data", "tagged sentences", "spaCy", "start", "self-training", "DRIFT", "minutes of DRIFT"]
TEXT = """\

## Few tagged sentences

Test F1 in % with gold tags of a few sentences, no dictionary and no dev set; {unlabeled:,} other training sentences are
unlabelled. Made by `python benchmarks/few_tags.py`. DRIFT is the plain command, except that it has fewer steps:
{steps}. Self-training is the same with `--method self-training`;
both begin with the start. spaCy is a blank English pipeline that is trained for {epochs} epochs on the same sentences,
without an encoder that was trained elsewhere, which is the main difference. Seed 0 only; "-" was not measured.

"""


def rows_of(cell: str, part: str) -> list[dict[str, Any]]:
    path = Path(os.environ["DRIFT_DATA"]) / cell / f"{part}.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [{name: row[name] for name in ("tokens", "labels")} for row in map(json.loads, file)]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def as_iob2(tags: list[str], plain: bool) -> list[str]:
    """The tags as IOB2; plain: they are names of slots."""
    return tags_of(spans_of(tags, "IO"), len(tags)) if plain else tags


def peer_environment() -> dict[str, str]:
    """The variables of this process without its modules."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def run_spacy(python: str, cell: str, chosen: list[dict[str, Any]], aside: Path, seed: int) -> dict[str, Any]:
    plain = cell == "mitr"
    test = rows_of(cell, "test")
    train_rows = [{**row, "labels": as_iob2(row["labels"], plain)} for row in chosen]
    train, held_out, out = write(aside / "few.jsonl", train_rows), write(aside / "test.jsonl", test), aside / "out.json"
    script = Path(__file__).with_name("spacy_peer.py")
    arguments: list[Any] = [
        "--train",
        train,
        "--test",
        held_out,
        "--out",
        out,
        "--epochs",
        str(EPOCHS),
        "--seed",
        str(seed),
    ]
    subprocess.run([python, script, *arguments], check=True, env=peer_environment())
    answer = json.loads(out.read_text(encoding="utf-8"))
    tags = [[tag[2:] if plain and tag != "O" else tag for tag in sentence] for sentence in answer["tags"]]
    classes = sorted({tag for row in test for tag in row["labels"]} | {tag for each in tags for tag in each})
    code_of = {tag: code for code, tag in enumerate(classes)}
    labels, predicted = (
        np.array([code_of[tag] for sentence in sentences for tag in sentence])
        for sentences in ([row["labels"] for row in test], tags)
    )
    sizes = np.array([len(row["tokens"]) for row in test])
    return {"result": Tagging(classes, sizes, not plain).scores(predicted, labels)["f1"], "seconds": answer["seconds"]}


def run_ours(cell: str, chosen: list[int], size: int, row: str, aside: Path, seed: int) -> dict[str, Any]:
    rows = rows_of(cell, "train")
    table = [rows[number] for number in chosen[:size]] + [{**rows[number], "labels": None} for number in chosen[size:]]
    test = Path(os.environ["DRIFT_DATA"]) / cell / "test.jsonl.gz"
    method: dict[str, Any] = {} if row == "drift" else {"method": row}
    train = write(aside / "train.jsonl", table)
    done = fit(train, task="tokens", label="labels", test=test, settings=STEPS, seed=seed, quiet=True, **method)
    scores = done.metrics["test"]
    start = None if scores.get("start") is None else scores["start"][0]["f1"]
    phases = [str(end) for end in done.record.phases]
    return {"result": scores["model"]["f1"], "start": start, "phases": phases, "unlabeled": UNLABELED, "steps": STEPS}


def run(options: argparse.Namespace) -> None:
    done = {(line["cell"], line["size"], line["row"], line["seed"]) for line in read_lines(LINES)}
    for size in SIZES:
        for cell in options.cells.split(","):
            for row in options.rows.split(","):
                key = {"cell": cell, "size": size, "row": row, "seed": options.seed}
                if tuple(key.values()) in done or (row == "spacy" and options.spacy is None):
                    continue
                began, rows = time.monotonic(), rows_of(cell, "train")
                numbers = np.random.default_rng(options.seed).permutation(len(rows))[: size + UNLABELED].tolist()
                with TemporaryDirectory() as aside:
                    if row == "spacy":
                        chosen = [rows[number] for number in numbers[:size]]
                        line = run_spacy(options.spacy, cell, chosen, Path(aside), options.seed)
                    else:
                        line = run_ours(cell, numbers, size, row, Path(aside), options.seed)
                line = {**key, **line, "minutes": round((time.monotonic() - began) / 60, 1)}
                add_line(LINES, line)
                print(line, flush=True)


def few_tags_section() -> str:
    """The part of docs/results/taggers.md about few tags; empty without measurements."""
    lines = {(line["cell"], line["size"], line["row"]): line for line in read_lines(LINES) if line["seed"] == 0}
    if not lines:
        return ""

    def cell_of(name: str, size: int, row: str, field: str = "result") -> str:
        value = lines.get((name, size, row), {}).get(field)
        return "-" if value is None else f"{value:.1f}" if field == "minutes" else f"{100 * value:.2f}"

    rows = [
        [
            name,
            str(size),
            cell_of(name, size, "spacy"),
            cell_of(name, size, "drift", "start"),
            cell_of(name, size, "self-training"),
            cell_of(name, size, "drift"),
            cell_of(name, size, "drift", "minutes"),
        ]
        for name in CELLS
        for size in SIZES
    ]
    steps = " and ".join(f"`{name}={count}`" for name, count in STEPS.items())
    return TEXT.format(steps=steps, epochs=EPOCHS, unlabeled=UNLABELED) + "\n".join(table(HEADINGS, rows)) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "render"])
    parser.add_argument("--cells", default=",".join(CELLS))
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--spacy", help="Python of an environment with spacy.")
    options = parser.parse_args()
    if options.what == "run":
        run(options)
        return
    from taggers import render

    render()


if __name__ == "__main__":
    main()
