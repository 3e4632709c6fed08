"""The coupling of DRIFT: accuracy of each on the same splits, and two other ways to save the teacher's backward.

    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/coupling.py run [--cells cora-10 agnews-10] [--minutes 30]
    DRIFT_MODELS=... python benchmarks/coupling.py cost        time of a step of each, interleaved
    python benchmarks/coupling.py table                        write docs/results/coupling.md

Couplings: "detached", "differentiable" and "shared" are those of `drift.Game`. Both others give the exact interaction
on average and need a K-th of the teacher's backward: "every" computes it at every K-th step and multiplies it by K;
"rows" computes it from N/K rows that are drawn with replacement in proportion to the norm of the gradient of their
logits.

Lines are added to docs/results/coupling.jsonl; those that exist are not run again. A cell has ten seeds, or as many as
`SEEDS` says; a seed has the same labelled rows, start and batches with every coupling. Nothing is selected on test.
"""

import argparse
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import drift
from drift.core import Game
from drift.core.forward import log_probabilities
from drift.methods.method import Context
from drift.methods.self_training import Drift
from drift.models.protocols import computes_full_graph
from drift.runs.comparing.statistics import TTest, paired_t
from drift.runs.fit import fit
from drift.tasks.scoring import mean_and_spread
from recorded import RESULTS, add_line, read_lines, table

LINES, PAGE, COST = RESULTS / "coupling.jsonl", RESULTS / "coupling.md", RESULTS / "coupling_cost.json"
K = 4
COUPLINGS = ("detached", "differentiable", "shared")
TRAIN_ROWS, TEST_ROWS = {"agnews": 15000, "imdb": 2500}, {"agnews": 4000, "imdb": 2000}
ENCODER = "paraphrase-MiniLM-L3-v2"  # that is fine-tuned


class EveryGame(Game):
    """The exact interaction at every K-th step, times K; self-training at the others."""

    @property
    def couples(self) -> bool:
        return super().couples and self.steps % K == K - 1

    def _merge(self) -> None:
        self._merger.merge(K * (1.0 - self.alpha))
        self._unmerged = False


class RowsGame(Game):
    """The exact interaction from N/K rows, drawn in proportion to ‖g_T‖ and weighted so that its mean is exact."""

    def _teach(self, inputs: Sequence[Any], log_q: Tensor | None = None, before: Any = None) -> Tensor:
        log_p = self._players.teach(*inputs, differentiable=False)
        if not self.couples:
            return log_p
        assert len(inputs) == 1, "only unlabelled rows get pseudo-labels here"
        return _FromRows.apply(log_p.requires_grad_(), self, inputs[0])  # type: ignore[no-untyped-call, no-any-return]


class _FromRows(torch.autograd.Function):
    """Returns log p. Backward runs the teacher again on drawn rows, and sends their weighted gradients through it."""

    @staticmethod
    def forward(ctx: Any, log_p: Tensor, game: Game, inputs: Any) -> Tensor:
        ctx.save_for_backward(log_p)
        ctx.game, ctx.inputs = game, inputs
        return log_p.view_as(log_p)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None]:
        (log_p,) = ctx.saved_tensors
        g = gradient - log_p.exp() * gradient.sum(-1, keepdim=True)  # (..., N, C), of the logits
        norms = g.norm(dim=-1).clamp(min=1e-12)
        share = norms / norms.sum(-1, keepdim=True)
        size = max(1, share.shape[-1] // K)
        rows = torch.multinomial(share, size, replacement=True)  # (..., N/K)
        weights = 1 / (size * share.gather(-1, rows))
        sent = gradient.gather(-2, rows.unsqueeze(-1).expand(*rows.shape, g.shape[-1])) * weights.unsqueeze(-1)
        ctx.game._follower.require_gradients(True)
        with torch.enable_grad():
            teacher = log_probabilities(ctx.game.teacher, _taken(ctx.inputs, rows), stacked=ctx.game.stacked)
            teacher.backward(sent)
        return None, None, None


def _taken(inputs: Any, rows: Tensor) -> Any:
    """Some rows of a batch; row numbers of a graph are one number per row."""
    if isinstance(inputs, dict):
        return {name: value[rows] for name, value in inputs.items()}
    return torch.stack([x[r] for x, r in zip(inputs, rows, strict=True)]) if rows.dim() == 2 else inputs[rows]


class Every(Drift):
    """DRIFT with `EveryGame`."""

    name, game_type = "every", EveryGame

    def make_game(self, settings: Any, context: Context) -> Game:
        game = super().make_game(settings.model_copy(update={"coupling": "differentiable"}), context)
        return self.game_type(
            self.student,
            alpha=game.alpha,
            strategy=game.strategy,
            unlabeled_weight=game.unlabeled_weight,
            teacher=game.teacher,
            full_graph=computes_full_graph(self.student),
            stacked=context.stacked,
            single_process=context.single_process,
        )


class Rows(Every):
    """DRIFT with `RowsGame`."""

    name, game_type = "rows", RowsGame


ESTIMATES: dict[str, type[Drift]] = {"every": Every, "rows": Rows}


@dataclass(frozen=True)
class Cell:
    """Data and settings of runs that differ in their coupling alone. alphas: one run for each. title: of the table."""

    title: str
    alphas: tuple[float, ...]
    options: dict[str, Any] = field(default_factory=dict)
    couplings: tuple[str, ...] = COUPLINGS
    seeds: int | None = None  # runs; None: one run with ten seeds

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self.options.get("settings", {}))


def graph(name: str, *, preset: bool, extra: bool = False) -> Cell:
    options = {"train": name, "task": "nodes", "labels_per_class": 10}
    couplings = (*COUPLINGS, *ESTIMATES) if extra else COUPLINGS
    if preset:  # 500 dev nodes choose the student
        return Cell(f"{name}, GCN, 10 labels per class, preset", (0.7,), {**options, "preset": name.lower()}, couplings)
    return Cell(f"{name}, GCN, 10 labels per class, no dev", (0.7, 0.9), options, couplings)


def texts(name: str, labels: int | None, *, extra: bool = False, alphas: tuple[float, ...] = (0.5, 0.9)) -> Cell:
    folder = Path(os.environ.get("DRIFT_DATA", "")) / name
    options = {
        "train": folder / "train.jsonl.gz",
        "test": folder / "test.jsonl.gz",
        "text": "text",
        "label": "label",
        "settings": {"data.train_rows": TRAIN_ROWS[name], "data.test_rows": TEST_ROWS[name]},
        **({"weak": "weak"} if labels is None else {"labels_per_class": labels}),
    }
    source = "rules" if labels is None else f"{labels} labels per class"
    return Cell(f"{name}, heads, {source}", alphas, options, (*COUPLINGS, *ESTIMATES) if extra else COUPLINGS)


def trained(model: str, labels: int, alphas: tuple[float, ...], **settings: Any) -> Cell:
    options = texts("agnews", labels).options
    settings = {"data.train_rows": 4000, "data.test_rows": 2000, "training.until": "steps", **settings}
    finetune = model == ENCODER
    own = {"model": model, "finetune": finetune, "settings": settings}
    title = f"agnews, {'fine-tuned ' if finetune else ''}{model}, {labels} labels per class"
    return Cell(title, alphas, {**options, **own}, seeds=3)


ENCODER_STEPS = {
    "data.train_rows": 2500,
    "data.test_rows": 500,
    "training.steps": 40,
    "model.train_layers": 2,
    "model.max_length": 48,
}
CELLS = {
    "cora-10": graph("Cora", preset=True, extra=True),
    "citeseer-10": graph("CiteSeer", preset=True),
    **{
        f"{name}-{labels or 'rules'}": texts(name, labels, extra=(name, labels) == ("agnews", 10))
        for name in ("agnews", "imdb")
        for labels in (5, 10, None)
    },
    "cora-10-plain": graph("Cora", preset=False),
    "citeseer-10-plain": graph("CiteSeer", preset=False),
    "encoder-30": trained(ENCODER, 30, (0.5,), **ENCODER_STEPS),
    "encoder-30-float32": replace(
        trained(ENCODER, 30, (0.5,), **ENCODER_STEPS, **{"training.precision": "no"}), couplings=("differentiable",)
    ),  # beside "encoder-30", which is in bfloat16 where the processor computes it; see docs/results/speed.md
    "textcnn-200": trained("textcnn", 200, (0.5, 0.9), **{"training.initial_steps": 200, "training.steps": 200}),
}


def run(name: str, alpha: float, coupling: str, seed: int) -> dict[str, Any]:
    """Test accuracy of a run, and of its start; one number per head or network in it."""
    cell, method = CELLS[name], ESTIMATES.get(coupling)
    settings = {**cell.settings, "method.alpha": alpha, "training.return_to_start": False}
    if method is None:
        settings["method.coupling"] = coupling
    began = time.process_time()
    options = {**cell.options, "settings": settings}
    done = fit(**options, method=method or "drift", seed=seed, onnx=False, quiet=True)
    test = done.record.test
    return {
        "cell": name,
        "alpha": alpha,
        "coupling": coupling,
        "seed": seed,
        "accuracy": [trial["accuracy"] for trial in test.scores],
        "start": [trial["accuracy"] for trial in test.start],
        "ends": sorted({str(end) for end in done.record.phases}),
        "seconds": round(time.process_time() - began, 1),
    }


def run_all(names: list[str], minutes: float) -> None:
    began = time.monotonic()
    done = {(*_key(line), line.get("seed", 0)) for line in read_lines(LINES)}
    todo = [
        (name, alpha, coupling, seed)
        for name in names or CELLS
        for seed in range(CELLS[name].seeds or 1)
        for alpha in CELLS[name].alphas
        for coupling in CELLS[name].couplings
    ]
    for each in todo:
        if each not in done and time.monotonic() - began <= 60 * minutes:
            line = run(*each)
            add_line(LINES, line)
            print(*each, line["accuracy"], f"{line['seconds']} s", flush=True)


def _key(line: dict[str, Any]) -> tuple[str, float, str]:
    return line["cell"], line["alpha"], line["coupling"]


def measured() -> dict[tuple[str, float, str], dict[str, list[float]]]:
    """Accuracies and those of the start, by cell, α and coupling, over the seeds that all of `COUPLINGS` have."""
    lines = sorted(read_lines(LINES), key=lambda line: line.get("seed", 0))
    done = {(*_key(line), line.get("seed", 0)) for line in lines}
    runs: dict[tuple[str, float, str], dict[str, list[float]]] = {}
    for line in lines:
        name, alpha, _ = _key(line)
        wanted = set(CELLS[name].couplings) & set(COUPLINGS)
        if not all((name, alpha, coupling, line.get("seed", 0)) in done for coupling in wanted):
            continue
        run = runs.setdefault(_key(line), {"accuracy": [], "start": []})
        run["accuracy"] += line["accuracy"]
        run["start"] += line["start"]
    return runs


def measure_cost(repeats: int) -> None:
    """Milliseconds of a step, beside self-training in the same repeats."""
    from step import CASES, measure, spread, stepper  # beside this file

    def with_game(student: nn.Module, inputs: Any, setting: Any) -> Any:
        make = {"every": EveryGame, "rows": RowsGame}.get(setting, Game)
        game = make(student, alpha=0.9, **({} if setting in ESTIMATES else {"coupling": setting}))
        return lambda: game.loss(unlabeled=inputs), game.backward, game.follow

    torch.set_num_threads(1)
    torch.manual_seed(0)
    case = CASES["encoder"][0](torch.default_generator)
    assert not isinstance(case, str), case
    steps = {name: stepper(case, with_game, name) for name in (*COUPLINGS, *ESTIMATES)}
    ms = measure(steps, repeats)
    means = {name: float(values.mean() / ms["detached"].mean()) for name, values in ms.items()}  # "every" is uneven
    ratios = {name: spread(values / ms["detached"]) | {"mean": round(means[name], 4)} for name, values in ms.items()}
    COST.write_text(json.dumps({"torch": torch.__version__, "repeats": repeats, "ratios": ratios}, indent=2) + "\n")
    print(json.dumps(ratios, indent=2))


def page() -> None:
    """Write the page from the lines."""
    lines = measured()
    rows, others, worse = [], [], []
    for name, cell in CELLS.items():
        for alpha in cell.alphas:
            scores = {c: lines[name, alpha, c]["accuracy"] for c in cell.couplings if (name, alpha, c) in lines}
            if not set(COUPLINGS) <= set(scores) or set(map(len, scores.values())) <= {1}:
                continue
            first = lines[name, alpha, "detached"]["start"]
            shared, exact, detached = (scores[c] for c in ("shared", "differentiable", "detached"))
            to_exact, to_detached = paired_t(shared, exact), paired_t(shared, detached)
            worse += [(cell.title, alpha, to_exact)] if to_exact.difference < 0 and to_exact.p < 0.05 else []
            values = [mean_and_spread(each) for each in (first, detached, exact, shared)]
            rows.append([cell.title, alpha, len(shared), *values, *_test(to_exact), *_test(to_detached)])
            if set(ESTIMATES) <= set(scores):
                tests = [part for each in ESTIMATES for part in _test(paired_t(scores[each], exact))]
                others.append([cell.title, alpha, *(mean_and_spread(scores[each]) for each in ESTIMATES), *tests])
    PAGE.write_text("\n".join(_content(rows, others, worse)) + "\n", encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


def _test(test: TTest) -> tuple[str, str]:
    return test.gap(), test.p_text()


def _content(rows: list[Any], others: list[Any], worse: list[Any]) -> list[str]:
    verdict = "; ".join(f"{title}, α {alpha}: {test.gap()}, p {test.p_text()}" for title, alpha, test in worse)
    headings = ["data", "α", "seeds", "start", "detached", "differentiable", "shared"]
    return [
        "# Results: the couplings of DRIFT",
        "",
        "Written by `python benchmarks/coupling.py table`; every run is a line of [coupling.jsonl](coupling.jsonl).",
        "Test accuracy in %, mean ± standard deviation over seeds. A seed has the same labelled rows, start and",
        "batches with every coupling, so differences (in points) are paired; p is that of a paired t-test, without",
        "correction for the number of cells. Other settings are the defaults of `drift fit`; *preset*: `--preset`,",
        "with 500 dev nodes. The game is never given up for its start (`training.return_to_start` is off).",
        "",
        *table([*headings, "shared - differentiable", "p", "shared - detached", "p"], rows),
        "",
        f"Cells in which `shared` is below `differentiable` with p < 0.05: {verdict or 'none'}, of {len(rows)}.",
        "",
        "## Other ways to save the teacher's backward",
        "",
        f"Both give the exact interaction on average and need 1/{K} of the teacher's backward. *every*: the exact",
        f"interaction at every {K}th step, times {K}. *rows*: from 1/{K} of the rows, drawn in proportion to the norm",
        "of the gradient of their logits. [The shared Jacobian](jacobian.md) has the errors of their gradients.",
        "",
        *table(["data", "α", *ESTIMATES, *(h for each in ESTIMATES for h in (f"{each} - exact", "p"))], others),
        "",
        *_cost(),
    ]


def _cost() -> list[str]:
    """The table of `cost`; none before it was measured."""
    if not COST.exists():
        return ["The time of a step was not measured."]
    cost = json.loads(COST.read_text(encoding="utf-8"))["ratios"]
    return [
        f"Time of a step relative to `detached`, {ENCODER} fine-tuned on 32 texts of 48 tokens, one core; `cost`.",
        "The median of *every* does not see its expensive steps; the mean does.",
        "",
        *table(
            ["coupling", "median", "mean"],
            [[name, f"{each['median']:.2f}", f"{each['mean']:.2f}"] for name, each in cost.items()],
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "cost", "table"))
    parser.add_argument("--cells", nargs="*", default=[], help="default: all")
    parser.add_argument("--minutes", type=float, default=1e9, help="start no run after this time")
    parser.add_argument("--repeats", type=int, default=40)
    options = parser.parse_args()
    if options.command == "run":
        print(f"drift {drift.__version__}")
        run_all(options.cells, options.minutes)
    elif options.command == "cost":
        measure_cost(options.repeats)
    else:
        page()


if __name__ == "__main__":
    main()
