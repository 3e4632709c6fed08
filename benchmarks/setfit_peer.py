"""SetFit beside plain `drift fit`: the same encoder, labelled rows and test texts, one thread.

    python -m venv ENV && ENV/bin/pip install setfit pandas        # an environment of its own, without drift
    DRIFT_DATA=... ENV/bin/python benchmarks/setfit_peer.py run --encoder DIR    # adds to docs/results/setfit.jsonl
    python benchmarks/setfit_peer.py render                                      # writes docs/results/setfit.md

DIR is a folder with bge-small-en-v1.5. Draws are those of `benchmarks/default.py`, whose lines are read for the page.
SetFit fine-tunes the encoder on pairs of the labelled texts and ignores the unlabelled ones. Pairs are its main cost,
so `num_iterations` is lower here than the 20 that SetFit's documentation suggests; the page gives the value.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from default_suite import Cell, Draw, draw
from recorded import RESULTS, add_line, read_lines, table

LINES, PAGE, OURS = RESULTS / "setfit.jsonl", RESULTS / "setfit.md", RESULTS / "default.jsonl"
CELLS = [Cell(name, 1, "per class", 10) for name in ("agnews", "amazon", "imdb")]
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
        "dataset": cell.dataset,
        "labels": cell.labels,
        "draw": number,
        "num_iterations": ITERATIONS,
        "accuracy": float((predicted == truth).mean()),
        "macro_f1": float(f1_score(truth, predicted, average="macro")),
        "train_seconds": round(trained, 1),
        "predict_seconds": round(time.perf_counter() - began - trained, 1),
    }


def run(folder: str, draws: int, output: str) -> None:
    """Measure what is missing: all cells of the first draw, then of the second."""
    done = {(line["dataset"], line["draw"]) for line in read_lines(LINES)}
    for number in range(draws):
        for cell in CELLS:
            if (cell.dataset, number) not in done:
                line = measure(cell, number, folder, output)
                add_line(LINES, line)
                print(line, flush=True)


def ours(cell: Cell) -> dict[int, dict[str, Any]]:
    """Scores of plain runs by draw."""
    wanted = {"dataset": cell.dataset, "skew": cell.skew, "how": cell.how, "labels": cell.labels}
    return {line["draw"]: line["scores"] for line in read_lines(OURS) if wanted.items() <= line.items()}


def render() -> None:
    """Write the page from the lines: only draws that both have."""
    rows = []
    for cell in CELLS:
        plain = ours(cell)
        lines = [line for line in read_lines(LINES) if line["dataset"] == cell.dataset and line["draw"] in plain]
        if not lines:
            continue
        both = [(100 * line["accuracy"], 100 * plain[line["draw"]]["drift fit"]["accuracy"]) for line in lines]
        start = np.mean([100 * plain[line["draw"]]["start"]["accuracy"] for line in lines])
        seconds = [np.median([line[key] for line in lines]) for key in ("train_seconds", "predict_seconds")]
        theirs, mine = np.mean(both, axis=0)
        gaps = ", ".join(f"{b - a:+.1f}" for a, b in both)
        times = [f"{value:.0f}" for value in seconds]
        rows.append([cell.dataset, len(lines), f"{start:.1f}", f"{theirs:.1f}", f"{mine:.1f}", gaps, *times])
    headings = ["dataset", "draws", "drift fit, start", "SetFit", "drift fit", "drift fit minus SetFit, by draw"]
    content = [
        "# Results: SetFit beside plain `drift fit`",
        "",
        "Written by `python benchmarks/setfit_peer.py render`. Test accuracy in %, 10 labels per class, on draws of",
        "[plain runs](default.md): the same labelled rows, the same 1,000 test texts and the same encoder",
        f"(bge-small-en-v1.5, {MAX_LENGTH} tokens), one thread. SetFit fine-tunes the encoder on pairs of the labelled",
        "texts; `drift fit` leaves it unchanged and also reads 2,500 unlabelled texts.",
        "",
        f"SetFit's settings are its defaults except `num_iterations={ITERATIONS}`, which limits the number of pairs.",
        "Its documentation suggests 20, which takes four times as long, so SetFit may do better with more time.",
        "",
        *table([*headings, "SetFit, seconds to train", "SetFit, seconds for the test texts"], rows),
    ]
    PAGE.write_text("\n".join(content) + "\n", encoding="utf-8")
    print("\n".join(content))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "render"])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--encoder", default=str(Path(os.environ.get("DRIFT_MODELS", "."), "bge-small-en-v1.5")))
    parser.add_argument("--output", default="setfit-runs", help="folder for SetFit's own files")
    arguments = parser.parse_args()
    run(arguments.encoder, arguments.draws, arguments.output) if arguments.command == "run" else render()
