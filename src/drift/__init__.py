"""DRIFT: good classifiers from few or noisy labels, by differentiable self-training.

- `drift.Game`: the algorithm around any torch module, for a training loop of your own
- `drift.DriftClassifier`: an estimator with scikit-learn's interface; `y == -1` is unlabelled
- `drift.fit`, `drift.plan`, `drift.load`, `drift.predict`, `drift.evaluate`, `drift.suggest`: tables of texts or
  sentences, and graphs
- `drift.check`: what is suspicious in a table, such as wrong labels; `drift.curve`: would more labels help?
- `drift.compare`, `drift.tune`, `drift.tsne`, `drift.write_report`: runs side by side, search of settings, figures
- `drift.serve`, `drift.app`: a trained model as an HTTP service; `drift.push`: upload it
- `drift.label`, `drift.rule`, `drift.RuleSet`: rules that give weak labels
- `drift.Annotation`: label texts one by one, while a model learns and chooses the next
- `drift.Callback`: hooks into training
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drift.annotate.session import Annotation
    from drift.core import Game, HardStrategy, Response, SoftStrategy, Strategy
    from drift.estimator import DriftClassifier
    from drift.runs.check import check
    from drift.runs.comparing.compare import compare
    from drift.runs.curve import curve
    from drift.runs.fit import fit, plan
    from drift.runs.load import load
    from drift.runs.predict import evaluate, predict, suggest
    from drift.runs.push import push
    from drift.runs.report import write_report
    from drift.runs.tsne import tsne
    from drift.runs.tuning.tune import tune
    from drift.service.app import app, serve
    from drift.training.callbacks import Callback
    from drift.weak import RuleSet, label, rule

__version__ = "0.2.0"

# Imported when first used, so that `drift --help` does not wait for torch.
_HOME = {
    "Annotation": "drift.annotate.session",
    "Callback": "drift.training.callbacks",
    "Game": "drift.core",
    "HardStrategy": "drift.core",
    "Response": "drift.core",
    "SoftStrategy": "drift.core",
    "Strategy": "drift.core",
    "DriftClassifier": "drift.estimator",
    "RuleSet": "drift.weak",
    "app": "drift.service.app",
    "check": "drift.runs.check",
    "compare": "drift.runs.comparing.compare",
    "curve": "drift.runs.curve",
    "evaluate": "drift.runs.predict",
    "fit": "drift.runs.fit",
    "label": "drift.weak",
    "load": "drift.runs.load",
    "plan": "drift.runs.fit",
    "predict": "drift.runs.predict",
    "push": "drift.runs.push",
    "rule": "drift.weak",
    "serve": "drift.service.app",
    "suggest": "drift.runs.predict",
    "tsne": "drift.runs.tsne",
    "tune": "drift.runs.tuning.tune",
    "write_report": "drift.runs.report",
}

__all__ = [
    "Annotation",
    "Callback",
    "DriftClassifier",
    "Game",
    "HardStrategy",
    "Response",
    "RuleSet",
    "SoftStrategy",
    "Strategy",
    "__version__",
    "app",
    "check",
    "compare",
    "curve",
    "evaluate",
    "fit",
    "label",
    "load",
    "plan",
    "predict",
    "push",
    "rule",
    "serve",
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
