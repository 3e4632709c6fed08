"""Validate rules from a file or a call, and report all faults at once."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from drift.errors import ConfigError
from drift.settings import nearest
from drift.weak.punctuation import punctuation_faults
from drift.weak.python_rule import PythonRule
from drift.weak.schema import Case, Faults, Header, Location, Rule, Ties, faults_of


@dataclass(frozen=True)
class CheckedRules:
    """Valid rules and the settings that apply to all of them."""

    rules: tuple[Rule | PythonRule, ...]
    classes: tuple[str, ...]
    ties: Ties
    strip_punctuation: bool


def check_rules(content: Any, where: Callable[[Location], str]) -> CheckedRules:
    """Validate rules; a ConfigError lists every fault, one per line.

    content: a mapping with the keys of a rule file. where: names a location in it, for error messages.
    """
    faults: Faults = []
    header = None
    try:
        header = Header.model_validate(content)
    except ValidationError as error:
        faults += faults_of(error, Header, ())
    entries = content.get("rules") if isinstance(content, Mapping) else None
    rules: list[Rule | PythonRule] = []
    for number, entry in enumerate(entries if isinstance(entries, list) else ()):
        name = entry.get("name") if isinstance(entry, Mapping) else getattr(entry, "name", None)
        title = f"rule {name!r}" if name else f"rule number {number + 1}"
        rule_faults: Faults = []
        try:
            rule = entry if isinstance(entry, PythonRule) else Rule.model_validate(entry)
            rules.append(rule)
            if header and header.strip_punctuation and isinstance(rule, Rule):
                rule_faults = punctuation_faults(rule, ("rules", number))
        except ValidationError as error:
            rule_faults = faults_of(error, Rule, ("rules", number))
        faults += [(at, f"{title}: {message}") for at, message in rule_faults]
    declared = content.get("classes") if isinstance(content, Mapping) else None
    faults += _faults_between(entries if isinstance(entries, list) else [], declared)
    if faults or not header:
        raise ConfigError("\n".join(f"{where(at)}: {message}" for at, message in faults))
    labels = (str(case.label) for rule in rules for case in all_cases(rule))
    classes = header.classes or tuple(dict.fromkeys(labels))
    return CheckedRules(tuple(rules), classes, header.ties, header.strip_punctuation)


def all_cases(rule: Rule | PythonRule) -> tuple[Case, ...]:
    """The cases of a rule in order: one for a single condition, none for a function or a column."""
    if isinstance(rule, PythonRule) or rule.column is not None:
        return ()
    return rule.cases or (rule,)


def _faults_between(entries: list[Any], declared: Any) -> Faults:
    """Faults that concern several rules or the classes: repeated names, unknown labels.

    Works on the raw entries, so that these faults are reported even if an entry is invalid. declared: the raw value of
    `classes`.
    """
    classes = [name for name in declared if isinstance(name, str)] if isinstance(declared, list) else None
    repeated = [name for name, count in Counter(classes).items() if count > 1]
    faults: Faults = [(("classes",), f"class {name!r} is listed twice") for name in repeated]
    names: set[str] = set()
    for number, entry in enumerate(entries):
        outline = _outline(entry)
        name, at = outline.get("name"), ("rules", number)
        if isinstance(name, str):
            if name in names:
                faults.append(((*at, "name"), f"rule {name!r}: another rule has this name; rename one of them"))
            names.add(name)
        if declared is None and "column" in outline:
            faults.append((at, f"rule {name!r}: it does not say which classes it can vote for; declare `classes`"))
        cases = outline["cases"] if isinstance(outline.get("cases"), (list, tuple)) else [outline]
        for label in (case.get("label") for case in cases if isinstance(case, Mapping)):
            if classes is not None and isinstance(label, str) and label not in classes:
                faults.append((at, f"rule {name!r}: {label!r} is not among the classes{nearest(label, classes)}"))
    return faults


def _outline(entry: Any) -> Mapping[str, Any]:
    """The keys and values of an entry as far as they can be read."""
    if isinstance(entry, PythonRule):
        return {"name": entry.name, "column": entry.function}  # like a column, it does not state its classes
    if isinstance(entry, Rule):
        return entry.model_dump(exclude_none=True)
    return entry if isinstance(entry, Mapping) else {}
