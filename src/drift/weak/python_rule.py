"""A function as a rule."""

import functools
import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, overload

from drift.errors import ConfigError

Function = Callable[[Any], Any]  # of a text, a class or None; of tokens, spans


@dataclass(frozen=True)
class PythonRule:
    """A function as `@rule` makes it: of the text, to a class or None; of tokens, to spans (start, end, type)."""

    function: Function
    name: str
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ConfigError(f"{reprlib.repr(self.function)} is no function, so no rule can be made of it")
        if not isinstance(self.name, str) or not self.name:
            called = reprlib.repr(self.function)
            raise ConfigError(f"{self.name!r} is no name for the rule of {called}; give it a name with name=...")
        if not isinstance(self.weight, Real) or not 0 <= self.weight < float("inf"):
            raise ConfigError(f"rule {self.name!r}: weight={self.weight!r} is not a number from 0 up")

    def __call__(self, text: Any) -> Any:
        return self.function(text)


@overload
def rule(function: Function, *, name: str | None = None, weight: float = 1.0) -> PythonRule: ...
@overload
def rule(*, name: str | None = None, weight: float = 1.0) -> Callable[[Function], PythonRule]: ...
def rule(function: Any = None, *, name: str | None = None, weight: float = 1.0) -> Any:
    """Make a function a rule: it gets the text as it is, and returns the name of a class or None.

    In a `TokenRuleSet` it gets the tokens of a sentence, and returns spans: first token, the one behind the last, type.

    @rule
    def shouting(text):
        return "angry" if text.isupper() else None
    """
    if function is None:
        return functools.partial(rule, name=name, weight=weight)
    return PythonRule(function, getattr(function, "__name__", "") if name is None else name, weight)
