"""DRIFT: good classifiers from few or noisy labels, by differentiable self-training.

- `drift.Game`: the algorithm around any torch module, for a loop of your own
- `drift.DriftClassifier`: scikit-learn's contract; `y == -1` is unlabelled
- `drift.fit`, `drift.load`, `drift.predict`, `drift.evaluate`, `drift.suggest`: texts in tables, few labels or rules
- `drift.compare`, `drift.tune`, `drift.tsne`: runs side by side, settings searched on dev, representations drawn
- `drift.label`, `drift.rule`, `drift.RuleSet`: rules that give weak labels
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drift.core import Game, HardStrategy, Response, SoftStrategy, Strategy
    from drift.estimator import DriftClassifier
    from drift.runs.comparing.compare import compare
    from drift.runs.fit import fit
    from drift.runs.predict import evaluate, load, predict
    from drift.runs.report import write_report
    from drift.runs.tsne import tsne
    from drift.runs.tuning.tune import tune
    from drift.tasks.text.suggest import suggest
    from drift.weak import RuleSet, label, rule

__version__ = "0.1.0"

# Imported when first used, so that `drift --help` need not wait for torch.
_HOME = {
    "Game": "drift.core",
    "HardStrategy": "drift.core",
    "Response": "drift.core",
    "SoftStrategy": "drift.core",
    "Strategy": "drift.core",
    "DriftClassifier": "drift.estimator",
    "RuleSet": "drift.weak",
    "compare": "drift.runs.comparing.compare",
    "evaluate": "drift.runs.predict",
    "fit": "drift.runs.fit",
    "label": "drift.weak",
    "load": "drift.runs.predict",
    "predict": "drift.runs.predict",
    "rule": "drift.weak",
    "suggest": "drift.tasks.text.suggest",
    "tsne": "drift.runs.tsne",
    "tune": "drift.runs.tuning.tune",
    "write_report": "drift.runs.report",
}

__all__ = [
    "DriftClassifier",
    "Game",
    "HardStrategy",
    "Response",
    "RuleSet",
    "SoftStrategy",
    "Strategy",
    "__version__",
    "compare",
    "evaluate",
    "fit",
    "label",
    "load",
    "predict",
    "rule",
    "suggest",
    "tsne",
    "tune",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'drift' has no attribute {name!r}; it has {', '.join(sorted(_HOME))}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
