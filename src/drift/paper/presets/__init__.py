"""The settings of each dataset in the paper, and those that fit a laptop: one YAML a dataset, read here.

A setting is `weak` or `semi` with the usual model, or the name of another model the paper tries (`textcnn`, `grand`).
"""

import copy
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from drift.errors import ConfigError
from drift.settings import nearest

ABOUT = {"description", "task", "source"}  # what is true of a dataset in every setting
PROFILES = ("paper", "laptop")
DEFAULTS = "defaults"


def preset_names(task: str | None = None) -> list[str]:
    """The datasets there are presets for, of one task (`text`, `tokens`, `nodes`) or of all."""
    stems = [file.name.removesuffix(".yaml") for file in files(__name__).iterdir() if file.name.endswith(".yaml")]
    names = sorted(stem for stem in stems if stem != DEFAULTS)
    return names if task is None else [name for name in names if _content(name)["task"] == task]


def preset(
    name: str, setting: str, profile: str = "paper", kind: str = "finetuned", *, task: str | None = None
) -> dict[str, Any]:
    """The configuration of a dataset in one setting and profile, in sections model, method and training.

    kind: of model, `frozen`, `finetuned` or `textcnn`: a laptop's profile differs by it. The paper fine-tunes.
    task: what the dataset must be for, if it matters.
    """
    content = _content(_one_of(preset_names(task), name, f"preset for {task}" if task else "preset"))
    settings = [key for key in content if key not in ABOUT]
    profiles: dict[str, dict[str, Any]] = content[_one_of(settings, setting, f"setting of {name}")]
    found = profiles[_one_of(PROFILES, profile, "profile")]
    return found.get(kind, {}) if profile == "laptop" else found


def _content(name: str) -> dict[str, Any]:
    return copy.deepcopy(_parsed(name))  # callers change what they get


@cache
def _parsed(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((files(__name__) / f"{name}.yaml").read_text("utf-8"))
    return found


def _one_of(known: Iterable[str], name: str, kind: str) -> str:
    if name in known:
        return name
    raise ConfigError(f"{name!r} is not a {kind}{nearest(name, known)}")


def defaults(task: str, kind: str, *, weak: bool) -> dict[str, Any]:
    """Where nothing else is said: the configuration for a task and a kind of model."""
    content = _content(DEFAULTS)[task]
    found: dict[str, Any] = content[_one_of(content, kind, f"kind of model for {task}")]
    over = found.pop("weak", {})
    if weak:
        for section, values in over.items():
            found[section] = {**found.get(section, {}), **values}
    return found
