"""Weak labels from a table to a table: the Python twins of `drift label`."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.sentences import read_sentences
from drift.data.table_formats import FORMATS
from drift.data.table_writer import TableWriter
from drift.data.tables import read_chunks, source_name
from drift.errors import ConfigError
from drift.weak import casting
from drift.weak.arguments import as_rules, check_n_jobs, check_new_column
from drift.weak.diagnostics import Summary
from drift.weak.labeling import check_columns, label
from drift.weak.python_rule import PythonRule
from drift.weak.rules import RuleSet
from drift.weak.schema import Rule, Ties
from drift.weak.token_diagnostics import TokenSummary
from drift.weak.token_labeling import gold_tags, label_tokens
from drift.weak.token_rules import TokenRuleSet
from drift.weak.token_schema import TokenRule
from drift.weak.votes import generator

LIST_SUFFIXES = (".parquet", *(suffix for suffix, form in FORMATS.items() if form == "json"))


def label_table(
    source: Any,
    rules: RuleSet | Sequence[Mapping[str, Any] | Rule | PythonRule] | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    text: str | None = None,
    gold: str | None = None,
    column: str = "weak",
    votes: bool = False,
    ties: Ties | None = None,
    seed: int | np.random.Generator = 0,
    n_jobs: int = 1,
    tick: Callable[[int], object] | None = None,
    encoding: str = "utf-8",
    spreadsheet: bool = False,
) -> Summary:
    """Label a table of texts by rules, and write it with its weak labels. Memory does not grow with the table.

    Row order and all columns are kept. A cell of the new column is empty where no rule votes or the votes tie. The
    labels are those of `label`, whatever `n_jobs` is.

    source: the path of a table, a DataFrame or a Dataset.
    rules: a RuleSet, a list of rules, or the path of a rule file.
    out: the path of the table to write; None to return the summary only.
    text: the column with the texts; default: an obvious one, as in `drift.fit`.
    gold: the column with gold labels, to measure accuracy.
    column: the name of the new column.
    votes: also write one column `vote_NAME` per rule.
    ties: "abstain", "random" or "order"; default: the policy of the rules.
    seed: a seed or a NumPy generator for ties broken at random.
    n_jobs: number of processes; -1 for one per core.
    tick: progress callback, called with the number of rows after each batch.
    encoding: the encoding of a CSV, TSV or JSON lines file.
    spreadsheet: write CSV in which no text can become a formula in a spreadsheet program; it is read back unchanged.
    """
    check_n_jobs(n_jobs)
    check_new_column(column)
    rule_set = as_rules(rules, RuleSet)
    names, text = check_columns(source, rule_set, text=text, gold=gold, encoding=encoding)
    vote_columns = [f"vote_{name}" for name in rule_set.names] if votes else []
    if taken := [name for name in (column, *vote_columns) if name in names]:
        raise ConfigError(
            f"{source_name(source)} has a column {taken[0]!r} already; rename it, or give another with --column"
        )
    from joblib import effective_n_jobs

    size = casting.TEXTS_PER_BATCH * effective_n_jobs(n_jobs)
    rng = generator(seed)  # one for the whole table, so that the labels do not depend on the size of a chunk
    summaries = []
    with TableWriter(out, spreadsheet=spreadsheet) if out is not None else nullcontext() as writer:
        for chunk in read_chunks(source, size=size, encoding=encoding):
            options: Any = dict(text=text, gold=gold, ties=ties, seed=rng, n_jobs=n_jobs, tick=tick)
            weak = label(chunk.columns, rule_set, **options, first_row=chunk.first)
            summaries.append(weak.summary)
            if writer is not None:
                voted = _class_names(weak.votes, rule_set.classes, vote_columns)
                writer.write({**chunk.columns, column: weak.labels, **voted})
    return reduce(add, summaries)


def _class_names(votes: np.ndarray, classes: Sequence[str], columns: Sequence[str]) -> dict[str, list[str | None]]:
    """One column per rule with the class it votes for, None where it abstains. votes: `(texts, rules)`."""
    return {
        name: [classes[code] if code != casting.ABSTAIN else None for code in votes[:, rule]]
        for rule, name in enumerate(columns)
    }


def label_sentence_table(
    source: Any,
    rules: TokenRuleSet | Sequence[Mapping[str, Any] | TokenRule | PythonRule] | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    tokens: str | None = None,
    gold: str | None = None,
    column: str = "weak",
    ties: Ties | None = None,
    seed: int | np.random.Generator = 0,
    encoding: str = "utf-8",
) -> TokenSummary:
    """Tag the sentences of a file by rules; write their tokens, gold tags where there are some, and weak tags.

    source: anything `drift.data.sentences.read_sentences` reads: CoNLL columns, or a table of tokens or texts.
    rules: a TokenRuleSet, a list of rules, or the path of a rule file.
    out: the path of the table to write, JSON lines or Parquet; None to return the summary only.
    tokens: the column with the tokens or texts; default: an obvious one.
    gold: the column with gold tags, to score the rules; default: an obvious one, "" for none.
    column: the name of the new column.
    ties: "abstain", "random" or "order"; default: the policy of the rules.
    seed: a seed or a NumPy generator for ties broken at random.
    encoding: the encoding of a text file.
    """
    if out is not None and not Path(out).name.lower().removesuffix(".gz").endswith(LIST_SUFFIXES):
        raise ConfigError(f"{out}: tags are lists, which only JSON lines and Parquet hold; name it .jsonl or .parquet")
    check_new_column(column)
    if column in ("tokens", "labels"):
        raise ConfigError(f"column {column!r} is one that is written anyway; give another name for the new column")
    rule_set = as_rules(rules, TokenRuleSet)
    sentences = read_sentences(source, tokens=tokens, label=gold, weak="", encoding=encoding)
    truth = gold_tags(sentences)
    weak = label_tokens(sentences.tokens, rule_set, gold=truth, texts=sentences.texts, ties=ties, seed=seed)
    if out is not None:
        with TableWriter(out) as writer:
            labels = {"labels": sentences.labels} if any(tags is not None for tags in sentences.labels) else {}
            writer.write({"tokens": sentences.tokens, **labels, column: weak.tags})
    return weak.summary
