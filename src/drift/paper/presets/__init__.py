"""Settings for each dataset in the paper: the paper's own, and others that fit a laptop. One YAML file per dataset.

A file has one section per setting: `weak` or `semi` for the usual model, or the name of another model in the paper
(`textcnn`, `grand`). Settings that a file leaves out are those of `base/`, one YAML file per task: fixed, so that other
defaults of a task do not change what a preset means.
"""

import copy
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from drift.errors import ConfigError
from drift.settings import nearest

GENERAL = {"description", "task", "source"}  # keys that are not settings
PROFILES = ("paper", "laptop")


def preset_names(task: str | None = None) -> list[str]:
    """Names of the datasets with presets. task: only those of this task (`text`, `tokens`, `nodes`)."""
    names = sorted(file.name.removesuffix(".yaml") for file in files(__name__).iterdir() if file.name.endswith(".yaml"))
    return names if task is None else [name for name in names if task_of(name) == task]


def task_of(name: str) -> str:
    """The task of a dataset: `text`, `tokens` or `nodes`."""
    return str(_content(name)["task"])


def description_of(name: str) -> str:
    """One line about a dataset."""
    return str(_content(name)["description"])


def preset(
    name: str, setting: str, profile: str = "paper", kind: str = "finetuned", *, task: str | None = None
) -> dict[str, Any]:
    """The settings of a dataset, in sections model, method and training.

    name: the dataset. setting: the section of its file. profile: "paper" or "laptop".
    kind: the kind of model, such as `frozen`, `finetuned` or `textcnn`; the laptop profile has settings for each.
    task: if given, the dataset must be for this task.
    """
    content = _content(_one_of(preset_names(task), name, f"preset for {task}" if task else "preset"))
    settings = [key for key in content if key not in GENERAL]
    profiles: dict[str, dict[str, Any]] = content[_one_of(settings, setting, f"setting of {name}")]
    chosen = profiles[_one_of(PROFILES, profile, "profile")]
    return chosen.get(kind, {}) if profile == "laptop" else chosen


PAPER = {  # what the paper does, whatever the task
    "method": {"prior": "uniform"},
    "training": {"until": "steps", "return_to_start": False},
}


NOT_PAPERS = {"method": {"unbalanced_class"}}  # shared settings that the paper does not have


def base_settings(task: str, kind: str, *, weak: bool, profile: str = "laptop") -> dict[str, Any]:
    """The settings that all presets of a task share, for a kind of model; `weak`: for noisy labels."""
    content: dict[str, Any] = copy.deepcopy(_parsed(f"base/{task}")[kind])
    noisy = content.pop("weak", {})
    layers = [PAPER, content, noisy if weak else {}]
    merged = {name: {k: v for layer in layers for k, v in layer.get(name, {}).items()} for name in {*PAPER, *content}}
    for group, names in NOT_PAPERS.items() if profile == "paper" else ():
        merged[group] = {name: value for name, value in merged[group].items() if name not in names}
    return merged


def published(method: str, dataset: str, steps: int, profile: str = "paper") -> dict[str, Any]:
    """Settings of a method as its authors published them, where its defaults are others.

    steps: of the second phase; some settings are a share of them.
    """
    content = _parsed("base/published").get(method, {})
    everywhere: dict[str, Any] = content.get("everywhere", {}).get(dataset, {})
    if profile != "paper":
        return dict(everywhere)
    shares = {name: max(1, round(share * steps)) for name, share in content.get("of_steps", {}).items()}
    return {**content.get("settings", {}), **shares, **content.get(dataset, {}), **everywhere}


def _content(name: str) -> dict[str, Any]:
    return copy.deepcopy(_parsed(name))  # callers may change it


@cache
def _parsed(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((files(__name__) / f"{name}.yaml").read_text("utf-8"))
    return content


def _one_of(known: Iterable[str], name: str, noun: str) -> str:
    if name in known:
        return name
    raise ConfigError(f"{name!r} is not a {noun}{nearest(name, known)}")
