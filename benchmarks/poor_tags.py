"""Plain `drift fit --task tokens` from a poor dictionary of ten types, without a dev set: rules, start and result.

    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/poor_tags.py run [--cells news,slots] [--sources tags,rules]
    python benchmarks/poor_tags.py render

The dictionary is made from gold entities: it keeps a share of the distinct phrases, some with a wrong type, and has
common words that are no entity. `news` is CoNLL-03 and `slots` is MIT-R, whose types are split by a hash of the phrase
until there are ten. 2,400 training sentences are drawn by seed. Sources: `tags`, the dictionary applied before, with O
on all other words; `rules`, the dictionary itself, which never says O. One line per cell, source and seed is added to
docs/results/poor_tags.jsonl. `render` writes the table in docs/results/taggers.md.
"""

import argparse
import csv
import json
import time
import zlib
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from drift.data.tags import Span, spans_of, tags_of
from drift.runs.fit import fit
from drift.runs.result import Run
from drift.weak.token_labeling import label_tokens
from drift.weak.token_rules import TokenRuleSet
from few_tags import as_iob2, rows_of, write
from recorded import RECOVERED, RESULTS, add_line, read_lines, table

LINES = RESULTS / "poor_tags.jsonl"
CODE = 1  # of the lines that are written
CELLS, SOURCES = ("news", "slots"), ("tags", "rules")
DATA = {"news": "conll03", "slots": "mitr"}
PARTS = {
    "news": {"PER": 2, "LOC": 3, "ORG": 3, "MISC": 2},
    "slots": {"Amenity": 2, "Location": 2},
}  # into how many types a type is split
SENTENCES, TEST_SENTENCES = 2400, 1500
KEPT = {"news": 0.22, "slots": 0.3}  # share of the distinct phrases that the dictionary has
WRONG = 0.3  # share of these with a wrong type
MADE_UP = 0.5  # mentions of words that are no entity, for each mention of a kept phrase
HEADINGS = ["data", "source", "dictionary", "known", "start", "result", "kept", "words tagged", "minutes"]
TEXT = """\

## Poor dictionaries

Test entity F1 in % of plain runs from dictionaries that were made poor on purpose: ten types, 2,400 training sentences,
no dev set. Made by `python benchmarks/poor_tags.py`, whose first lines say how. "Dictionary" is the dictionary applied
to the test sentences, where it also has phrases that no training sentence has. "Known" is what of it can be known where
only its tags are given: the dictionary in the tags of the training sentences (`python benchmarks/recovered.py`). "Kept"
is the phase whose model is the result. "Words tagged" is the share of words that the result takes for part of an
entity; true is the share in the gold tags. Seed 0. Two results are below the dictionary by far: with rules on news,
words that no phrase covers are taken for entities too often; tags of news name few of its phrases.

"""


def split_types(tags: list[str], words: list[str], parts: dict[str, int]) -> list[str]:
    """The tags, with each type split by a hash of the phrase."""
    spans = []
    for span in spans_of(tags, "IOB2"):
        phrase = " ".join(words[span.start : span.end]).lower()
        spans.append(Span(span.start, span.end, f"{span.type}{zlib.crc32(phrase.encode()) % parts.get(span.type, 1)}"))
    return tags_of(spans, len(tags))


def sentences_of(cell: str, part: str) -> list[dict[str, Any]]:
    rows = rows_of(DATA[cell], part)
    return [
        {
            "tokens": row["tokens"],
            "labels": split_types(as_iob2(row["labels"], cell == "slots"), row["tokens"], PARTS[cell]),
        }
        for row in rows
    ]


def poor_dictionary(rows: list[dict[str, Any]], share: float, random: np.random.Generator) -> dict[str, str]:
    """Phrases and their types: a share of the true ones, some with a wrong type, and words that are no entity."""
    mentions: Counter[str] = Counter()
    types: dict[str, str] = {}
    others: Counter[str] = Counter()
    for row in rows:
        for span in spans_of(row["labels"], "IOB2"):
            phrase = " ".join(row["tokens"][span.start : span.end])
            mentions[phrase] += 1
            types.setdefault(phrase, span.type)
        others.update(word for word, tag in zip(row["tokens"], row["labels"], strict=True) if tag == "O")
    names = sorted(set(types.values()))
    kept = {phrase: types[phrase] for phrase in sorted(types) if random.random() < share}
    dictionary = {phrase: str(random.choice(names)) if random.random() < WRONG else kept[phrase] for phrase in kept}
    wanted = MADE_UP * sum(mentions[phrase] for phrase in kept)
    rare = [word for word in sorted(others) if word.isalpha() and 2 <= others[word] <= 50 and word not in types]
    for number in random.permutation(len(rare)):
        if wanted <= 0:
            break
        dictionary[rare[number]] = str(random.choice(names))
        wanted -= others[rare[number]]
    return dictionary


def tables(cell: str, seed: int, aside: Path) -> dict[str, Path]:
    """The files of a run: train, test and rules. Both tables have the tags of the dictionary as `weak`."""
    random = np.random.default_rng(seed)
    train, test = sentences_of(cell, "train"), sentences_of(cell, "test")
    dictionary = poor_dictionary(train + test, KEPT[cell], random)
    rules = aside / "dictionary.csv"
    with rules.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("phrase", "type"), *dictionary.items()])
    train = [train[row] for row in random.permutation(len(train))[:SENTENCES]]
    files = {"rules": rules}
    for name, rows in (("train", train), ("test", test[:TEST_SENTENCES])):
        tags = label_tokens([row["tokens"] for row in rows], TokenRuleSet.from_file(rules)).tags
        weak = [{**row, "weak": [tag or "O" for tag in each]} for row, each in zip(rows, tags, strict=True)]
        files[name] = write(aside / f"{name}.jsonl", weak)
    return files


def run(cell: str, source: str, seed: int) -> dict[str, Any]:
    """One line of results."""
    began = time.monotonic()
    with TemporaryDirectory() as aside:
        files = tables(cell, seed, Path(aside))
        given: dict[str, Any] = {"weak": "weak"} if source == "tags" else {"rules": files["rules"]}
        done = fit(files["train"], task="tokens", test=files["test"], seed=seed, quiet=True, **given)
        tests = [json.loads(line) for line in files["test"].read_text(encoding="utf-8").splitlines()]
    return {**line_of(done, tests), "minutes": round((time.monotonic() - began) / 60, 1)}


def line_of(done: Run, tests: list[dict[str, Any]]) -> dict[str, Any]:
    test = done.metrics["test"]
    predicted = done.predict([row["tokens"] for row in tests])
    words = sum(len(row["tokens"]) for row in tests)

    def share(sentences: Any) -> float:
        return float(round(sum(tag != "O" for tags in sentences for tag in tags) / words, 4))

    return {
        "rules": next(iter(score["f1"] for name, score in test["baselines"].items() if name in ("rules", "weak tags"))),
        "start": test["start"][0]["f1"],
        "result": test["model"]["f1"],
        "start_kept": bool((done.metrics.get("choice") or {}).get("kept_start")),
        "tagged": share(predicted),
        "true": share(row["labels"] for row in tests),
        "notes": [note for note in done.metrics["notes"] if "words" in note or "start" in note],
    }


def run_all(cells: list[str], sources: list[str], seeds: list[int]) -> None:
    finished = {(line["cell"], line["source"], line["seed"], line["code"]) for line in read_lines(LINES)}
    for seed in seeds:
        for cell in cells:
            for source in sources:
                if (cell, source, seed, CODE) not in finished:
                    line = {"cell": cell, "source": source, "seed": seed, "code": CODE, **run(cell, source, seed)}
                    add_line(LINES, line)
                    print(line, flush=True)


def poor_tags_section() -> str:
    """The part of docs/results/taggers.md about poor dictionaries; empty without measurements."""
    lines = [line for line in read_lines(LINES) if line["code"] == CODE and line["seed"] == 0]
    known = {line["cell"]: line["f1"] for line in read_lines(RESULTS / RECOVERED) if line["part"] == "test"}
    rows = [
        [
            line["cell"],
            line["source"],
            f"{100 * line['rules']:.2f}",
            f"{100 * known[line['cell']]:.2f}" if line["source"] == "tags" and line["cell"] in known else "-",
            *(f"{100 * line[part]:.2f}" for part in ("start", "result")),
            "start" if line["start_kept"] else "game",
            f"{100 * line['tagged']:.0f} % (true: {100 * line['true']:.0f} %)",
            f"{line['minutes']:.1f}",
        ]
        for line in lines
    ]
    return TEXT + "\n".join(table(HEADINGS, rows)) + "\n" if rows else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "render"])
    parser.add_argument("--cells", default=",".join(CELLS))
    parser.add_argument("--sources", default=",".join(SOURCES))
    parser.add_argument("--seeds", default="0")
    options = parser.parse_args()
    if options.what == "run":
        seeds = [int(seed) for seed in options.seeds.split(",")]
        run_all(options.cells.split(","), options.sources.split(","), seeds)
        return
    from taggers import render

    render()


if __name__ == "__main__":
    main()
