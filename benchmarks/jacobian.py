"""Compare the shared Jacobian, `Game(coupling="shared")`, with the exact interaction term over a training run.

A student is trained by the game with the exact interaction. At windows of K = 4 consecutive steps, spread over the run,
each batch gives both interactions, from one forward of each player: J_Tᵀ g_T and J_Sᵀ g_T (`drift.core.shared`).
Measured per step: the cosine and the ratio of norms of the two, and the cosine of the whole gradients. Two alternatives
that cost a K-th of the teacher's backward are measured beside it:

- every K-th step: the exact interaction of the window's first step times K, against the sum over the window;
- rows: N/K rows drawn with replacement in proportion to the norm of their g_T, with weights that make it unbiased,
  against the exact interaction of the step; mean over several draws.

"error" is ‖estimate - exact‖² / ‖exact‖². Students: an MLP on scikit-learn's digits with 5 labels per class; a TextCNN,
and the encoder paraphrase-MiniLM-L3-v2 in $DRIFT_MODELS, with the weak labels of AG News in $DRIFT_DATA.

    DRIFT_DATA=~/data DRIFT_MODELS=~/models python benchmarks/jacobian.py
    python benchmarks/jacobian.py --students mlp --steps 40 --out jacobian.jsonl

Writes JSON lines, and a page beside them. Runs that are in the file are not repeated.
"""

import argparse
import gzip
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from drift import Game
from drift.core.softmax import log_softmax
from drift.data.batches import EndlessBatches
from drift.data.tokenized import tokenize
from drift.data.word_tokens import WordTokenizer
from drift.models.mlp import mlp
from drift.models.textcnn import TextCNN

OUT = Path(__file__).parent.parent / "docs" / "results" / "jacobian.jsonl"
ALPHAS, K, TAU = (0.5, 0.7, 0.9, 0.99), 4, 0.5
TEXTS, WIDTH = 4000, 100  # AG News rows, word vectors of the TextCNN
Batch = dict[str, Any]  # arguments of Game.loss


@dataclass(frozen=True)
class Case:
    """A student after its supervised start, and the batches of its game.

    steps: of the game, by default. windows: number of windows. draws: of rows, per step of a window.
    """

    student: nn.Module
    batches: Iterator[Batch]
    learning_rate: float
    steps: int
    windows: int = 8
    draws: int = 8


def digits(seed: int) -> Case:
    from sklearn.datasets import load_digits

    images, classes = load_digits(return_X_y=True)
    x, y = torch.from_numpy(images / 16).float(), torch.from_numpy(classes)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(y)))
    x, y = x[order], y[order]
    labeled = torch.cat([(y == label).nonzero().flatten()[:5] for label in range(10)])
    student = mlp(64, 10, hidden=(128,), dropout=0.2)
    start(student, lambda: (x[labeled], y[labeled]), 200, 1e-2)
    rows = EndlessBatches(len(y), 256, torch.Generator().manual_seed(seed))
    return Case(student, ({"unlabeled": x[r], "labeled": (x[labeled], y[labeled])} for r in rows), 1e-3, 400)


def texts() -> tuple[list[str], Tensor]:
    """AG News texts, and their weak labels as class indices; -1 for none."""
    folder = Path(os.environ["DRIFT_DATA"]).expanduser() / "agnews"
    classes = json.loads((folder / "rules.json").read_text(encoding="utf-8"))["classes"]
    with gzip.open(folder / "train.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line, _ in zip(file, range(TEXTS), strict=False)]
    weak = [classes.index(row["weak"]) if row["weak"] else -1 for row in rows]
    return [row["text"] for row in rows], torch.tensor(weak)


def on_texts(
    student: nn.Module, tokens: Any, weak: Tensor, seed: int, rates: tuple[float, float], start_steps: int, **sizes: int
) -> Case:
    """A student that is started on the weak labels, and then plays without them. sizes: of the `Case`."""
    known = (weak >= 0).nonzero().flatten()
    some = EndlessBatches(len(known), 32, torch.Generator().manual_seed(seed + 1))

    def labeled() -> tuple[Batch, Tensor]:
        rows = known[next(some)]
        return tokens.inputs(rows), weak[rows]

    start(student, labeled, start_steps, rates[0])
    rows = EndlessBatches(len(weak), 32, torch.Generator().manual_seed(seed))
    return Case(student, ({"unlabeled": tokens.inputs(r)} for r in rows), rates[1], **sizes)


def textcnn(seed: int) -> Case:
    sentences, weak = texts()
    words = WordTokenizer.from_texts(sentences)
    student = TextCNN(torch.randn(len(words), WIDTH) / 10, 4, maps=100)
    return on_texts(student, tokenize(sentences, words, max_length=64), weak, seed, (1e-3, 3e-4), 60, steps=200)


def encoder(seed: int) -> Case:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = Path(os.environ["DRIFT_MODELS"]).expanduser() / "paraphrase-MiniLM-L3-v2"
    student = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32, num_labels=4)
    sentences, weak = texts()
    tokens = tokenize(sentences, AutoTokenizer.from_pretrained(folder), max_length=32)
    return on_texts(student, tokens, weak, seed, (1e-4, 2e-5), 30, steps=40, windows=3, draws=1)


CASES: dict[str, Callable[[int], Case]] = {"mlp": digits, "textcnn": textcnn, "encoder": encoder}


def start(student: nn.Module, batch: Callable[[], tuple[Any, Tensor]], steps: int, rate: float) -> None:
    """Train on labels."""
    optimizer = torch.optim.AdamW(student.parameters(), lr=rate)
    student.train()
    for _ in range(steps):
        x, y = batch()
        nn.functional.cross_entropy(logits(student, x), y).backward()
        optimizer.step()
        optimizer.zero_grad()


def logits(module: nn.Module, x: Any) -> Tensor:
    output = module(**x) if isinstance(x, dict) else module(x)
    return getattr(output, "logits", output)


def flat(z: Tensor, module: nn.Module, gradient: Tensor) -> Tensor:
    """Jᵀ g of the module's logits, as one vector. The graph is kept."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    return torch.cat([g.flatten() for g in torch.autograd.grad(z, parameters, gradient, retain_graph=True)])


def cosine(a: Tensor, b: Tensor) -> float:
    return float(nn.functional.cosine_similarity(a.double(), b.double(), dim=0))


def norm(gradient: Tensor) -> float:
    return float(gradient.double().norm())  # float64: in float32, over 17 million weights, it is 3e-4 too small


def error(estimate: Tensor, exact: Tensor) -> float:
    return norm(estimate - exact) ** 2 / norm(exact) ** 2


def interactions(game: Game, batch: Batch, draws: int, draw: torch.Generator) -> tuple[Tensor, Tensor, list[Tensor]]:
    """(1 - α) J_Tᵀ g_T, (1 - α) J_Sᵀ g_T, and estimates of the former from drawn rows. Draws the student's dropout."""
    x, scale = batch["unlabeled"], 1 - game.alpha
    if "labeled" in batch:  # the game predicts these rows first, which moves the random numbers on
        with torch.no_grad():
            logits(game.student, batch["labeled"][0])
    z_s = logits(game.student, x)
    game.teacher.requires_grad_(True)
    z_t = logits(game.teacher, x)
    leaf = z_t.detach().requires_grad_()
    response = game.strategy.respond(log_softmax(leaf))
    game.strategy.loss(response, log_softmax(z_s.detach())).mean().backward()
    g_t = leaf.grad
    assert g_t is not None
    share = g_t.norm(dim=1) / g_t.norm(dim=1).sum()
    size = len(g_t) // K
    estimates = []
    for _ in range(draws):
        drawn = torch.multinomial(share, size, replacement=True, generator=draw)
        weights = torch.bincount(drawn, minlength=len(g_t)) / (size * share.clamp(min=1e-30))
        estimates.append(scale * flat(z_t, game.teacher, weights.unsqueeze(1) * g_t))
    return scale * flat(z_t, game.teacher, g_t), scale * flat(z_s, game.student, g_t), estimates


def measure(game: Game, batch: Batch, whole: Tensor, draws: int, seed: int) -> tuple[dict[str, float], Tensor, Tensor]:
    """One step: its measurements, the exact and the shared interaction. whole: the game's gradient with this seed."""
    of_game = game.diagnostics().interaction_norm
    torch.manual_seed(seed)
    exact, shared, estimates = interactions(game, batch, draws, torch.Generator().manual_seed(seed))
    assert abs(norm(exact) / of_game - 1) < 1e-3, "the game has another interaction"
    entry = {
        "leader cosine": cosine(exact, whole - exact),  # of the exact interaction with the leader
        "size": norm(exact) / norm(whole - exact),
        "cosine": cosine(shared, exact),
        "ratio": norm(shared) / norm(exact),
        "error": error(shared, exact),
        "whole cosine": cosine(whole - exact + shared, whole),
        "rows cosine": float(np.mean([cosine(each, exact) for each in estimates])),
        "rows error": float(np.mean([error(each, exact) for each in estimates])),
    }
    return entry, exact, shared


def run(name: str, alpha: float, seed: int, steps: int | None) -> list[dict[str, Any]]:
    """Train one student; returns one entry per window: means over its K steps."""
    torch.manual_seed(seed)
    case = CASES[name](seed)
    game = Game(case.student, alpha=alpha, tau=TAU)
    optimizer = torch.optim.AdamW(case.student.parameters(), lr=case.learning_rate)
    last = steps or case.steps
    ends = (round(last * i / case.windows) for i in range(1, case.windows + 1))
    begins = {max(1, end - K + 1) for end in ends}  # at step 0 players are equal
    entries, window = [], []
    for step, batch in zip(range(last + 1), case.batches, strict=False):
        torch.manual_seed(step)
        game.backward(game.loss(**batch))
        if window or step in begins:
            whole = torch.cat([p.grad.flatten() for p in case.student.parameters() if p.requires_grad])
            window.append(measure(game, batch, whole, case.draws, step))
        if len(window) == K:
            measured, exact, shared = zip(*window, strict=True)
            total = torch.stack(exact).sum(0)
            means = {key: float(np.mean([each[key] for each in measured])) for key in measured[0]}
            means |= {
                "window cosine": cosine(torch.stack(shared).sum(0), total),
                "window error": error(torch.stack(shared).sum(0), total),
                "every cosine": cosine(exact[0], total),
                "every error": error(K * exact[0], total),
            }
            values = {key: round(value, 5) for key, value in means.items()}
            entries.append({"student": name, "alpha": alpha, "seed": seed, "steps": last, "step": step, **values})
            window = []
        optimizer.step()
        optimizer.zero_grad()
        game.teacher.zero_grad()
        game.follow()
    return entries


COLUMNS = {  # of the page: heading and key
    "interaction / leader": "size",
    "cosine to leader": "leader cosine",
    "shared: cosine": "cosine",
    "norm ratio": "ratio",
    "error": "error",
    "whole gradient: cosine": "whole cosine",
    "rows: cosine": "rows cosine",
    "rows: error": "rows error",
    "window, shared: cosine": "window cosine",
    "window, shared: error": "window error",
    f"window, every {K}th: cosine": "every cosine",
    f"window, every {K}th: error": "every error",
}


def page(entries: list[dict[str, Any]]) -> str:
    """The results as Markdown: median over windows and seeds, with the range for the cosines of the shared form."""
    lines = [
        "# The shared Jacobian beside the exact interaction",
        "",
        'What `coupling="shared"` changes in the gradient, over training runs. Made by `benchmarks/jacobian.py`, whose',
        "docstring says what is measured. Medians over windows of four steps; ranges in brackets. Entries are in",
        "[jacobian.jsonl](jacobian.jsonl). An error of 1 is as large as the interaction itself: the error of",
        "leaving it out.",
        "",
        "| student | α | windows | " + " | ".join(COLUMNS) + " |",
        "|---|" + "---:|" * (2 + len(COLUMNS)),
    ]
    for student in CASES:
        for alpha in ALPHAS:
            of_run = [e for e in entries if (e["student"], e["alpha"]) == (student, alpha)]
            if of_run:
                values = {key: [entry[key] for entry in of_run] for key in COLUMNS.values()}
                cells = [cell(each, ranged=key in ("cosine", "whole cosine")) for key, each in values.items()]
                lines.append(f"| {student} | {alpha} | {len(of_run)} | " + " | ".join(cells) + " |")
    done = {(entry["student"], entry["alpha"]) for entry in entries}
    if missing := [f"{name} at α = {alpha}" for name in CASES for alpha in ALPHAS if (name, alpha) not in done]:
        lines += ["", f"Not measured yet: {', '.join(missing)}."]
    return "\n".join(lines) + "\n"


def cell(values: list[float], *, ranged: bool) -> str:
    text = f"{np.median(values):.3f}"
    return f"{text} [{min(values):.3f}, {max(values):.3f}]" if ranged else text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", default=",".join(CASES), help="comma-separated (default: %(default)s)")
    parser.add_argument("--alphas", default=",".join(map(str, ALPHAS)), help="comma-separated (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=1, help="runs per student and α (default: %(default)s)")
    parser.add_argument("--steps", type=int, help="steps of the game (default: mlp 400, textcnn 200, encoder 40)")
    parser.add_argument("--out", type=Path, default=OUT, help="JSON lines (default: docs/results/jacobian.jsonl)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    lines = args.out.read_text(encoding="utf-8").splitlines() if args.out.exists() else []
    entries = [json.loads(line) for line in lines]
    for name in args.students.split(","):
        for alpha in map(float, args.alphas.split(",")):
            for seed in range(args.seeds):
                if any((e["student"], e["alpha"], e["seed"]) == (name, alpha, seed) for e in entries):
                    continue
                new = run(name, alpha, seed, args.steps)
                with args.out.open("a", encoding="utf-8") as file:  # a run's lines at once: a run is there or is not
                    file.write("".join(json.dumps(entry) + "\n" for entry in new))
                entries += new
                print(name, alpha, seed, {key: new[-1][key] for key in ("cosine", "ratio", "whole cosine")}, flush=True)
                args.out.with_suffix(".md").write_text(page(entries), encoding="utf-8")


if __name__ == "__main__":
    main()
