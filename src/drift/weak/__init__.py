"""Weak supervision: rules vote on texts and tokens, votes are combined into weak labels, and summaries rate the rules.

- `label`, `label_tokens`: label texts or sentences, in memory or from a file
- `label_table`, `label_sentence_table`: the same from a file to a file; the Python twins of `drift label`
- `RuleSet`, `TokenRuleSet`, `rule`: rules from YAML, dictionaries or Python functions
- `majority`, `label_model`: combine votes into one label per text
"""

import warnings
from importlib import import_module
from typing import Any

from drift.weak.casting import ABSTAIN
from drift.weak.diagnostics import RuleSummary, Share, Summary, summarize
from drift.weak.labeling import WeakLabels, label
from drift.weak.python_rule import PythonRule, rule
from drift.weak.rules import RuleSet
from drift.weak.table_labeling import label_sentence_table, label_table
from drift.weak.token_diagnostics import TokenSummary, token_table
from drift.weak.token_labeling import TokenWeakLabels, label_tokens
from drift.weak.token_rules import TokenRuleSet
from drift.weak.votes import label_model, majority

__all__ = [
    "ABSTAIN",
    "PythonRule",
    "RuleSet",
    "RuleSummary",
    "Share",
    "Summary",
    "TokenRuleSet",
    "TokenSummary",
    "TokenWeakLabels",
    "WeakLabels",
    "label",
    "label_model",
    "label_sentence_table",
    "label_table",
    "label_tokens",
    "majority",
    "rule",
    "summarize",
    "token_table",
]

_RENAMED = {  # old name: new module and name
    "Labeled": ("drift.weak", "WeakLabels"),
    "convert_published": ("drift.paper.published_rules", "convert_published"),
}


def __getattr__(name: str) -> Any:
    """Old names, with a warning."""
    if name not in _RENAMED:
        raise AttributeError(f"module 'drift.weak' has no attribute {name!r}")
    module, new_name = _RENAMED[name]
    warnings.warn(f"drift.weak.{name} is deprecated; use {module}.{new_name}", FutureWarning, stacklevel=2)
    # A shim for old code. weak does not depend on paper, so the module is imported by its name, and only here.
    return getattr(import_module(module), new_name)
