"""Python functions as rules."""

import functools
import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, overload

from drift.errors import ConfigError

Function = Callable[[Any], Any]  # text -> class name or None; tokens -> spans


@dataclass(frozen=True)
class PythonRule:
    """A function as a rule; usually made by `@rule`.

    function: takes a text and returns a class name or None. In a `TokenRuleSet` it takes the tokens of a sentence and
    returns spans (start, end, type).
    name: the name of the rule, unique in its rule set.
    weight: the weight of its votes.
    """

    function: Function
    name: str
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ConfigError(f"{reprlib.repr(self.function)} is not a function; a rule needs one")
        if not isinstance(self.name, str) or not self.name:
            function = reprlib.repr(self.function)
            raise ConfigError(f"{self.name!r} is not a name for the rule of {function}; give it one with name=...")
        if not isinstance(self.weight, Real) or not 0 <= self.weight < float("inf"):
            raise ConfigError(f"rule {self.name!r}: weight={self.weight!r} is not a number >= 0")

    def __call__(self, text: Any) -> Any:
        return self.function(text)


@overload
def rule(function: Function, *, name: str | None = None, weight: float = 1.0) -> PythonRule: ...
@overload
def rule(*, name: str | None = None, weight: float = 1.0) -> Callable[[Function], PythonRule]: ...
def rule(function: Any = None, *, name: str | None = None, weight: float = 1.0) -> Any:
    """Make a rule from a function. Works as a decorator, with or without arguments.

    Parameters
    ----------
    function : callable, default=None
        Takes the text unchanged and returns a class name, or None to abstain. In a `TokenRuleSet` it takes the tokens
        of a sentence and returns spans (start, end, type), where `end` is the token after the last.
    name : str, default=None
        Name of the rule; by default the name of the function.
    weight : float, default=1.0
        Weight of its votes.

    Examples
    --------

        @rule
        def shouting(text):
            return "angry" if text.isupper() else None
    """
    if function is None:
        return functools.partial(rule, name=name, weight=weight)
    return PythonRule(function, getattr(function, "__name__", "") if name is None else name, weight)
