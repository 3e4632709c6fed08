"""A function as a rule."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, overload

from drift.errors import ConfigError

Function = Callable[[Any], Any]  # of a text, a class or None; of tokens, spans


@dataclass(frozen=True)
class PythonRule:
    """A function as `@rule` makes it: of the text, to a class or None; of tokens, to spans (start, end, type)."""

    function: Function
    name: str
    weight: float = 1.0

    def __call__(self, text: Any) -> Any:
        return self.function(text)


@overload
def rule(function: Function) -> PythonRule: ...
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
    if not 0 <= weight < float("inf"):
        raise ConfigError(f"rule {name or function.__name__!r}: weight={weight} is not a number from 0 up")
    return PythonRule(function, name or function.__name__, weight)
