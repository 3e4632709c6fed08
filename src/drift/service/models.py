"""Which models can be served: runs, and classifiers of vectors."""

from pathlib import Path
from typing import Any

import numpy as np

from drift.errors import ConfigError
from drift.estimator.classifier import DriftClassifier
from drift.estimator.files import SETTINGS
from drift.runs.load import load
from drift.runs.result import INT8, MODEL, ONNX, Run
from drift.tasks.service import CLASS_SCHEMA, Service, class_answer, vector_input


def opened(model: Any, *, int8: bool = False) -> tuple[Service, str]:
    """The service of a model, and its title. model: as for `drift.app`."""
    if isinstance(model, (str, Path)):
        folder = Path(model)
        model = DriftClassifier.load(folder) if (folder / SETTINGS).is_file() else load(folder)
    if isinstance(model, DriftClassifier):
        if int8:
            raise ConfigError("a classifier of vectors has no ONNX file; leave out int8")
        return _classifier_service(model), f"DriftClassifier, {len(model.classes_)} classes"
    if not isinstance(model, Run):
        raise ConfigError(f"a {type(model).__name__} cannot be served; give a run, a DriftClassifier, or its folder")
    title = f"{model.record.task}, {len(model.classes)} classes"
    return model.task.service(model.trained(), _onnx_file(model, int8=int8)), title


def _onnx_file(run: Run, *, int8: bool) -> Path | None:
    file = None if run.path is None else run.path / MODEL / (INT8 if int8 else ONNX)
    if file is not None and file.is_file():
        return file
    if int8:
        raise ConfigError(f"the run has no {INT8}; train it with --onnx, or serve it without --int8")
    return None


def _classifier_service(classifier: DriftClassifier) -> Service:
    width = int(classifier.n_features_in_)

    def probabilities(_: str, rows: Any) -> np.ndarray:
        return np.asarray(classifier.predict_proba(np.stack(rows)))

    answer = class_answer(classifier.classes_.tolist())
    return Service({"vectors": vector_input(width)}, probabilities, answer, CLASS_SCHEMA, "torch")
