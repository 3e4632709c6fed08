"""What a rule for tokens may say, strict as rules for texts are."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from drift.data.tags import OUTSIDE
from drift.weak.gazetteer import CasePolicy
from drift.weak.python_rule import PythonRule
from drift.weak.schema import Faults, Location, Pattern, Strict, Ties, Word, Words, faults_of

TOKENS = "tokens"  # the task that tells these files from those with rules for texts
VoteBy = Literal["span", "token"]


class TokenRule(Strict):
    """One source of votes: a list of phrases, in a file or here, or a pattern over the text or over a token."""

    name: Word
    type: Word | None = Field(default=None, description="What is found is of this type; O: part of no entity.")
    gazetteer: Word | None = Field(
        default=None, description="A file with a phrase a line, or with type, tab, phrase where the rule has no type."
    )
    phrases: Words | None = Field(default=None, description="The phrases themselves.")
    pattern: Pattern | None = Field(default=None, description="This, in the syntax of re2, is found in the text.")
    token: Pattern | None = Field(default=None, description="This, in the syntax of re2, is found in a token.")
    case: CasePolicy = Field(default="smart", description="Of phrases: whether capitals count.")
    weight: float = Field(default=1.0, ge=0, allow_inf_nan=False, description="What its vote counts.")

    @model_validator(mode="after")
    def _one_question(self) -> "TokenRule":
        known = ("gazetteer", "phrases", "pattern", "token")
        asked = [name for name in known if getattr(self, name) is not None]
        if len(asked) != 1:
            raise ValueError(f"it has {' and '.join(asked) or 'none'} of {', '.join(known)}; give it one")
        if self.type is None and self.gazetteer is None:
            raise ValueError("type is missing; say what it votes for")
        if "case" in self.model_fields_set and asked[0] in ("pattern", "token"):
            raise ValueError("case goes with phrases; capitals count in a pattern, unless it begins with (?i)")
        return self


class TokenHeader(Strict):
    """What is said once for all rules."""

    task: Literal["tokens"]
    types: Words | None = Field(default=None, description="The types of entities; taken from the rules if left out.")
    votes: VoteBy = Field(default="span", description="Whether spans are voted for, or each token by itself.")
    ties: Ties = "abstain"
    rules: list[Any]

    @model_validator(mode="after")
    def _sensible(self) -> "TokenHeader":
        if not self.rules:
            raise ValueError("rules: it is empty; write at least one rule")
        if OUTSIDE in (self.types or ()):
            raise ValueError(f"types: {OUTSIDE} is no type of entity; leave it out, rules may vote for it all the same")
        if repeated := [name for name, count in Counter(self.types).items() if count > 1]:
            raise ValueError(f"types: {repeated[0]!r} is there twice; remove one")
        return self


def parse_token_rules(
    content: Mapping[str, Any],
) -> tuple[TokenHeader | None, list[tuple[Location, TokenRule | PythonRule]], Faults]:
    """The header, None if it is wrong; the rules that are right, with their places; and what is wrong with others."""
    faults: Faults = []
    header = None
    try:
        header = TokenHeader.model_validate(content)
    except ValidationError as error:
        faults += faults_of(error, TokenHeader, ())
    entries = content.get("rules")
    rules: list[tuple[Location, TokenRule | PythonRule]] = []
    names: set[str] = set()
    for place, entry in enumerate(entries if isinstance(entries, list) else ()):
        at = ("rules", place)
        try:
            rule = entry if isinstance(entry, PythonRule) else TokenRule.model_validate(entry)
        except ValidationError as error:
            name = entry.get("name") if isinstance(entry, Mapping) else None
            called = f"rule {name!r}" if name else f"rule number {place + 1}"
            faults += [(deep, f"{called}: {said}") for deep, said in faults_of(error, TokenRule, at)]
            continue
        if rule.name in names:
            faults.append((at, f"rule {rule.name!r}: another rule has this name; give it one of its own"))
        names.add(rule.name)
        rules.append((at, rule))
    return header, rules, faults
