"""Base class of all settings: immutable and strict. All errors are reported together, on one line."""

import difflib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_validator

from drift.errors import ConfigError

NAMES_IN_MESSAGE, CHARACTERS_OF_NAME = 20, 80
MOST_INTEGER = 2**62  # of any setting: room is left below 2^63, which tensors hold, for sums such as seed + number


class Settings(BaseModel):
    """Base class of all settings. Values cannot change. An unknown name is an error that suggests the nearest name.

    renamed: the new name of each renamed setting, by its old name. Old names are still accepted, with a warning.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)
    renamed: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def read(cls, values: Mapping[str, Any], where: str = "settings") -> Self:
        """Validate `values`; ConfigError lists everything that is wrong.

        values: by name; a group of settings is a mapping. where: name of their source, for messages.
        """
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            messages = "; ".join(_message(details, cls) for details in error.errors())
            raise ConfigError(f"{where}: {messages}") from None

    @field_validator("*", mode="after")
    @classmethod
    def _within_64_bits(cls, value: Any) -> Any:
        if isinstance(value, int) and not -MOST_INTEGER <= value <= MOST_INTEGER:
            raise ValueError("give an integer between -2^62 and 2^62")
        return value

    @model_validator(mode="before")
    @classmethod
    def _with_new_names(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or not (old_names := values.keys() & cls.renamed.keys()):
            return values
        values = dict(values)
        for old in sorted(old_names):
            new = cls.renamed[old]
            if new in values:
                raise ValueError(f"both {old} and {new}, its new name, are given; give {new} only")
            warnings.warn(f"the setting {old} is now {new}; use that name", FutureWarning, stacklevel=3)
            values[new] = values.pop(old)
        return values


def _message(details: Any, settings: type[BaseModel]) -> str:
    """One line for one error of pydantic."""
    name = ".".join(str(part) for part in details["loc"])
    if details["type"] == "extra_forbidden":
        return f"there is no {name!r}{_suggestion(settings, details['loc'])}"
    text = str(details["msg"]).removeprefix("Value error, ")
    text = text[:1].lower() + text[1:]
    if not name or (details["type"] == "value_error" and isinstance(details["input"], dict)):  # of a whole group
        return text
    return f"{name}={details['input']!r}: {text}"


def _suggestion(settings: Any, path: tuple[Any, ...]) -> str:
    """A suggestion for an unknown name: the same name in another group, else a similar one in the same group."""
    *groups, name = map(str, path)
    everywhere = list(_names(settings))
    if same := [known for known in everywhere if known.rpartition(".")[2] == name]:
        return f"; did you mean {same[0]!r}?"
    prefix = "".join(f"{group}." for group in groups)
    here = [known.removeprefix(prefix) for known in everywhere if known.rpartition(".")[0] == prefix[:-1]]
    return nearest(name, here, prefix)


def _names(settings: Any, prefix: str = "") -> Iterator[str]:
    """The full names of all settings, including groups."""
    for name, field in settings.model_fields.items():
        yield prefix + name
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _names(field.annotation, f"{prefix}{name}.")


def nearest(name: str, known: Iterable[str], prefix: str = "") -> str:
    """The end of a message about an unknown name: "; did you mean 'x'?", or the list of all names if none is similar.

    name: the unknown name; upper and lower case are the same. known: the names to choose from. prefix: put before the
    suggested name.
    """
    names = list(known)
    lowered = {known_name.lower(): known_name for known_name in names}
    close = difflib.get_close_matches(name.lower(), lowered, n=1)
    return f"; did you mean {prefix + lowered[close[0]]!r}?" if close else f" (there are: {listed(names)})"


def check_seed(seed: int) -> None:
    """Raise a ConfigError unless `seed` can be a random seed."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= seed <= MOST_INTEGER:
        raise ConfigError(f"seed={seed!r} is not a random seed; give a whole number from 0 to {MOST_INTEGER}")


def listed(names: Sequence[str]) -> str:
    """Names for a message; only the first ones if there are many, and only the beginning of very long ones."""
    more = f", ... ({len(names):,} in all)" if len(names) > NAMES_IN_MESSAGE else ""
    return ", ".join(shortened(name) for name in names[:NAMES_IN_MESSAGE]) + more


def shortened(name: str) -> str:
    """A name for a message: only the beginning if it is very long."""
    return name if len(name) <= CHARACTERS_OF_NAME else f"{name[:CHARACTERS_OF_NAME]}..."
