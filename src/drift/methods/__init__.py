"""All methods by their user-facing name, and how to find one that is defined outside this package."""

import inspect
from typing import Any

from drift.errors import ConfigError
from drift.imports import is_outside, load_object
from drift.methods.adamatch import AdaMatch
from drift.methods.bond import Bond
from drift.methods.cosine import Cosine
from drift.methods.fixmatch import FixMatch
from drift.methods.freematch import FreeMatch
from drift.methods.graphmix import GraphMix
from drift.methods.graphvat import GraphVAT
from drift.methods.hard_self_training import HardSelfTraining
from drift.methods.mean_teacher import MeanTeacher
from drift.methods.method import Method
from drift.methods.mixtext import MixText
from drift.methods.self_training import Drift, SelfTraining
from drift.methods.softmatch import SoftMatch
from drift.methods.supervised import Supervised, TrainOnDev
from drift.methods.uast import UAST
from drift.methods.uda import UDA
from drift.methods.vampire import Vampire
from drift.methods.westclass import WestClass
from drift.settings import Settings, nearest

__all__ = ["METHODS", "Method", "find_method", "is_outside"]

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        Drift,
        SelfTraining,
        Supervised,
        TrainOnDev,
        HardSelfTraining,
        MeanTeacher,
        Bond,
        UAST,
        UDA,
        MixText,
        Cosine,
        FixMatch,
        AdaMatch,
        FreeMatch,
        SoftMatch,
        GraphVAT,
        GraphMix,
        WestClass,
        Vampire,
    )
}
REQUIRED = ("name", "summary", "settings_type", "relative_cost")  # class attributes that every method sets


def find_method(method: str | type[Method]) -> type[Method]:
    """Return a method's class; ConfigError if there is none or it is not complete.

    method: a name in `METHODS`, `file.py:Class` or `package.module:Class`, or the class itself. A file or module is
    executed, so pass only names that the user gave.
    """
    if not isinstance(method, str):
        return _checked(method, getattr(method, "__name__", repr(method)))
    if is_outside(method):
        return _checked(load_object(method, "method", noun="class"), method)
    if method not in METHODS:
        raise ConfigError(f"there is no method {method!r}{nearest(method, METHODS)}")
    return METHODS[method]


def _checked(method: Any, name: str) -> type[Method]:
    """Return the class if it is a complete method. name: what to call it in messages."""
    if not (inspect.isclass(method) and issubclass(method, Method)):
        raise ConfigError(f"{name} is not a method; give a subclass of drift.methods.method.Method")
    lacking = [attribute for attribute in REQUIRED if not hasattr(method, attribute)]
    lacking += sorted(method.__abstractmethods__)
    if lacking:
        raise ConfigError(f"{name} lacks {', '.join(lacking)}; define them in the class")
    if not (inspect.isclass(method.settings_type) and issubclass(method.settings_type, Settings)):
        raise ConfigError(f"{name}.settings_type is not a settings class; give a subclass of drift.settings.Settings")
    return method
