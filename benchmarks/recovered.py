"""The dictionary in distant tags, applied to other sentences: what rules would do whose tags exist for train only.

    DRIFT_DATA=... python benchmarks/recovered.py

A phrase is in the dictionary if most of its mentions in the training sentences have one and the same weak type. It is
searched for by the gazetteer rule of the package, as it is written (`case: exact`). One line per dataset and part goes
to docs/results/recovered.jsonl, for the tables in docs/results/taggers.md. Nothing is trained.
"""

import gzip
import json
import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from drift.data.tags import spans_of
from drift.tasks.tokens.tagging import Tagging
from drift.weak.token_labeling import label_tokens
from drift.weak.token_rules import TokenRuleSet
from poor_tags import CELLS as POOR
from poor_tags import tables
from recorded import RECOVERED, RESULTS, add_line, read_lines

LINES = RESULTS / RECOVERED
CELLS = ("webpage", "wikigold", "conll03")
MOST = 0.5  # of the mentions of a phrase that must have its type


def rows_of(cell: str, part: str) -> list[dict[str, Any]]:
    with gzip.open(Path(os.environ["DRIFT_DATA"]) / cell / f"{part}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def rules_of(types: Mapping[str, str]) -> TokenRuleSet:
    by_type: dict[str, list[str]] = defaultdict(list)
    for phrase, entity_type in types.items():
        by_type[entity_type].append(phrase)
    return TokenRuleSet(
        [
            {"name": entity_type, "phrases": phrases, "type": entity_type, "case": "exact"}
            for entity_type, phrases in by_type.items()
        ],
        ties="order",
    )


def recovered(tokens: Sequence[Sequence[str]], tags: Sequence[Sequence[str | None]]) -> TokenRuleSet:
    """A gazetteer of the phrases that the weak tags have."""
    spans = [spans_of([tag or "O" for tag in sentence], "IOB2") for sentence in tags]
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for words, those in zip(tokens, spans, strict=True):
        for span in those:
            votes[" ".join(words[span.start : span.end])][span.type] += 1
    types = {phrase: counts.most_common(1)[0][0] for phrase, counts in votes.items()}
    seen: Counter[str] = Counter()
    for words, sentence in zip(tokens, label_tokens(tokens, rules_of(types), ties="order").tags, strict=True):
        seen.update(" ".join(words[span.start : span.end]) for span in spans_of(sentence, "IOB2"))
    kept = {phrase: kind for phrase, kind in types.items() if votes[phrase][kind] >= MOST * max(1, seen[phrase])}
    return rules_of(kept)


def parts_of(cell: str) -> dict[str, list[dict[str, Any]]]:
    """The sentences of a dataset, or of a poor dictionary, by part."""
    if cell in CELLS:
        return {part: rows_of(cell, part) for part in ("train", "dev", "test")}
    with TemporaryDirectory() as aside:
        files = tables(cell, 0, Path(aside))
        return {
            part: [json.loads(line) for line in files[part].read_text(encoding="utf-8").splitlines()]
            for part in ("train", "test")
        }


def main() -> None:
    done = {(line["cell"], line["part"]) for line in read_lines(LINES)}
    for cell in (*CELLS, *POOR):
        parts = parts_of(cell)
        train = parts.pop("train")
        rules = recovered([row["tokens"] for row in train], [row["weak"] for row in train])
        for part, rows in parts.items():
            if (cell, part) in done:
                continue
            found = label_tokens([row["tokens"] for row in rows], rules, ties="order").tags
            tags = [tag or "O" for sentence in found for tag in sentence]
            truth = [tag for row in rows for tag in row["labels"]]
            names = sorted({*tags, *truth})
            predicted, labels = (np.array([names.index(tag) for tag in each]) for each in (tags, truth))
            sizes = np.array([len(row["tokens"]) for row in rows])
            scores = Tagging(names, sizes, True).scores(predicted, labels)
            line = {"cell": cell, "part": part, **{name: scores[name] for name in ("f1", "precision", "recall")}}
            add_line(LINES, line)
            print(line, flush=True)


if __name__ == "__main__":
    main()
