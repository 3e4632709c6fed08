"""SetFit beside plain `drift fit`: the same encoder, labelled rows and test texts, one thread.

    python -m venv ENV && ENV/bin/pip install setfit pandas        # an environment of its own, without drift
    DRIFT_DATA=... ENV/bin/python benchmarks/setfit_peer.py run --encoder DIR    # adds to docs/results/setfit.jsonl
    python benchmarks/setfit_peer.py show                                        # prints the table

DIR is a folder with bge-small-en-v1.5. Draws are those of `benchmarks/default.py`, whose `render` shows the table in
docs/results/default.md. SetFit fine-tunes the encoder on pairs of the labelled texts and ignores the unlabelled ones.
Pairs are its main cost, so `num_iterations` is lower here than the 20 that SetFit's documentation suggests.
"""

import argparse
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from default_suite import Cell, Draw, draw
from recorded import RESULTS, add_line, read_lines, table

LINES, OURS = RESULTS / "setfit.jsonl", RESULTS / "default.jsonl"
CELLS = [Cell(name, skew, "per class", 10) for name, skew in (("agnews", 1), ("amazon", 10), ("imdb", 1))]
ITERATIONS = 5  # pairs of one label per labelled text, and as many pairs of two labels; SetFit's documentation has 20
MAX_LENGTH = 256  # tokens, as in `drift fit`


def encoder(folder: str, pool: str = "cls") -> Any:
    """The encoder as `drift fit` uses it: for bge, the first token; vectors of length 1."""
    import torch
    from sentence_transformers import SentenceTransformer, models

    words = models.Transformer(folder, max_seq_length=MAX_LENGTH, model_args={"dtype": torch.float32})
    pooling = models.Pooling(words.get_embedding_dimension(), pooling_mode=pool)
    return SentenceTransformer(modules=[words, pooling, models.Normalize()], device="cpu")


def measure(cell: Cell, number: int, folder: str, output: str) -> dict[str, Any]:
    """Fit SetFit on the labelled rows of one draw and score it on the test texts."""
    import torch
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score

    torch.manual_seed(number)
    tables: Draw = draw(cell, number)
    known = tables.train[tables.train["label"] != ""]
    names = sorted(set(known["label"]))
    rows = Dataset.from_dict({"text": list(known["text"]), "label": [names.index(name) for name in known["label"]]})
    model = SetFitModel(model_body=encoder(folder), model_head=LogisticRegression(max_iter=1000))
    arguments = TrainingArguments(
        output_dir=output,
        batch_size=16,
        num_epochs=1,
        num_iterations=ITERATIONS,
        seed=number,
        report_to="none",
        save_strategy="no",
        show_progress_bar=False,
    )
    began = time.perf_counter()
    Trainer(model=model, args=arguments, train_dataset=rows).train()
    trained = time.perf_counter() - began
    predicted = np.array(names)[np.asarray(model.predict(list(tables.test["text"]), batch_size=32))]
    truth = tables.test["label"].to_numpy()
    return {
        **asdict(cell),
        "draw": number,
        "num_iterations": ITERATIONS,
        "accuracy": float((predicted == truth).mean()),
        "macro_f1": float(f1_score(truth, predicted, average="macro")),
        "train_seconds": round(trained, 1),
        "predict_seconds": round(time.perf_counter() - began - trained, 1),
    }


def run(folder: str, draws: int, output: str, datasets: list[str]) -> None:
    """Measure what is missing: all cells of the first draw, then of the second."""
    done = {(line["dataset"], line["skew"], line["draw"]) for line in read_lines(LINES)}
    for number in range(draws):
        for cell in CELLS:
            if cell.dataset in datasets and (cell.dataset, cell.skew, number) not in done:
                line = measure(cell, number, folder, output)
                add_line(LINES, line)
                print(line, flush=True)


def lines_of(cell: Cell, lines: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """The lines of a cell, by draw."""
    return {line["draw"]: line for line in lines if asdict(cell).items() <= line.items()}


def section() -> list[str]:
    """The table: only draws that both have."""
    rows = []
    for cell in CELLS:
        plain, theirs = lines_of(cell, read_lines(OURS)), lines_of(cell, read_lines(LINES))
        both = sorted(plain.keys() & theirs.keys())
        if not both:
            continue
        scores = [(plain[n]["scores"]["start"], theirs[n], plain[n]["scores"]["drift fit"]) for n in both]
        means = [
            " / ".join(f"{100 * np.mean([score[key] for score in column]):.1f}" for key in ("accuracy", "macro_f1"))
            for column in zip(*scores, strict=True)
        ]
        gaps = ", ".join(f"{100 * (ours['accuracy'] - other['accuracy']):+.1f}" for _, other, ours in scores)
        seconds = [np.median([theirs[n][key] for n in both]) for key in ("train_seconds", "predict_seconds")]
        rows.append([cell.dataset, cell.skew, len(both), *means, gaps, *(f"{value:.0f}" for value in seconds)])
    headings = ["dataset", "skew", "draws", "drift fit, start", "SetFit", "drift fit", "difference, by draw"]
    return table([*headings, "SetFit, seconds to train", "seconds for the test texts"], rows) if rows else []


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "show"])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--encoder", default=str(Path(os.environ.get("DRIFT_MODELS", "."), "bge-small-en-v1.5")))
    parser.add_argument("--output", default="setfit-runs", help="folder for SetFit's own files")
    parser.add_argument("--datasets", nargs="*", default=[cell.dataset for cell in CELLS], help="default: all three")
    arguments = parser.parse_args()
    if arguments.command == "run":
        run(arguments.encoder, arguments.draws, arguments.output, arguments.datasets)
    else:
        print("\n".join(section()))
