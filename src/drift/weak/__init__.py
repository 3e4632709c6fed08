"""Weak supervision: rules vote on texts and tokens, votes become weak labels, and diagnostics say how good they are."""

from drift.weak.casting import ABSTAIN
from drift.weak.diagnostics import RuleSummary, Share, Summary, summarize
from drift.weak.labeling import WeakLabels, label
from drift.weak.python_rule import PythonRule, rule
from drift.weak.rules import RuleSet
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
    "label_tokens",
    "majority",
    "rule",
    "summarize",
    "token_table",
]
