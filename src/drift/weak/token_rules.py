"""Rules that vote on tokens, from YAML, dictionaries or Python functions."""

import copy
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.tags import OUTSIDE, Span
from drift.errors import ConfigError, DriftError, LabelError
from drift.settings import nearest
from drift.weak.arguments import as_list
from drift.weak.dictionaries import is_table, plural_of, read_dictionary, write_dictionary
from drift.weak.gazetteer import Gazetteer
from drift.weak.python_rule import PythonRule
from drift.weak.rule_files import read_yaml, run_rules
from drift.weak.schema import Location, Ties
from drift.weak.token_matching import Finder, Sentence, function_spans, text_pattern, token_pattern
from drift.weak.token_schema import TOKENS, TokenRule, VoteBy, parse_token_rules

SAVED = "rules.yaml"  # in the folder of a trained tagger


class TokenRuleSet:
    """Rules that vote on tokens.

    rules: each a dict with the keys of a rule in YAML, or a function decorated with `@rule` that takes the tokens and
    returns spans (start, end, type).
    types: the entity types; default: those of the rules, in order of appearance.
    votes: "span" or "token"; see `label_tokens`.
    ties: "abstain", "random" or "order"; see `label_tokens`.
    folder: the folder of the gazetteer files.
    """

    def __init__(
        self,
        rules: Iterable[Mapping[str, Any] | TokenRule | PythonRule],
        types: Iterable[str] | None = None,
        *,
        votes: VoteBy = "span",
        ties: Ties = "abstain",
        folder: str | os.PathLike[str] = ".",
    ) -> None:
        content: dict[str, Any] = {
            "task": TOKENS,
            "rules": as_list(rules, "rules", ConfigError),
            "votes": votes,
            "ties": ties,
        }
        if types is not None:
            content["types"] = as_list(types, "types", ConfigError)
        self._fill(content, lambda at: "rules", Path(folder))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> "TokenRuleSet":
        """Read rules from a file.

        YAML; Python with a TokenRuleSet called `rules`, if the name ends in .py; or a dictionary, if it is a table.
        """
        file = Path(path)
        if is_table(file):
            return cls([{"name": "dictionary", "gazetteer": file.name}], folder=file.parent)
        return run_rules(path, cls) if file.suffix == ".py" else cls.from_yaml(path)

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> "TokenRuleSet":
        """Read rules from a YAML file. An error lists all faults, each with its line."""
        content, where = read_yaml(Path(path))
        if not isinstance(content, Mapping) or content.get("task") != TOKENS:
            raise ConfigError(f"{path}: these rules are for texts, not for tokens; write `task: {TOKENS}` on top")

        rule_set = cls.__new__(cls)
        rule_set._fill(content, where, Path(path).parent)
        return rule_set

    @property
    def names(self) -> list[str]:
        """The names of the rules."""
        return [rule.name for rule in self.rules]

    @property
    def weights(self) -> np.ndarray:
        """The weights of the rules, (M,)."""
        return np.array([rule.weight for rule in self.rules])

    def find(self, sentence: Sentence) -> list[list[Span]]:
        """The spans that each rule finds in a sentence; the spans of one rule do not overlap."""
        return [find(sentence) for find in self._finders]

    def _fill(self, content: Mapping[str, Any], where: Callable[[Location], str], folder: Path) -> None:
        """Validate the content of a rule file, and set the attributes. where: names a location, for error messages."""
        header, rules, faults = parse_token_rules(content)
        # Not header.types: a fault elsewhere in the header must not hide faults of the rules.
        declared = content.get("types")
        known = tuple(name for name in declared if isinstance(name, str)) if isinstance(declared, list) else None
        finders: list[Finder] = []
        rule_types: dict[str, None] = {}
        for at, rule in rules:
            try:
                finder, types = _finder(rule, known, folder)
                finders.append(finder)
                rule_types.update(dict.fromkeys(types))
            except DriftError as error:
                faults.append((at, f"rule {rule.name!r}: {error}"))
        if faults or header is None:
            raise ConfigError("\n".join(f"{where(at)}: {message}" for at, message in faults))
        self.rules = tuple(rule for _, rule in rules)
        self.types = header.types or tuple(name for name in rule_types if name != OUTSIDE)
        self.votes: VoteBy = header.votes
        self.ties: Ties = header.ties
        self._finders = finders

    def declarative(self) -> "TokenRuleSet | None":
        """The same rules without functions, with the same types; None if nothing is left."""
        kept = [number for number, rule in enumerate(self.rules) if isinstance(rule, TokenRule)]
        if not kept:
            return None
        rules = copy.copy(self)
        rules.rules = tuple(self.rules[number] for number in kept)
        rules._finders = [self._finders[number] for number in kept]
        return rules

    def save(self, folder: Path) -> None:
        """Write the rules, which must be declarative, and their dictionaries into a folder; `from_folder` reads it."""
        folder.mkdir(parents=True, exist_ok=True)
        rules = []
        for number, (rule, find) in enumerate(zip(self.rules, self._finders, strict=True)):
            if not isinstance(rule, TokenRule):
                raise ConfigError(f"rule {rule.name!r} is a function, which cannot be saved; write it as a pattern")
            content = rule.model_dump(exclude_defaults=True, exclude={"phrases", "gazetteer", "plural", "case"})
            if isinstance(find, InDictionary):
                content["gazetteer"] = f"{number}.csv"
                write_dictionary(folder / content["gazetteer"], find.gazetteer)
                content.pop("type", None)
            rules.append(content)
        header = {"task": TOKENS, "types": self.types, "votes": self.votes, "ties": self.ties, "rules": rules}
        text = json.dumps(header, indent=2, ensure_ascii=False)  # JSON is YAML
        (folder / SAVED).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def from_folder(cls, folder: Path) -> "TokenRuleSet":
        """Read what `save` wrote. Files outside the folder are refused: the folder may be another person's."""
        content, _ = read_yaml(folder / SAVED)
        rules = content.get("rules") if isinstance(content, Mapping) else None
        for rule in rules if isinstance(rules, list) else ():
            name = rule.get("gazetteer") if isinstance(rule, Mapping) else None
            if name is not None and not re.fullmatch(r"\d+\.csv", str(name)):
                raise ConfigError(f"{folder / SAVED}: {name!r} is not a dictionary inside the folder")
        return cls.from_yaml(folder / SAVED)


def _finder(rule: TokenRule | PythonRule, types: tuple[str, ...] | None, folder: Path) -> tuple[Finder, Iterable[str]]:
    """The function that finds the spans of a rule, and the types that they can have. types: the declared ones."""
    if isinstance(rule, PythonRule):
        if types is None:
            raise ConfigError("it does not say which types it can vote for; declare `types`")
        return function_spans(rule, types), ()
    if rule.gazetteer is not None:
        gazetteer = Gazetteer(case=rule.case)
        for entry in read_dictionary(folder / rule.gazetteer, rule.type, plural=rule.plural):
            _check_type(entry.type, types, f"{entry.where}: ")
            gazetteer.add(entry.type, entry.phrase, entry.case)
        return _finder_of(gazetteer)
    entity_type = str(rule.type)
    _check_type(entity_type, types, "")
    if rule.phrases is not None:
        more = map(plural_of, rule.phrases) if rule.plural else ()
        return _finder_of(Gazetteer(((entity_type, phrase) for phrase in (*rule.phrases, *more)), rule.case))
    if rule.pattern is not None:
        return text_pattern(rule.pattern, entity_type), [entity_type]
    return token_pattern(str(rule.token), entity_type), [entity_type]


@dataclass(frozen=True)
class InDictionary:
    """A finder of phrases."""

    gazetteer: Gazetteer

    def __call__(self, sentence: Sentence) -> list[Span]:
        return self.gazetteer.find(sentence.tokens)


def _finder_of(gazetteer: Gazetteer) -> tuple[Finder, Iterable[str]]:
    return InDictionary(gazetteer), gazetteer.types


def _check_type(entity_type: str, types: tuple[str, ...] | None, prefix: str) -> None:
    """Raise a LabelError if a type is not among the declared ones. prefix: the beginning of the message."""
    if types is not None and entity_type != OUTSIDE and entity_type not in types:
        raise LabelError(f"{prefix}{entity_type!r} is not among the types{nearest(entity_type, types)}")
