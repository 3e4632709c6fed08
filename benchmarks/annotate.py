"""A person with gold labels at `drift.Annotation`: accuracy against labels, and whether the audit's interval is right.

    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/annotate.py run [--sets agnews imdb skewed] [--draws 20]
    python benchmarks/annotate.py table

`run` adds one line per data set and draw to docs/results/annotate.jsonl and skips those that exist. `table` updates the
tables in docs/results/annotate.md and draws the figure. A draw is another pool, another order of random labels and
another seed. Test rows are never asked about, and are not among the unlabelled rows of the game.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

import drift
from drift.annotate.heads import Heads, Lesson
from drift.annotate.vectors import text_embedder
from drift.data.tables import read_chunks
from drift.tasks.scoring import mean_and_spread
from drift.training.threads import threads
from recorded import RESULTS, add_line, read_lines, replace_tables, table

LINES, PAGE, FIGURE = RESULTS / "annotate.jsonl", RESULTS / "annotate.md", RESULTS / "figures" / "annotate.png"
PEER = RESULTS / "annotate_peer.jsonl"
CHOICE = 118  # the decision that made the policy what it is; draws with an earlier one are measured again
BUDGETS = (10, 20, 50, 100, 150)
STRENGTHS = (1.0, 10.0, 100.0)  # C of logistic regression; tables show the best of these on test
SETS = {  # rows of train and test; the pool of a draw is a random part of them
    "agnews": ("agnews", 6000, 2000, 3000),
    "imdb": ("imdb", 2500, 1000, 2000),
    "skewed": ("agnews", 6000, 2000, 1400),  # business news with one tenth of technology news
}
COMMON, RARE, RATIO = "business", "sci/tech", 10
METHODS = {
    "policy": "policy, game",
    "random": "random, game",
    "logistic": "random, logistic regression",
    "peer": "small-text, logistic regression",
}


def rows_of(name: str, part: str, count: int) -> tuple[list[str], list[str]]:
    """Texts and labels: the first rows of a permutation with seed 0."""
    texts, labels = [], []
    for chunk in read_chunks(Path(os.environ["DRIFT_DATA"]) / name / f"{part}.jsonl.gz"):
        texts += chunk.columns["text"]
        labels += chunk.columns["label"]
    known = [row for row, label in enumerate(labels) if label is not None]
    chosen = np.random.default_rng(0).permutation(known)[:count]
    return [texts[row] for row in chosen], [labels[row] for row in chosen]


def load(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Vectors and class indices of train and test rows, and the classes."""
    source, train, test, _ = SETS[name]
    parts = [rows_of(source, "train", train), rows_of(source, "test", test)]
    embedder = text_embedder("default")
    vectors = [np.array(embedder.embed(texts).vectors) for texts, _ in parts]
    classes = sorted(set(parts[0][1]))
    codes = [np.array([classes.index(label) for label in labels]) for _, labels in parts]
    if name == "skewed":
        two = [next(c for c in classes if c.lower().startswith(each[:5])) for each in (COMMON, RARE)]
        for at, (x, y) in enumerate(zip(vectors, codes, strict=True)):
            common, rare = (np.flatnonzero(y == classes.index(each)) for each in two)
            rows = np.concatenate([common, rare[: len(common) // RATIO]])
            vectors[at], codes[at] = x[rows], (y[rows] == classes.index(two[1])).astype(int)
        classes = two
    return vectors[0], codes[0], vectors[1], codes[1], classes


def scores(predicted: np.ndarray, gold: np.ndarray) -> dict[str, float]:
    macro = float(f1_score(gold, predicted, average="macro", zero_division=0))
    return {"accuracy": float((predicted == gold).mean()), "macro_f1": macro}


def by_policy(x: np.ndarray, y: np.ndarray, xt: np.ndarray, yt: np.ndarray, classes: list[str], draw: int) -> Any:
    """A session with a person who knows the labels. Rows of test have no text, so that they are never asked about."""
    texts = [f"text {row}" for row in range(len(x))] + [""] * len(xt)
    results, audits = {}, []
    with drift.Annotation(texts, classes, vectors=np.concatenate([x, xt]), seed=draw) as session:
        for label in range(1, BUDGETS[-2] + 1):
            question = session.next()
            session.label(question.row, classes[y[question.row]])
            if label in BUDGETS:
                session.train()
                found = session.predictions()
                if found[0] is None:  # all labels have the same class so far
                    found = [(classes[y[question.row]], 1.0)] * len(texts)
                predicted = np.array([classes.index(name) for name, _ in found])
                results[label] = scores(predicted[len(x) :], yt)
                at = session.estimate()
                audits.append([label, at.audited, at.accuracy, at.low, at.high, results[label]["accuracy"]])
    return results, audits


def one_draw(name: str, draw: int, data: Any) -> dict[str, Any]:
    x, y, xt, yt, classes = data
    began = time.process_time()
    generator = np.random.default_rng((draw, 7))
    pool = generator.permutation(len(x))[: SETS[name][3]]
    x, y = x[pool], y[pool]
    policy, audits = by_policy(x, y, xt, yt, classes, draw)
    order = generator.permutation(len(x))
    heads = Heads(np.concatenate([x, xt]))
    game: dict[int, Any] = {}
    logistic: dict[str, dict[int, Any]] = {str(C): {} for C in STRENGTHS}
    for budget in BUDGETS:
        rows = order[:budget]
        if len(np.unique(y[rows])) < 2:
            everywhere = scores(np.full(len(yt), y[rows[0]]), yt)
            game[budget] = everywhere
            for C in logistic:
                logistic[C][budget] = everywhere
            continue
        rest = np.setdiff1d(np.arange(len(x)), rows)
        outcome = heads.teach(Lesson(rows, y[rows], rest, seed=draw), len(classes))
        game[budget] = scores(outcome.probabilities[len(x) :].argmax(1), yt)
        for C in STRENGTHS:
            model = LogisticRegression(C=C, max_iter=2000).fit(x[rows], y[rows])
            logistic[str(C)][budget] = scores(model.predict(xt), yt)
    seconds = round(time.process_time() - began, 1)
    methods = {"policy": policy, "random": game, **{f"logistic {C}": each for C, each in logistic.items()}}
    return {
        "set": name,
        "draw": draw,
        "choice": CHOICE,
        "seconds": seconds,
        "pool": len(x),
        "test": len(xt),
        "scores": methods,
        "audits": audits,
    }


def current_lines() -> list[dict[str, Any]]:
    """Lines of the policy as it is."""
    return [line for line in read_lines(LINES) if line.get("choice") == CHOICE]


def run(sets: list[str], draws: int) -> None:
    done = {(line["set"], line["draw"]) for line in current_lines()}
    data = {}
    for draw in range(draws):
        for name in sets:
            if (name, draw) in done:
                continue
            data[name] = data.get(name) or load(name)
            with threads(1):
                line = one_draw(name, draw, data[name])
            add_line(LINES, line)
            shown = {
                method: [round(100 * each["accuracy"], 1) for each in by.values()]
                for method, by in line["scores"].items()
            }
            print(name, draw, shown, f"{line['seconds']} s", flush=True)


def export(folder: Path) -> None:
    """Write vectors and classes for `annotate_peer.py`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in SETS:
        x, y, xt, yt, _ = load(name)
        np.savez(folder / f"{name}.npz", x=x, y=y, xt=xt, yt=yt, pool=SETS[name][3])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    runs.add_argument("--draws", type=int, default=20)
    commands.add_parser("table")
    commands.add_parser("export").add_argument("folder", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "run":
        run(arguments.sets, arguments.draws)
    elif arguments.command == "export":
        export(arguments.folder)
    else:
        write_tables()


def best_logistic(lines: list[dict[str, Any]], budget: int) -> list[float]:
    """Scores of the strength with the best mean on test: the baseline gets the benefit of the doubt."""
    by_strength = [measured(lines, f"logistic {C}", budget) for C in STRENGTHS]
    return max(by_strength, key=lambda each: float(np.mean(each)))


def measured(lines: list[dict[str, Any]], method: str, budget: int) -> list[float]:
    """One score per draw: accuracy, or macro-F1 where classes are skewed."""
    name = metric_of(lines[0]["set"])
    return [line["scores"][method][str(budget)][name] for line in lines]


def metric_of(name: str) -> str:
    return "macro_f1" if name == "skewed" else "accuracy"


def peer(name: str, draws: set[int], budget: int) -> list[float]:
    """Scores of small-text on these draws, with the policy and C of the best mean on test; none if it lacks one."""
    metric = metric_of(name)
    found: dict[Any, dict[int, float]] = {}
    for line in read_lines(PEER):
        if line["set"] == name and line["draw"] in draws:
            found.setdefault((line["policy"], line["C"]), {})[line["draw"]] = line["scores"][str(budget)][metric]
    whole = [list(by_draw.values()) for by_draw in found.values() if len(by_draw) == len(draws)]
    return max(whole, key=lambda each: float(np.mean(each)), default=[])


def write_tables() -> None:
    by_set: dict[str, list[dict[str, Any]]] = {}
    for line in current_lines():
        by_set.setdefault(line["set"], []).append(line)
    rows, audits, targets, curves = [], [], [], {}
    for name, lines in by_set.items():
        curves[name] = {title: {} for title in METHODS.values()}
        for method, title in METHODS.items():
            cells = []
            for budget in BUDGETS:
                if method in ("policy", "peer") and budget not in BUDGETS[:-1]:
                    cells.append("")
                    continue
                scores = cell(name, lines, method, budget)
                if scores:
                    curves[name][title][budget] = scores
                cells.append(mean_and_spread(scores) if scores else "-")
            rows.append([name, len(lines), title, *cells])
        gains = np.array(cell(name, lines, "policy", 50)) - np.array(cell(name, lines, "logistic", 150))
        targets.append([name, f"{100 * gains.mean():+.1f}", f"{(gains >= 0).sum()} of {len(gains)}"])
        audits += audit_rows(name, lines)
    audits.append(
        ["all", "", "", covered_share([each for lines in by_set.values() for each in audited(lines)]), "", ""]
    )
    headings = ["data", "draws", "labels chosen by, model", *(f"{budget} labels" for budget in BUDGETS)]
    more = ["data", "labels", "audited", "interval contains the truth", "mean error", "mean width"]
    target = [
        "data",
        "policy, 50 labels, minus logistic regression, 150 labels",
        "draws in which it is at least as good",
    ]
    replace_tables(PAGE, table(headings, rows), table(target, targets), table(more, audits))
    draw(curves)


def cell(name: str, lines: list[dict[str, Any]], method: str, budget: int) -> list[float]:
    """The scores of a method, one per draw."""
    if method == "peer":
        return peer(name, {line["draw"] for line in lines}, budget)
    return best_logistic(lines, budget) if method == "logistic" else measured(lines, method, budget)


def audited(lines: list[dict[str, Any]], budget: int | None = None) -> list[Any]:
    """Estimates that are based on at least one audited label. budget: the number of labels; None for all."""
    found = [each for line in lines for each in line["audits"] if each[1]]
    return [each for each in found if budget in (None, each[0])]


def covered_share(found: list[Any]) -> str:
    return f"{sum(low <= truth <= high for _, _, _, low, high, truth in found)} of {len(found)}"


def audit_rows(name: str, lines: list[dict[str, Any]]) -> list[list[Any]]:
    rows = []
    for budget in BUDGETS[:-1]:
        if not (found := audited(lines, budget)):
            continue
        error = np.mean([accuracy - truth for _, _, accuracy, _, _, truth in found])
        width = np.mean([high - low for _, _, _, low, high, _ in found])
        count = f"{np.mean([each[1] for each in found]):.1f}"
        rows.append([name, budget, count, covered_share(found), f"{100 * error:+.1f}", f"{100 * width:.0f}"])
    return rows


def standard_error(scores: list[float]) -> float:
    return float(np.std(scores, ddof=1) / len(scores) ** 0.5) if len(scores) > 1 else 0.0


def draw(curves: dict[str, dict[str, dict[int, list[float]]]]) -> None:
    """Means with standard errors against labels, one panel per data set."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(curves), figsize=(3.6 * len(curves), 3.1), squeeze=False)
    for panel, (name, methods) in zip(panels[0], curves.items(), strict=True):
        for title, by_budget in methods.items():
            budgets = sorted(by_budget)
            means = [100 * float(np.mean(by_budget[b])) for b in budgets]
            errors = [100 * standard_error(by_budget[b]) for b in budgets]
            panel.errorbar(budgets, means, errors, marker="o", markersize=3, capsize=2, label=title)
        panel.set_title(name)
        panel.set_xlabel("labels")
        panel.set_ylabel("macro-F1 on test, %" if name == "skewed" else "accuracy on test, %")
        panel.grid(alpha=0.3)
    panels[0][0].legend(fontsize=7)
    figure.tight_layout()
    FIGURE.parent.mkdir(exist_ok=True)
    figure.savefig(FIGURE, dpi=150)


if __name__ == "__main__":
    main()
