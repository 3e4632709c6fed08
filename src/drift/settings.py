"""Settings that are frozen, strict and explained where they are declared; every fault is told at once, on one line."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from drift.errors import ConfigError


class Settings(BaseModel):
    """Base of all settings: values cannot change, unknown names are refused with the nearest known one."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)

    @classmethod
    def read(cls, values: Mapping[str, Any], where: str = "settings") -> Self:
        """Check `values`; a ConfigError names all faults. where: what to call their place in messages."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            faults = "; ".join(_told(fault, cls) for fault in error.errors())
            raise ConfigError(f"{where}: {faults}") from None


def _told(fault: Any, settings: type[BaseModel]) -> str:
    name = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"there is no {name!r}{_meant(settings, fault['loc'])}"
    said = str(fault["msg"]).removeprefix("Value error, ")
    said = said[:1].lower() + said[1:]
    if not name or (fault["type"] == "value_error" and isinstance(fault["input"], dict)):  # of a whole group
        return said
    return f"{name}={fault['input']!r}: {said}"


def _meant(settings: Any, path: tuple[Any, ...]) -> str:
    """What an unknown name may have been meant for: one like it there, or of that name in another group."""
    *groups, name = map(str, path)
    everywhere = list(_names(settings))
    if same := [known for known in everywhere if known.rpartition(".")[2] == name]:
        return f"; did you mean {same[0]!r}?"
    prefix = "".join(f"{group}." for group in groups)
    here = [known.removeprefix(prefix) for known in everywhere if known.rpartition(".")[0] == prefix[:-1]]
    return nearest(name, here, prefix)


def _names(settings: Any, prefix: str = "") -> Iterator[str]:
    """The whole names of all settings, groups included."""
    for name, field in settings.model_fields.items():
        yield prefix + name
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _names(field.annotation, f"{prefix}{name}.")


def nearest(name: str, known: Iterable[str], prefix: str = "") -> str:
    """What to say after an unknown name: "; did you mean 'x'?", or all there are if none is near; any case is near.

    prefix: what a near one is to be written with.
    """
    lowered = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), lowered, n=1)
    return f"; did you mean {prefix + lowered[close[0]]!r}?" if close else f" (there are: {', '.join(known)})"
