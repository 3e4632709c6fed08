"""A fitted `DriftClassifier` as a folder: weights in safetensors, the rest in JSON. Reading it runs none of it."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load_model, save_model

from drift.data.files import atomic_folder
from drift.errors import ConfigError, FileError
from drift.training.seeding import seeded

if TYPE_CHECKING:
    from torch import nn

    from drift.estimator import DriftClassifier, ModuleFactory

FORMAT = "drift-classifier/1"
WEIGHTS, SETTINGS = "model.safetensors", "classifier.json"


def save(classifier: "DriftClassifier", path: str | os.PathLike[str]) -> Path:
    """Write the folder whole; a folder that is already there is replaced."""
    parameters = classifier.get_params(deep=False)
    if not isinstance(parameters["random_state"], (int, np.integer, type(None))):
        parameters["random_state"] = None  # a generator's state is not a setting
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
        "trace": classifier.trace_,
    }
    if not str(path):
        raise FileError("save() was given an empty path; name a folder")
    target = Path(path).absolute()
    if target.is_dir() and (others := {file.name for file in target.iterdir()} - {WEIGHTS, SETTINGS}):
        raise FileError(f"{target} holds other files ({min(others)}); give a new folder, or one that save() wrote")
    try:
        with atomic_folder(target) as folder:
            save_model(classifier.student_, str(folder / WEIGHTS))
            (folder / SETTINGS).write_text(json.dumps(content, indent=1, default=_plain), encoding="utf-8")
    except FileError:
        raise
    except (OSError, SafetensorError) as error:
        raise FileError(f"{target} could not be written ({error}); what was there before is untouched") from error
    return target


def load(
    kind: "type[DriftClassifier]", path: str | os.PathLike[str], module: "nn.Module | ModuleFactory | None"
) -> "DriftClassifier":
    """Build the classifier that `save` wrote, with `module` where it had one of the user's own."""
    content = _read(Path(path))
    if content.get("own_module") and module is None:
        raise ConfigError(
            f"{path}: this model has a module of its own; pass load(path, module=...) with it or its factory"
        )
    try:
        classifier = _restored(kind, content, module)
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{path}: {SETTINGS} is damaged ({type(error).__name__}: {error}); save it again") from error
    with seeded(0):  # the weights drawn here are overwritten
        classifier.student_ = classifier._build(classifier.n_features_in_, len(classifier.classes_))
    try:
        load_model(classifier.student_, str(Path(path) / WEIGHTS))
    except (RuntimeError, SafetensorError, OSError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise FileError(
            f"{path}: {WEIGHTS} does not fit the module ({reason}); was it saved with another one?"
        ) from error
    classifier.student_.eval()
    return classifier


def _restored(
    kind: "type[DriftClassifier]", content: dict[str, Any], module: "nn.Module | ModuleFactory | None"
) -> "DriftClassifier":
    """Everything but the weights."""
    classifier = kind(**{**content["parameters"], "module": module})
    classifier.classes_ = np.array(content["classes"], dtype=np.dtype(content["classes_dtype"]))
    classifier.mean_, classifier.scale_ = np.array(content["mean"]), np.array(content["scale"])
    if classifier.mean_.shape != classifier.scale_.shape:
        raise ValueError(f"{len(classifier.mean_)} means, {len(classifier.scale_)} scales")
    classifier.n_features_in_ = len(classifier.mean_)
    if content["feature_names"]:
        classifier.feature_names_in_ = np.array(content["feature_names"], dtype=object)
    classifier.label_budget_, classifier.trace_ = content["label_budget"], content["trace"]
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
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise ConfigError(f"a setting of type {type(value).__name__} cannot be saved; use numbers, strings and lists")
