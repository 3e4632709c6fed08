"""Settings that are frozen, strict and explained where they are declared; every fault is told at once, on one line."""

import difflib
from collections.abc import Iterable, Mapping
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
        return f"there is no {name!r}{nearest(str(fault['loc'][-1]), _known(settings, fault['loc'][:-1]))}"
    said = str(fault["msg"]).removeprefix("Value error, ")
    said = said[:1].lower() + said[1:]
    if isinstance(fault["input"], dict):  # a whole group, which says nothing on one line
        return said
    return f"{name}={fault['input']!r}: {said}" if name else said


def _known(settings: Any, path: tuple[Any, ...]) -> list[str]:
    """The names there are where a fault was found."""
    for part in path:
        settings = settings.model_fields[part].annotation
    return list(settings.model_fields)


def nearest(name: str, known: Iterable[str]) -> str:
    """What to say after an unknown name: "; did you mean 'x'?", or all there are if none is near; any case is near."""
    lowered = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), lowered, n=1)
    return f"; did you mean {lowered[close[0]]!r}?" if close else f" (there are: {', '.join(known)})"
