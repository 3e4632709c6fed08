"""small-text with the people of `annotate.py`: its policies choose the labels, logistic regression learns from them.

    python benchmarks/annotate.py export FOLDER            # with DRIFT: vectors and gold classes
    python benchmarks/annotate_peer.py FOLDER [--draws 20]  # in an environment of its own: pip install small-text

Adds one line per data set, draw, policy and C to docs/results/annotate_peer.jsonl and skips those that exist. Pools,
test rows and the first ten random labels are those of `annotate.py`; then a policy is asked for five texts at a time.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from small_text import (
    BreakingTies,
    LeastConfidence,
    PoolBasedActiveLearner,
    PredictionEntropy,
    SklearnClassifierFactory,
    SklearnDataset,
)

LINES = Path(__file__).parents[1] / "docs" / "results" / "annotate_peer.jsonl"
POLICIES = {
    "breaking ties": BreakingTies,
    "least confidence": LeastConfidence,
    "entropy": PredictionEntropy,
}
STRENGTHS = (1.0, 10.0, 100.0)
BUDGETS = (10, 20, 50, 100)
FIRST, STEP = 10, 5


def one_draw(name: str, draw: int, data: Any, policy: str, C: float) -> dict[str, Any]:
    x, y, xt, yt = (data[key] for key in ("x", "y", "xt", "yt"))
    generator = np.random.default_rng((draw, 7))
    pool = generator.permutation(len(x))[: int(data["pool"])]
    x, y = x[pool], y[pool]
    order = generator.permutation(len(x))
    classes = int(max(y.max(), yt.max())) + 1
    count, scores = FIRST, {}
    while len(np.unique(y[order[:count]])) < 2:  # it cannot begin with one class
        count += STEP
    for budget in [budget for budget in BUDGETS if budget < count]:
        scores[budget] = score(np.full(len(yt), y[order[0]]), yt)
    model = SklearnClassifierFactory(LogisticRegression(C=C, max_iter=2000), classes)
    learner = PoolBasedActiveLearner(model, POLICIES[policy](), SklearnDataset(x, y, target_labels=np.arange(classes)))
    learner.initialize_data(order[:count], y[order[:count]])
    while count <= BUDGETS[-1]:
        if count in BUDGETS:
            scores[count] = score(
                learner.classifier.predict(SklearnDataset(xt, yt, target_labels=np.arange(classes))), yt
            )
        if count == BUDGETS[-1]:
            break
        asked = learner.query(num_samples=STEP)
        learner.update(y[asked])
        count += STEP
    return {"set": name, "draw": draw, "policy": policy, "C": C, "scores": scores}


def score(predicted: np.ndarray, gold: np.ndarray) -> dict[str, float]:
    macro = float(f1_score(gold, predicted, average="macro", zero_division=0))
    return {"accuracy": float((predicted == gold).mean()), "macro_f1": macro}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=20)
    arguments = parser.parse_args()
    done = set()
    if LINES.exists():
        lines = map(json.loads, LINES.read_text().splitlines())
        done = {(line["set"], line["draw"], line["policy"], line["C"]) for line in lines}
    data = {file.stem: dict(np.load(file)) for file in sorted(arguments.folder.glob("*.npz"))}
    for draw in range(arguments.draws):
        for name, each in data.items():
            for policy in POLICIES:
                for C in STRENGTHS:
                    if (name, draw, policy, C) in done:
                        continue
                    line = one_draw(name, draw, each, policy, C)
                    with LINES.open("a") as file:
                        file.write(json.dumps(line) + "\n")
        print(draw, flush=True)


if __name__ == "__main__":
    main()
