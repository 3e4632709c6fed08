"""The format of rules as pydantic models: strict, with faults explained in plain words."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from drift.errors import needed_for
from drift.settings import nearest

Ties = Literal["abstain", "random", "order"]
Location = tuple[str | int, ...]  # keys and indices that lead to a value: ("rules", 3, "has", 0)
Faults = list[tuple[Location, str]]  # location and message


def re2_module() -> Any:
    """Import re2, with a hint how to install it."""
    with needed_for("patterns"):
        import re2
    return re2


def compile_pattern(pattern: str, *, case_sensitive: bool) -> Any:
    """Compile a pattern with re2, whose time is linear in the text; a ValueError explains an invalid pattern."""
    re2 = re2_module()
    options = re2.Options()
    options.log_errors = False  # otherwise re2 writes to standard error itself
    options.never_capture = True  # groups are never read
    options.case_sensitive = case_sensitive
    try:
        # As bytes: for strings, re2 would count the characters before every match.
        return re2.compile(pattern.encode(), options)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error.args[0]
        raise ValueError(f"re2 cannot read the pattern {pattern!r}: {reason}") from error


def _filled(value: Any) -> Any:
    if not value:
        raise ValueError("it is empty; fill it in or leave it out")
    return value


def _checked_pattern(pattern: str) -> str:
    compile_pattern(_filled(pattern), case_sensitive=False)
    return pattern


Word = Annotated[str, AfterValidator(_filled)]
Words = Annotated[tuple[Word, ...], AfterValidator(_filled)]
Pattern = Annotated[str, AfterValidator(_checked_pattern)]


class Strict(BaseModel):
    """Base of the models: frozen, unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Pairs(Strict):
    """A prefix followed by an expression: the paper's MATCH(x, *PRE*EXP*)."""

    prefix: Words
    expression: Words
    within: int = Field(default=20, ge=0, le=1000, description="Maximum number of characters between the two.")

    def pattern(self) -> str:
        """The pattern for re2."""
        before, after = ("|".join(map(re2_module().escape, words)) for words in (self.prefix, self.expression))
        return f"(?s)(?:{before}).{{0,{self.within}}}(?:{after})"

    @model_validator(mode="after")
    def _not_too_large(self) -> "Pairs":
        try:
            compile_pattern(self.pattern(), case_sensitive=False)
        except ValueError as error:
            raise ValueError("too large for one pattern; lower `within`, or split it into several rules") from error
        return self


class Condition(Strict):
    """A condition on a text."""

    has: Words | None = Field(default=None, description="The text contains one of these keywords.")
    matches: Pattern | None = Field(default=None, description="The text contains a match of this pattern (re2 syntax).")
    pairs: Pairs | None = Field(default=None, description="One of the prefixes is followed by one of the expressions.")
    whole_words: bool = Field(default=False, description="The keywords of `has` match whole words only.")
    case_sensitive: bool = Field(default=False, description="Upper and lower case are different.")

    def pattern(self) -> str | None:
        """The pattern that re2 searches for, or None."""
        return self.pairs.pattern() if self.pairs else self.matches

    def asks(self) -> list[str]:
        """The keys among `has`, `matches` and `pairs` that are set."""
        return [name for name in ("has", "matches", "pairs") if getattr(self, name) is not None]

    @model_validator(mode="after")
    def _one_question(self) -> "Condition":
        asked = self.asks()
        if len(asked) > 1:
            raise ValueError(f"it has {' and '.join(asked)}; use `cases`, or one rule for each")
        if self.whole_words and asked != ["has"]:
            raise ValueError(r"whole_words goes with `has` only; in a pattern write \b around the word")
        return self


class Unless(Condition):
    """A condition under which a vote is withheld."""

    @model_validator(mode="after")
    def _asks_something(self) -> "Unless":
        if not self.asks():
            raise ValueError("unless needs `has`, `matches` or `pairs`")
        return self


class Case(Condition):
    """A class, and the condition for voting for it."""

    label: Word | None = None
    unless: Unless | None = Field(default=None, description="The vote is withheld if this condition holds.")

    @model_validator(mode="after")
    def _complete(self) -> "Case":
        if self._has_other_source():
            return self
        if self.label is None:
            raise ValueError("label is missing; name the class it votes for")
        if not self.asks() and self.unless is None:
            raise ValueError("it has no condition; give it `has`, `matches`, `pairs` or `unless`")
        return self

    def _has_other_source(self) -> bool:
        """Whether the votes come from something other than `label`."""
        return False


class Rule(Case):
    """One source of votes: a condition, several cases of which the first that holds votes, or a column of labels."""

    name: Word
    cases: Annotated[tuple[Case, ...], AfterValidator(_filled)] | None = None
    column: Word | None = Field(
        default=None, description="A column of the table that holds class names; blank cells abstain."
    )
    weight: float = Field(default=1.0, ge=0, allow_inf_nan=False, description="Weight of its votes.")

    def _has_other_source(self) -> bool:
        source = "cases" if self.cases is not None else "column"
        if getattr(self, source) is None:
            return False
        if others := sorted(self.model_fields_set - {"name", "weight", source}):
            raise ValueError(f"`{source}` cannot be combined with {', '.join(others)}")
        return True


class Header(Strict):
    """The settings that apply to all rules of a file."""

    classes: Words | None = Field(
        default=None, description="Names of the classes, in order; default: the labels of the rules."
    )
    ties: Ties = "abstain"
    strip_punctuation: bool = Field(
        default=False, description="Punctuation counts as a space, and several spaces count as one."
    )
    rules: Annotated[list[Any], AfterValidator(_filled)]


MODEL_OF_KEY: dict[str | int, type[Strict]] = {"pairs": Pairs, "unless": Unless, "cases": Case}


def faults_of(error: ValidationError, model: type[Strict], at: Location) -> Faults:
    """The faults that pydantic reports, in plain words. model: the model that was validated. at: its location."""
    return [((*at, *fault["loc"]), _explained(fault, model)) for fault in error.errors()]


def _explained(fault: Mapping[str, Any], model: type[Strict]) -> str:
    *parents, key = fault["loc"] or ("",)
    if fault["type"] == "extra_forbidden":
        inner = next((MODEL_OF_KEY[part] for part in reversed(parents) if part in MODEL_OF_KEY), model)
        return f"unknown key {key!r}{nearest(str(key), inner.model_fields)}"
    if fault["type"] == "missing":
        return f"{key} is missing"
    if fault["type"] == "tuple_type":
        message = f"give a list, as in [{fault['input']!r}]"
    elif fault["type"] == "model_type":
        message = f"give keys and values, not {fault['input']!r}"
    elif fault["type"] == "value_error":
        message = str(fault["ctx"]["error"])
    else:
        message = f"{fault['msg'][0].lower()}{fault['msg'][1:]}, not {fault['input']!r}"
    keys = ".".join(str(part) for part in fault["loc"] if isinstance(part, str))
    return f"{keys}: {message}" if keys else message
