"""Rules, from YAML or Python, that vote on tokens."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.tags import OUTSIDE, Span
from drift.errors import ConfigError, DriftError, LabelError
from drift.settings import nearest
from drift.weak.gazetteer import CasePolicy, Gazetteer, read_phrases
from drift.weak.given import as_list
from drift.weak.python_file import run_rules
from drift.weak.python_rule import PythonRule
from drift.weak.schema import Location, Ties
from drift.weak.token_matching import Finder, Sentence, function_spans, text_pattern, token_pattern
from drift.weak.token_schema import TOKENS, TokenRule, VoteBy, parse_token_rules
from drift.weak.yaml_file import read_yaml


class TokenRuleSet:
    """Rules that vote on tokens.

    rules: each a dict with the keys of a rule in YAML, or a function made a rule by `@rule`, which gets the tokens and
    returns spans, (start, end, type) each.
    types: of entities; if None, those of the rules in order of appearance.
    votes: "span" or "token", ties: "abstain", "random" or "order"; see `label_tokens`.
    folder: where the files of gazetteers are.
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
        """Rules from a file: Python, with a TokenRuleSet called `rules`, if its name ends in .py, else YAML."""
        return run_rules(path, cls) if Path(path).suffix == ".py" else cls.from_yaml(path)

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> "TokenRuleSet":
        """Rules from a YAML file; everything wrong with it is said at once, each fault with its line."""
        content, where = read_yaml(Path(path))
        if not isinstance(content, Mapping) or content.get("task") != TOKENS:
            raise ConfigError(
                f"{path}: rules for tokens are needed, these are for texts; write `task: {TOKENS}` on top"
            )

        made = cls.__new__(cls)
        made._fill(content, where, Path(path).parent)
        return made

    @property
    def names(self) -> list[str]:
        return [rule.name for rule in self.rules]

    @property
    def weights(self) -> np.ndarray:
        return np.array([rule.weight for rule in self.rules])

    def find(self, sentence: Sentence) -> list[list[Span]]:
        """What each rule finds in a sentence; spans of one rule do not overlap."""
        return [find(sentence) for find in self._finders]

    def _fill(self, content: Mapping[str, Any], where: Callable[[Location], str], folder: Path) -> None:
        header, rules, faults = parse_token_rules(content)
        declared = content.get("types")  # not the header's: a fault elsewhere in it must not hide those of the rules
        known = tuple(name for name in declared if isinstance(name, str)) if isinstance(declared, list) else None
        finders: list[Finder] = []
        found_types: dict[str, None] = {}
        for at, rule in rules:
            try:
                finder, types = _finder(rule, known, folder)
                finders.append(finder)
                found_types.update(dict.fromkeys(types))
            except DriftError as error:
                faults.append((at, f"rule {rule.name!r}: {error}"))
        if faults or header is None:
            raise ConfigError("\n".join(f"{where(at)}: {said}" for at, said in faults))
        self.rules = tuple(rule for _, rule in rules)
        self.types = header.types or tuple(kind for kind in found_types if kind != OUTSIDE)
        self.votes: VoteBy = header.votes
        self.ties: Ties = header.ties
        self._finders = finders


def _finder(rule: TokenRule | PythonRule, types: tuple[str, ...] | None, folder: Path) -> tuple[Finder, Iterable[str]]:
    """What finds the spans of a rule, and the types that it can find."""
    if isinstance(rule, PythonRule):
        if types is None:
            raise ConfigError("what it may vote for is not written in it; declare `types`")
        return function_spans(rule, types), ()
    if rule.gazetteer is not None:
        phrases = read_phrases(folder / rule.gazetteer, rule.type)
        for kind, _, line in phrases:
            _check_type(kind, types, f"{folder / rule.gazetteer}:{line}: ")
        return _gazetteer(((kind, phrase) for kind, phrase, _ in phrases), rule.case)
    kind = str(rule.type)
    _check_type(kind, types, "")
    if rule.phrases is not None:
        return _gazetteer(((kind, phrase) for phrase in rule.phrases), rule.case)
    if rule.pattern is not None:
        return text_pattern(rule.pattern, kind), [kind]
    return token_pattern(str(rule.token), kind), [kind]


def _gazetteer(phrases: Iterable[tuple[str, str]], case: CasePolicy) -> tuple[Finder, Iterable[str]]:
    gazetteer = Gazetteer(phrases, case)
    return lambda sentence: gazetteer.find(sentence.tokens), gazetteer.types


def _check_type(kind: str, types: tuple[str, ...] | None, place: str) -> None:
    if types is not None and kind != OUTSIDE and kind not in types:
        raise LabelError(f"{place}{kind!r} is not among the types{nearest(kind, types)}")
