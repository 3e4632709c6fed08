"""Every public name is documented: each parameter with its type, and its default if it has one."""

import inspect
import re
from typing import Any

import pytest

import drift

NAMES = [name for name in drift.__all__ if not name.startswith("__")]


def parameters_of(name: str) -> list[inspect.Parameter]:
    """The parameters of a function, or of the constructor of a class that has one of its own."""
    found: Any = getattr(drift, name)
    if inspect.isclass(found) and found.__init__ is object.__init__:
        return []
    return [parameter for parameter in inspect.signature(found).parameters.values() if parameter.name != "self"]


def documented(docstring: str) -> dict[str, str]:
    """The type of each parameter in a numpydoc section; several may share a line, and a line may refer elsewhere."""
    section = re.search(r"Parameters\n-+\n(.*?)(?=\n\n?\w+\n-+\n|\Z)", docstring, re.S)
    types = {}
    for line in section[1].split("\n") if section else ():
        if line and not line.startswith(" "):
            names, _, kind = line.partition(" : ")
            types |= {each.strip().lstrip("*"): kind for each in names.split(",")}
    return types


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_has_a_type_and_a_default(name: str) -> None:
    docstring = inspect.getdoc(getattr(drift, name))
    assert docstring
    types = documented(docstring)
    for parameter in parameters_of(name):
        assert parameter.name in types, f"drift.{name}: {parameter.name} is not documented"
        if types[parameter.name] and parameter.default not in (inspect.Parameter.empty, None, ()):
            assert "default" in types[parameter.name], f"drift.{name}: {parameter.name} lacks its default"


def test_the_reader_of_docstrings_sees_parameters() -> None:
    parameters = "Parameters\n----------\na : int, default=1\n    An a.\nb, c\n    See d."
    types = documented(f"A.\n\n{parameters}\n\nReturns\n-------\nint")
    assert types == {"a": "int, default=1", "b": "", "c": ""}
