"""Rules that vote on texts, from YAML, dictionaries or Python functions."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drift.errors import ConfigError, DataError
from drift.settings import nearest
from drift.weak.arguments import as_list, check_n_jobs, deprecated_jobs
from drift.weak.casting import cast_votes
from drift.weak.checking import check_rules
from drift.weak.python_rule import PythonRule
from drift.weak.rule_files import read_yaml, run_rules
from drift.weak.schema import Rule, Ties
from drift.weak.token_schema import TOKENS


class RuleSet:
    """Rules that vote on texts.

    Parameters
    ----------
    rules : iterable of dict or PythonRule
        Each a dict with the keys of a rule in YAML, or a function decorated with `@rule`.
    classes : iterable of str, default=None
        The class names, in order; by default the labels of the rules, in order of appearance.
    ties : {"abstain", "random", "order"}, default="abstain"
        The label of a text whose votes tie: "abstain" gives none, "random" draws one of the tied classes, "order" takes
        the tied class that the first rule votes for.
    strip_punctuation : bool, default=False
        Replace punctuation by spaces, and collapse runs of spaces, in texts and keywords.
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
        """Read rules from a file: Python if the name ends in .py, else YAML."""
        return cls.from_python(path) if Path(path).suffix == ".py" else cls.from_yaml(path)

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> "RuleSet":
        """Read rules from a YAML file. An error lists all faults, each with its line."""
        content, where = read_yaml(Path(path))
        if isinstance(content, Mapping) and content.get("task") == TOKENS:
            raise ConfigError(f"{path}: these rules are for tokens (`task: {TOKENS}`); use --task {TOKENS}")

        rule_set = cls.__new__(cls)
        rule_set._checked = check_rules(content, where)
        return rule_set

    @classmethod
    def from_python(cls, path: str | os.PathLike[str]) -> "RuleSet":
        """Run a Python file, and return the RuleSet in its variable `rules`."""
        return run_rules(path, cls)

    def to_yaml(self) -> str:
        """The rules as the content of a YAML file."""
        import yaml

        if functions := [rule.name for rule in self.rules if isinstance(rule, PythonRule)]:
            raise ConfigError(f"YAML cannot hold Python rules ({', '.join(functions)}); keep them in a Python file")
        head = {"classes": list(self.classes), "ties": self.ties, "strip_punctuation": self.strip_punctuation}
        rules = [rule.model_dump(mode="json", exclude_unset=True) for rule in self.rules if isinstance(rule, Rule)]
        text: str = yaml.safe_dump({**head, "rules": rules}, sort_keys=False, allow_unicode=True, width=120)
        return text

    @property
    def rules(self) -> tuple[Rule | PythonRule, ...]:
        """The M rules, in order."""
        return self._checked.rules

    @property
    def classes(self) -> tuple[str, ...]:
        """The class names; a vote is an index into them."""
        return self._checked.classes

    @property
    def ties(self) -> Ties:
        """The label of a text whose votes tie: "abstain", "random" or "order"."""
        return self._checked.ties

    @property
    def strip_punctuation(self) -> bool:
        """Whether punctuation is replaced by spaces."""
        return self._checked.strip_punctuation

    @property
    def names(self) -> list[str]:
        """The names of the rules."""
        return [rule.name for rule in self.rules]

    @property
    def weights(self) -> np.ndarray:
        """The weights of the rules, (M,)."""
        return np.array([rule.weight for rule in self.rules])

    @property
    def columns(self) -> list[str]:
        """The columns of the table that rules read in addition to the text."""
        return [rule.column for rule in self.rules if isinstance(rule, Rule) and rule.column is not None]

    def votes(
        self,
        texts: Iterable[str | None],
        columns: Mapping[str, Sequence[Any]] | None = None,
        *,
        n_jobs: int = 1,
        tick: Callable[[int], object] | None = None,
        first_row: int = 0,
        jobs: int | None = None,
    ) -> np.ndarray:
        """The vote of each rule on each text, (N, M): an index into `classes`, or `ABSTAIN`.

        For a text that is empty or None, only rules that read a column can vote.

        texts: N strings. columns: the columns of the table by name; needed if rules read columns. n_jobs: number of
        processes; -1 for one per core. tick: progress callback, called with the number of texts after each batch.
        first_row: the row number of the first text in error messages, if the texts are part of a longer table.
        jobs: deprecated name of `n_jobs`.
        """
        n_jobs = deprecated_jobs(n_jobs, jobs)
        check_n_jobs(n_jobs)
        texts = as_list(texts, "texts")
        table = {} if columns is None else columns
        if missing := [name for name in self.columns if name not in table]:
            known = [str(name) for name in table]
            hint = nearest(missing[0], known) if known else "; give the table as columns"
            raise DataError(f"no column {missing[0]!r}, which a rule reads{hint}")
        needed = {name: as_list(table[name], f"column {name!r}") for name in self.columns}
        for name, values in needed.items():
            if len(values) != len(texts):
                raise DataError(f"column {name!r} has {len(values)} values for {len(texts)} texts")
        return cast_votes(self._checked, texts, needed, n_jobs=n_jobs, tick=tick, first_row=first_row)
