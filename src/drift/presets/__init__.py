"""The settings of each dataset in the paper, and those that fit a laptop: one YAML a dataset, read here.

A setting is `weak` or `semi` with the usual model, or the name of another model the paper tries (`textcnn`, `grand`).
"""

import difflib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import yaml

from drift.errors import ConfigError

ABOUT = {"description", "task", "source"}  # what is true of a dataset in every setting
PROFILES = ("paper", "laptop")
DEFAULTS = "defaults.yaml"


def preset_names() -> list[str]:
    """The datasets there are presets for."""
    found = [file.name for file in files(__name__).iterdir()]
    return sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml") and name != DEFAULTS)


def preset(name: str, setting: str, profile: str = "paper", kind: str = "finetuned") -> dict[str, Any]:
    """The configuration of a dataset in one setting and profile, in sections model, method and training.

    kind: of model, `frozen`, `finetuned` or `textcnn`: a laptop's profile differs by it. The paper fine-tunes.
    """
    content = yaml.safe_load((files(__name__) / f"{_one_of(preset_names(), name, 'preset')}.yaml").read_text("utf-8"))
    settings = [key for key in content if key not in ABOUT]
    profiles: dict[str, dict[str, Any]] = content[_one_of(settings, setting, f"setting of {name}")]
    found = profiles[_one_of(PROFILES, profile, "profile")]
    return found.get(kind, {}) if profile == "laptop" else found


def _one_of(known: Sequence[str], name: str, kind: str) -> str:
    if name in known:
        return name
    close = difflib.get_close_matches(name, known, n=1)
    meant = f"did you mean {close[0]!r}? " if close else ""
    raise ConfigError(f"{name!r} is not a {kind}; {meant}there are: {', '.join(known)}")


def defaults(kind: str, *, weak: bool) -> dict[str, Any]:
    """Where nothing else is said: the configuration for a kind of model, `frozen`, `finetuned` or `textcnn`."""
    content: dict[str, dict[str, Any]] = yaml.safe_load((files(__name__) / DEFAULTS).read_text("utf-8"))
    found = content[_one_of(list(content), kind, "kind of model")]
    over = found.pop("weak", {})
    if weak:
        for section, values in over.items():
            found[section] = {**found.get(section, {}), **values}
    return found
