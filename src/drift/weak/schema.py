"""What a rule may say, as pydantic models: strict, and every fault explained in the user's words."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from drift.data.packages import needed_for
from drift.settings import nearest

Ties = Literal["abstain", "random", "order"]
Location = tuple[str | int, ...]  # where in the rules: ("rules", 3, "has", 0)
Faults = list[tuple[Location, str]]


def re2_module() -> Any:
    with needed_for("patterns"):
        import re2
    return re2


def compile_pattern(pattern: str, *, case_sensitive: bool) -> Any:
    """A pattern for re2, whose time is linear in the text; ValueError says what is wrong with it."""
    re2 = re2_module()
    options = re2.Options()
    options.log_errors = False  # else re2 writes to standard error on its own
    options.never_capture = True  # only whether it matches is asked
    options.case_sensitive = case_sensitive
    try:
        # As bytes: re2 would else count characters for every match it reports.
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
    """Frozen, and nothing but the declared keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Pairs(Strict):
    """A prefix, then an expression: the paper's MATCH(x, *PRE*EXP*)."""

    prefix: Words
    expression: Words
    within: int = Field(default=20, ge=0, le=1000, description="At most so many characters between the two.")

    def pattern(self) -> str:
        before, after = ("|".join(map(re2_module().escape, words)) for words in (self.prefix, self.expression))
        return f"(?s)(?:{before}).{{0,{self.within}}}(?:{after})"

    @model_validator(mode="after")
    def _not_too_large(self) -> "Pairs":
        try:
            compile_pattern(self.pattern(), case_sensitive=False)
        except ValueError as error:
            raise ValueError("too much for one pattern; lower `within`, or make several rules of it") from error
        return self


class Condition(Strict):
    """What is asked of a text."""

    has: Words | None = Field(default=None, description="One of these keywords is in the text.")
    matches: Pattern | None = Field(
        default=None, description="This pattern, in the syntax of re2, is found in the text."
    )
    pairs: Pairs | None = Field(default=None, description="One of the prefixes is followed by one of the expressions.")
    whole_words: bool = Field(default=False, description="Keywords of `has` count as whole words only.")
    case_sensitive: bool = Field(default=False, description="Capitals count.")

    def pattern(self) -> str | None:
        """What re2 is to look for, if anything."""
        return self.pairs.pattern() if self.pairs else self.matches

    def asks(self) -> list[str]:
        return [name for name in ("has", "matches", "pairs") if getattr(self, name) is not None]

    @model_validator(mode="after")
    def _one_question(self) -> "Condition":
        asked = self.asks()
        if len(asked) > 1:
            raise ValueError(f"it has {' and '.join(asked)}; make them cases, or rules of their own")
        if self.whole_words and asked != ["has"]:
            raise ValueError(r"whole_words goes with `has` only; in a pattern write \b around the word")
        return self


class Unless(Condition):
    """What must not hold of a text."""

    @model_validator(mode="after")
    def _asks_something(self) -> "Unless":
        if not self.asks():
            raise ValueError("unless needs `has`, `matches` or `pairs`")
        return self


class Case(Condition):
    """A class, and the condition under which a text is voted into it."""

    label: Word | None = None
    unless: Unless | None = Field(default=None, description="The vote is withheld where this holds.")

    @model_validator(mode="after")
    def _complete(self) -> "Case":
        if self._votes_elsewhere():
            return self
        if self.label is None:
            raise ValueError("label is missing; say which class it votes for")
        if not self.asks() and self.unless is None:
            raise ValueError("it asks nothing; give it `has`, `matches`, `pairs` or `unless`")
        return self

    def _votes_elsewhere(self) -> bool:
        """Whether something else than a label of its own says what it votes for."""
        return False


class Rule(Case):
    """One source of votes: a condition, several cases of which the first that holds counts, or a column of labels."""

    name: Word
    cases: Annotated[tuple[Case, ...], AfterValidator(_filled)] | None = None
    column: Word | None = Field(default=None, description="A column of the table with class names; blank abstains.")
    weight: float = Field(default=1.0, ge=0, allow_inf_nan=False, description="What its vote counts.")

    def _votes_elsewhere(self) -> bool:
        source = "cases" if self.cases is not None else "column"
        if getattr(self, source) is None:
            return False
        if beside := sorted(self.model_fields_set - {"name", "weight", source}):
            raise ValueError(f"beside `{source}` it cannot have {', '.join(beside)}")
        return True


class Header(Strict):
    """What is said once for all rules."""

    classes: Words | None = Field(default=None, description="The classes in order; taken from the rules if left out.")
    ties: Ties = "abstain"
    strip_punctuation: bool = Field(default=False, description="Punctuation counts as a space, several spaces as one.")
    rules: Annotated[list[Any], AfterValidator(_filled)]


MODEL_OF_KEY: dict[str | int, type[Strict]] = {"pairs": Pairs, "unless": Unless, "cases": Case}


def faults_of(error: ValidationError, model: type[Strict], at: Location) -> Faults:
    """What pydantic found wrong with the value at a location, in our words."""
    return [((*at, *fault["loc"]), _explained(fault, model)) for fault in error.errors()]


def _explained(fault: Mapping[str, Any], model: type[Strict]) -> str:
    *parents, key = fault["loc"] or ("",)
    if fault["type"] == "extra_forbidden":
        inner = next((MODEL_OF_KEY[part] for part in reversed(parents) if part in MODEL_OF_KEY), model)
        return f"unknown key {key!r}{nearest(str(key), inner.model_fields)}"
    if fault["type"] == "missing":
        return f"{key} is missing"
    if fault["type"] == "tuple_type":
        said = f"give a list, as in [{fault['input']!r}]"
    elif fault["type"] == "model_type":
        said = f"give keys and values, not {fault['input']!r}"
    elif fault["type"] == "value_error":
        said = str(fault["ctx"]["error"])
    else:
        said = f"{fault['msg'][0].lower()}{fault['msg'][1:]}, not {fault['input']!r}"
    inside = ".".join(str(part) for part in fault["loc"] if isinstance(part, str))
    return f"{inside}: {said}" if inside else said
