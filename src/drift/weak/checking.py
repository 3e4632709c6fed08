"""From what a file or a call says to rules, or to everything that is wrong with it at once."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from drift.errors import ConfigError
from drift.settings import nearest
from drift.weak.punctuation import nothing_left
from drift.weak.python_rule import PythonRule
from drift.weak.schema import Case, Faults, Header, Location, Rule, Ties, faults_of


@dataclass(frozen=True)
class Checked:
    """Rules that are right, and what holds for all of them."""

    rules: tuple[Rule | PythonRule, ...]
    classes: tuple[str, ...]
    ties: Ties
    strip_punctuation: bool


def check_rules(content: Any, where: Callable[[Location], str]) -> Checked:
    """content: a mapping with the keys of a rule file. where: what to call a place in it, for messages."""
    faults: Faults = []
    header = None
    try:
        header = Header.model_validate(content)
    except ValidationError as error:
        faults += faults_of(error, Header, ())
    entries = content.get("rules") if isinstance(content, Mapping) else None
    rules: list[Rule | PythonRule] = []
    for place, entry in enumerate(entries if isinstance(entries, list) else ()):
        name = entry.get("name") if isinstance(entry, Mapping) else getattr(entry, "name", None)
        called = f"rule {name!r}" if name else f"rule number {place + 1}"
        found: Faults = []
        try:
            rule = entry if isinstance(entry, PythonRule) else Rule.model_validate(entry)
            rules.append(rule)
            if header and header.strip_punctuation and isinstance(rule, Rule):
                found = nothing_left(rule, ("rules", place))
        except ValidationError as error:
            found = faults_of(error, Rule, ("rules", place))
        faults += [(at, f"{called}: {said}") for at, said in found]
    declared = content.get("classes") if isinstance(content, Mapping) else None
    faults += _faults_between(entries if isinstance(entries, list) else [], declared)
    if faults or not header:
        raise ConfigError("\n".join(f"{where(at)}: {said}" for at, said in faults))
    labels = (str(case.label) for rule in rules for case in all_cases(rule))
    return Checked(tuple(rules), header.classes or tuple(dict.fromkeys(labels)), header.ties, header.strip_punctuation)


def all_cases(rule: Rule | PythonRule) -> tuple[Case, ...]:
    """The cases in order; a rule with one condition is one case, a function or a column none."""
    if isinstance(rule, PythonRule) or rule.column is not None:
        return ()
    return rule.cases or (rule,)


def _faults_between(entries: list[Any], declared: Any) -> Faults:
    """What is wrong with rules beside each other and the classes, told from what can be read of them."""
    classes = [name for name in declared if isinstance(name, str)] if isinstance(declared, list) else None
    repeated = [name for name, count in Counter(classes).items() if count > 1]
    faults: Faults = [(("classes",), f"class {name!r} is there twice") for name in repeated]
    names: set[str] = set()
    for place, entry in enumerate(entries):
        said = _outline(entry)
        name, at = said.get("name"), ("rules", place)
        if isinstance(name, str):
            if name in names:
                faults.append(((*at, "name"), f"rule {name!r}: another rule has this name; give it one of its own"))
            names.add(name)
        if declared is None and "column" in said:
            faults.append((at, f"rule {name!r}: what it may vote for is not written in it; declare `classes`"))
        cases = said["cases"] if isinstance(said.get("cases"), (list, tuple)) else [said]
        for label in (case.get("label") for case in cases if isinstance(case, Mapping)):
            if classes is not None and isinstance(label, str) and label not in classes:
                faults.append((at, f"rule {name!r}: {label!r} is not among the classes{nearest(label, classes)}"))
    return faults


def _outline(entry: Any) -> Mapping[str, Any]:
    if isinstance(entry, PythonRule):
        return {"name": entry.name, "column": entry.function}  # as a column, it votes for what is not written in it
    if isinstance(entry, Rule):
        return entry.model_dump(exclude_none=True)
    return entry if isinstance(entry, Mapping) else {}
