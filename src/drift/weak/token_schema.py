"""The format of rules for tokens, as strict as that of rules for texts."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from drift.data.tags import OUTSIDE
from drift.weak.gazetteer import CasePolicy
from drift.weak.python_rule import PythonRule
from drift.weak.schema import Faults, Location, Pattern, Strict, Ties, Word, Words, faults_of

TOKENS = "tokens"  # the value of `task` in files with rules for tokens
VoteBy = Literal["span", "token"]


class TokenRule(Strict):
    """One source of votes: a list of phrases, in a file or inline, or a pattern over the text or over a token."""

    name: Word
    type: Word | None = Field(default=None, description="Entity type of what the rule finds; O: outside of entities.")
    gazetteer: Word | None = Field(
        default=None,
        description="A file with one phrase per line, with TYPE, a tab and a phrase if the rule has no type; or a table"
        " with columns phrase, type, aliases and case.",
    )
    phrases: Words | None = Field(default=None, description="The phrases, inline.")
    pattern: Pattern | None = Field(default=None, description="Pattern (re2 syntax) to find in the text.")
    token: Pattern | None = Field(default=None, description="Pattern (re2 syntax) to find in a single token.")
    case: CasePolicy = Field(default="smart", description="Whether phrases match case: exact, lower or smart.")
    plural: bool = Field(default=False, description="Whether the regular English plural of each phrase is found, too.")
    weight: float = Field(default=1.0, ge=0, allow_inf_nan=False, description="Weight of its votes.")

    @model_validator(mode="after")
    def _one_question(self) -> "TokenRule":
        known = ("gazetteer", "phrases", "pattern", "token")
        asked = [name for name in known if getattr(self, name) is not None]
        if len(asked) != 1:
            raise ValueError(f"it has {' and '.join(asked) or 'none'} of {', '.join(known)}; give it one")
        if self.type is None and self.gazetteer is None:
            raise ValueError("type is missing; name the type it votes for")
        if "case" in self.model_fields_set and asked[0] in ("pattern", "token"):
            raise ValueError("case goes with phrases; a pattern matches case unless it begins with (?i)")
        if self.plural and asked[0] in ("pattern", "token"):
            raise ValueError("plural goes with phrases; a pattern matches plurals if it ends in s?")
        return self


class TokenHeader(Strict):
    """The settings that apply to all rules of a file."""

    task: Literal["tokens"]
    types: Words | None = Field(default=None, description="Entity types; default: the types of the rules.")
    votes: VoteBy = Field(default="span", description="Whether rules vote for spans, or for each token separately.")
    ties: Ties = "abstain"
    rules: list[Any]

    @model_validator(mode="after")
    def _sensible(self) -> "TokenHeader":
        if not self.rules:
            raise ValueError("rules: it is empty; write at least one rule")
        if OUTSIDE in (self.types or ()):
            raise ValueError(f"types: {OUTSIDE} is not an entity type; leave it out (rules can vote for it anyway)")
        if repeated := [name for name, count in Counter(self.types).items() if count > 1]:
            raise ValueError(f"types: {repeated[0]!r} is listed twice; remove one")
        return self


def parse_token_rules(
    content: Mapping[str, Any],
) -> tuple[TokenHeader | None, list[tuple[Location, TokenRule | PythonRule]], Faults]:
    """Validate the content of a rule file: its header (None if invalid), the valid rules with locations, all faults."""
    faults: Faults = []
    header = None
    try:
        header = TokenHeader.model_validate(content)
    except ValidationError as error:
        faults += faults_of(error, TokenHeader, ())
    entries = content.get("rules")
    rules: list[tuple[Location, TokenRule | PythonRule]] = []
    names: set[str] = set()
    for number, entry in enumerate(entries if isinstance(entries, list) else ()):
        at = ("rules", number)
        try:
            rule = entry if isinstance(entry, PythonRule) else TokenRule.model_validate(entry)
        except ValidationError as error:
            name = entry.get("name") if isinstance(entry, Mapping) else None
            title = f"rule {name!r}" if name else f"rule number {number + 1}"
            faults += [(deep, f"{title}: {message}") for deep, message in faults_of(error, TokenRule, at)]
            continue
        if rule.name in names:
            faults.append((at, f"rule {rule.name!r}: another rule has this name; rename one of them"))
        names.add(rule.name)
        rules.append((at, rule))
    return header, rules, faults
