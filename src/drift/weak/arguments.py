"""Check and convert what callers pass: lists, rules, paths and deprecated keywords. Every error is one line."""

import os
import reprlib
import warnings
from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

from drift.data.sentence_formats import CONLL_SUFFIXES
from drift.data.table_formats import FORMATS
from drift.errors import ConfigError, DataError, DriftError

if TYPE_CHECKING:
    from drift.weak.rules import RuleSet
    from drift.weak.token_rules import TokenRuleSet

TABLE_SUFFIXES = (*FORMATS, ".parquet")
SENTENCE_SUFFIXES = (*TABLE_SUFFIXES, *CONLL_SUFFIXES)

Rules = TypeVar("Rules", "RuleSet", "TokenRuleSet")


def as_list(values: Any, name: str, error: type[DriftError] = DataError) -> list[Any]:
    """Convert any iterable to a list. Strings and mappings are refused: iterating over them is almost always a mistake.

    values: the iterable. name: its name in error messages. error: the exception to raise.
    """
    try:
        if isinstance(values, (str, bytes, Mapping)):
            raise TypeError
        iterator = iter(values)
    except TypeError:
        raise error(f"{name}: {reprlib.repr(values)} is not a list; give a list") from None
    return list(iterator)


def as_rules(rules: Any, rule_set: type[Rules]) -> Rules:
    """Return `rules` as a `rule_set`: an instance as it is, a list of rules, or the path of a rule file."""
    if isinstance(rules, rule_set):
        return rules
    if isinstance(rules, (str, os.PathLike)):
        return rule_set.from_file(rules)
    if isinstance(rules, (list, tuple)):
        return rule_set(rules)
    name = rule_set.__name__
    raise ConfigError(f"rules: {reprlib.repr(rules)} is not a {name}; give one, a list of rules, or the path of a file")


def is_path(source: Any, name: str, suffixes: tuple[str, ...]) -> bool:
    """Whether `source` is the path of a file. A string that has none of the suffixes is refused.

    Without this check, a single text passed as a string would be looked up as a file name.

    name: what `source` is called in error messages.
    """
    if isinstance(source, str) and not source.lower().removesuffix(".gz").endswith(suffixes):
        raise DataError(
            f"{name}: {reprlib.repr(source)} is not the path of a table ({', '.join(suffixes)});"
            f" give such a path, or a list of {name}"
        )
    return isinstance(source, (str, os.PathLike))


def check_n_jobs(n_jobs: Any) -> None:
    """Raise a ConfigError unless `n_jobs` is a number of processes."""
    if not isinstance(n_jobs, Integral) or n_jobs == 0 or n_jobs < -1:
        raise ConfigError(f"n_jobs={n_jobs!r} is not a number of processes; give 1 or more, or -1 for one per core")


def check_new_column(name: Any) -> None:
    """Raise a ConfigError unless `name` can be the name of a column of a table."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ConfigError(f"column {name!r} is not a name for a new column; give a word, such as weak")


def deprecated_jobs(n_jobs: int, jobs: int | None) -> int:
    """The number of processes from `n_jobs` or from `jobs`, its deprecated name; None: `jobs` was not passed."""
    if jobs is None:
        return n_jobs
    warnings.warn("jobs is deprecated; use n_jobs", FutureWarning, stacklevel=3)
    return jobs
