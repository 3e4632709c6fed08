"""`drift label --task tokens`: weak tags for the words of sentences, from rules."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drift.weak.schema import Ties


def label_sentences(
    source: Path,
    rules: Path,
    out: Path | None,
    *,
    tokens: str | None,
    gold: str | None,
    column: str,
    ties: "Ties | None",
    seed: int,
    encoding: str,
) -> None:
    """Print how good the rules are; write words, right tags where there are some, and weak ones."""
    from drift.cli.show import show_table
    from drift.data.sentences import read_sentences
    from drift.data.table_formats import FORMATS
    from drift.data.table_writer import TableWriter
    from drift.errors import ConfigError
    from drift.weak import TokenRuleSet, label_tokens, token_table

    ends = (".parquet", *(end for end, form in FORMATS.items() if form == "json"))
    if out is not None and not out.name.lower().removesuffix(".gz").endswith(ends):
        raise ConfigError(f"{out}: tags are lists, which only JSON lines and Parquet hold; name it .jsonl or .parquet")
    ruleset = TokenRuleSet.from_file(rules)
    sentences = read_sentences(source, tokens=tokens, label=gold, weak="", encoding=encoding)
    judged = sentences.labels if sentences.scheme == "IOB2" else None
    found = label_tokens(sentences.tokens, ruleset, gold=judged, texts=sentences.texts, ties=ties, seed=seed)
    show_table(*token_table(found.summary))
    print(f"Coverage, overlap and conflict are shares of {found.summary.tokens.coverage.of:,} words.")
    if out is not None:
        with TableWriter(out) as table:
            labels = {"labels": sentences.labels} if any(tags is not None for tags in sentences.labels) else {}
            table.write({"tokens": sentences.tokens, **labels, column: found.tags})
        print(f"Written: {out}")
