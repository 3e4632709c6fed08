"""Weak supervision: rules vote on texts and tokens, votes become weak labels, and diagnostics say how good they are."""

from drift.weak.casting import ABSTAIN
from drift.weak.diagnostics import RuleSummary, Share, Summary, summarize
from drift.weak.labeling import Labeled, label
from drift.weak.published import convert_published
from drift.weak.python_rule import PythonRule, rule
from drift.weak.rules import RuleSet
from drift.weak.token_diagnostics import TokenSummary, token_table
from drift.weak.token_labeling import TokenWeakLabels, label_tokens
from drift.weak.token_rules import TokenRuleSet
from drift.weak.votes import label_model, majority

__all__ = [
    "ABSTAIN",
    "Labeled",
    "PythonRule",
    "RuleSet",
    "RuleSummary",
    "Share",
    "Summary",
    "TokenRuleSet",
    "TokenSummary",
    "TokenWeakLabels",
    "convert_published",
    "label",
    "label_model",
    "label_tokens",
    "majority",
    "rule",
    "summarize",
    "token_table",
]
