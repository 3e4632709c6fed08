"""Rules, from YAML or Python, that vote on texts."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drift.errors import ConfigError, DataError
from drift.settings import nearest
from drift.weak.casting import cast_votes
from drift.weak.checking import check_rules
from drift.weak.given import as_list
from drift.weak.python_file import run_rules
from drift.weak.python_rule import PythonRule
from drift.weak.schema import Rule, Ties
from drift.weak.token_schema import TOKENS
from drift.weak.yaml_file import read_yaml


class RuleSet:
    """Rules that vote on texts.

    rules: each a dict with the keys of a rule in YAML, or a function made a rule by `@rule`.
    classes: their names in order; if None, the labels of the rules in order of appearance.
    ties: what becomes of a text with as many votes for one class as for another: "abstain", "random", or "order" (the
    first rule with a vote for one of them decides).
    strip_punctuation: take punctuation for spaces, and several spaces for one, in texts and keywords alike.
    """

    def __init__(
        self,
        rules: Iterable[Mapping[str, Any] | Rule | PythonRule],
        classes: Iterable[str] | None = None,
        *,
        ties: Ties = "abstain",
        strip_punctuation: bool = False,
    ) -> None:
        content: dict[str, Any] = {
            "rules": as_list(rules, "rules", ConfigError),
            "ties": ties,
            "strip_punctuation": strip_punctuation,
        }
        if classes is not None:
            content["classes"] = as_list(classes, "classes", ConfigError)
        self._checked = check_rules(content, where=lambda at: "rules")

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> "RuleSet":
        """Rules from a file: Python if its name ends in .py, else YAML."""
        return cls.from_python(path) if Path(path).suffix == ".py" else cls.from_yaml(path)

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> "RuleSet":
        """Rules from a YAML file; everything wrong with it is said at once, each fault with its line."""
        content, where = read_yaml(Path(path))
        if isinstance(content, Mapping) and content.get("task") == TOKENS:
            raise ConfigError(f"{path}: rules for texts are needed, these have `task: {TOKENS}`; use --task {TOKENS}")

        made = cls.__new__(cls)
        made._checked = check_rules(content, where)
        return made

    @classmethod
    def from_python(cls, path: str | os.PathLike[str]) -> "RuleSet":
        """Rules from a Python file: it is run, and has a RuleSet in a variable called `rules`."""
        return run_rules(path, cls)

    def to_yaml(self) -> str:
        """The rules as a YAML file has them."""
        import yaml

        if functions := [rule.name for rule in self.rules if isinstance(rule, PythonRule)]:
            raise ConfigError(f"YAML cannot hold Python rules ({', '.join(functions)}); keep them in a Python file")
        head = {"classes": list(self.classes), "ties": self.ties, "strip_punctuation": self.strip_punctuation}
        rules = [rule.model_dump(mode="json", exclude_unset=True) for rule in self.rules if isinstance(rule, Rule)]
        written: str = yaml.safe_dump({**head, "rules": rules}, sort_keys=False, allow_unicode=True, width=120)
        return written

    @property
    def rules(self) -> tuple[Rule | PythonRule, ...]:
        return self._checked.rules

    @property
    def classes(self) -> tuple[str, ...]:
        return self._checked.classes

    @property
    def ties(self) -> Ties:
        return self._checked.ties

    @property
    def strip_punctuation(self) -> bool:
        return self._checked.strip_punctuation

    @property
    def names(self) -> list[str]:
        return [rule.name for rule in self.rules]

    @property
    def weights(self) -> np.ndarray:
        return np.array([rule.weight for rule in self.rules])

    @property
    def columns(self) -> list[str]:
        """The columns of the table that rules read beside the text."""
        return [rule.column for rule in self.rules if isinstance(rule, Rule) and rule.column is not None]

    def votes(
        self,
        texts: Iterable[str | None],
        columns: Mapping[str, Sequence[Any]] | None = None,
        *,
        jobs: int = 1,
        tick: Callable[[int], object] | None = None,
        first_row: int = 0,
    ) -> np.ndarray:
        """The vote of each rule on each text, (N, M): the place of a class in `classes`, or `ABSTAIN`.

        On a text that is empty or None only columns vote.

        columns: the table, where rules read columns of it. jobs: processes; -1 for one a core. tick: called with a
        number of texts whenever so many more are done. first_row: the number of the first text, for messages, where
        the texts are a part of a longer table.
        """
        if not isinstance(jobs, (int, np.integer)) or jobs == 0:
            raise ConfigError(f"jobs={jobs!r} is no number of processes; give 1 or more, or -1 for one a core")
        texts = as_list(texts, "texts")
        table = {} if columns is None else columns
        if missing := [name for name in self.columns if name not in table]:
            known = [str(name) for name in table]
            hint = nearest(missing[0], known) if known else "; give the table as columns"
            raise DataError(f"no column {missing[0]!r}, which a rule reads{hint}")
        read = {name: as_list(table[name], f"column {name!r}") for name in self.columns}
        for name, values in read.items():
            if len(values) != len(texts):
                raise DataError(f"column {name!r} has {len(values)} values for {len(texts)} texts")
        return cast_votes(self._checked, texts, read, jobs=jobs, tick=tick, first_row=first_row)
