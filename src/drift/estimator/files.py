"""Save a fitted `DriftClassifier` to a folder, and load it: weights as safetensors, the rest as JSON.

Loading never executes code from the folder.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_model, save_model

from drift.data.files import atomic_folder
from drift.errors import ConfigError, FileError
from drift.estimator.student import build_student
from drift.training.seeding import seeded

if TYPE_CHECKING:
    from torch import nn

    from drift.estimator.classifier import DriftClassifier
    from drift.estimator.student import ModuleFactory

FORMAT = "drift-classifier/1"
CHOICES = ("prior_", "prior_source_", "start_", "kept_", "kept_reason_")  # missing in files of earlier versions
WEIGHTS, SETTINGS = "model.safetensors", "classifier.json"


def save_classifier(classifier: "DriftClassifier", path: str | os.PathLike[str]) -> Path:
    """Write `classifier` to the folder `path` atomically; a folder written before is replaced. Return its path."""
    if not str(path):
        raise FileError("save() was given an empty path; name a folder")
    target = Path(path).absolute()
    if target.is_dir() and (others := {file.name for file in target.iterdir()} - {WEIGHTS, SETTINGS}):
        raise FileError(f"{target} holds other files ({min(others)}); give a new folder, or one that save() wrote")
    text = json.dumps(_content(classifier), indent=1, default=_plain)
    try:
        with atomic_folder(target) as folder:
            save_model(classifier.student_, str(folder / WEIGHTS))
            (folder / SETTINGS).write_text(text, encoding="utf-8")
    except FileError:
        raise
    except (OSError, SafetensorError) as error:
        raise FileError(f"{target} could not be written ({error}); what was there before is untouched") from error
    return target


def load_classifier(
    classifier_type: "type[DriftClassifier]", path: str | os.PathLike[str], module: "nn.Module | ModuleFactory | None"
) -> "DriftClassifier":
    """Read a classifier of type `classifier_type` from the folder `path`.

    `module` is the user's own module or its factory, needed if the classifier was created with one.
    """
    content = _read(Path(path))
    if content.get("own_module") and module is None:
        raise ConfigError(
            f"{path}: this model has a module of its own; pass load(path, module=...) with it or its factory"
        )
    try:
        classifier = _restored(classifier_type, content, module)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise FileError(f"{path}: {SETTINGS} is damaged ({type(error).__name__}: {error}); save it again") from error
    with seeded(0):  # the random initial weights are overwritten
        classifier.student_ = build_student(classifier, classifier.n_features_in_, len(classifier.classes_))
    try:
        load_model(classifier.student_, str(Path(path) / WEIGHTS))
    except (RuntimeError, SafetensorError, OSError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise FileError(
            f"{path}: {WEIGHTS} does not fit the module ({reason}); was it saved with another one?"
        ) from error
    classifier.student_.eval()
    return classifier


def _content(classifier: "DriftClassifier") -> dict[str, Any]:
    """Everything but the weights, for JSON."""
    parameters = classifier.get_params(deep=False)
    if not isinstance(parameters["random_state"], (int, np.integer, type(None))):
        parameters["random_state"] = None  # a generator's state is not a setting
    if isinstance(parameters["prior"], Mapping):
        parameters["prior"] = {"shares": list(parameters["prior"].items())}  # JSON would turn the labels into strings
    content = {
        "format": FORMAT,
        "parameters": {**parameters, "module": None},
        "own_module": parameters["module"] is not None,
        "classes": classifier.classes_.tolist(),
        "classes_dtype": classifier.classes_.dtype.str,
        "mean": classifier.mean_.tolist(),
        "scale": classifier.scale_.tolist(),
        "feature_names": getattr(classifier, "feature_names_in_", np.array([])).tolist(),
        "label_budget": classifier.label_budget_,
        "n_iter": classifier.n_iter_,
        "trace": classifier.trace_,
        "choices": {name: _plain(getattr(classifier, name)) for name in CHOICES if hasattr(classifier, name)},
    }
    if hasattr(classifier, "transduction_"):  # not if it was loaded from a file without it
        codes = np.searchsorted(classifier.classes_, classifier.transduction_)
        content["transduction"] = " ".join(map(str, codes.tolist()))  # a string: a list would take a line per row
    return content


def _restored(
    classifier_type: "type[DriftClassifier]", content: dict[str, Any], module: "nn.Module | ModuleFactory | None"
) -> "DriftClassifier":
    """The classifier without its student."""
    parameters = {**content["parameters"], "module": module}
    if isinstance(parameters["prior"], dict):
        parameters["prior"] = dict(parameters["prior"]["shares"])
    classifier = classifier_type(**parameters)
    classifier.classes_ = np.array(content["classes"], dtype=np.dtype(content["classes_dtype"]))
    classifier.mean_, classifier.scale_ = np.array(content["mean"]), np.array(content["scale"])
    if classifier.mean_.shape != classifier.scale_.shape:
        raise ValueError(f"{len(classifier.mean_)} means, {len(classifier.scale_)} scales")
    classifier.n_features_in_ = len(classifier.mean_)
    if content["feature_names"]:
        classifier.feature_names_in_ = np.array(content["feature_names"], dtype=object)
    classifier.label_budget_, classifier.trace_ = content["label_budget"], content["trace"]
    # The next two are missing in files of earlier versions, in which every fit took all its steps.
    if "n_iter" not in content:
        content["n_iter"] = int(classifier.initial_steps) + int(classifier.steps)
    classifier.n_iter_ = content["n_iter"]
    for name, value in content.get("choices", {}).items():
        setattr(classifier, name, np.array(value) if name == "prior_" else value)
    if "transduction" in content:
        codes = np.array(content["transduction"].split(), dtype=np.int64)
        classifier.transduction_ = classifier.classes_[codes]
    return classifier


def _read(folder: Path) -> dict[str, Any]:
    try:
        content = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(
            f"{folder} is not a saved DriftClassifier ({error}); give the folder that save() wrote"
        ) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FileError(f"{folder}/{SETTINGS} is not {FORMAT}; it was written by another program or version")
    return content


def _plain(value: object) -> object:
    """NumPy values as Python numbers and lists, for JSON."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    raise ConfigError(f"a setting of type {type(value).__name__} cannot be saved; use numbers, strings and lists")
