"""Sentences of a few words and an encoder that knows pieces of them: runs on words that take a moment."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.runs.small import SPECIAL, save_small_bert

NAMES = {"LOC": ["london", "berlin", "new york", "paris"], "PER": ["john", "mary smith", "ann"]}
OTHERS = ["lives", "in", "was", "seen", "near", "and", "the", "."]
PIECES = ["lon", "##don", "ber", "##lin", "new", "york", "paris", "john", "ma", "##ry", "smith", "ann"]
CLASSES = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]

Table = dict[str, list[Any]]


def small_sentences(rows: int, *, seed: int = 0, labeled: int | None = None) -> Table:
    """Sentences with one to four entities; all rows after the first `labeled` have no tags."""
    generator = np.random.default_rng(seed)
    table: Table = {"id": list(range(rows)), "tokens": [], "ner_tags": []}
    for row in range(rows):
        words: list[str] = []
        tags: list[str] = []
        for _ in range(int(generator.integers(1, 5))):
            kind = str(generator.choice(["LOC", "PER"]))
            name = str(generator.choice(NAMES[kind])).split()
            plain = [str(word) for word in generator.choice(OTHERS, int(generator.integers(1, 4)))]
            words += [*name, *plain]
            tags += [f"B-{kind}", *[f"I-{kind}"] * (len(name) - 1), *["O"] * len(plain)]
        table["tokens"].append(words)
        table["ner_tags"].append(tags if labeled is None or row < labeled else None)
    return table


def write_jsonl(path: Path, table: Table) -> str:
    rows = (dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True))
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_conll(path: Path, table: Table) -> str:
    sentences = zip(table["tokens"], table["ner_tags"], strict=True)
    blocks = ("".join(f"{word}\t{tag}\n" for word, tag in zip(*pair, strict=True)) for pair in sentences)
    path.write_text("\n".join(blocks), encoding="utf-8")
    return str(path)


def small_word_encoder(folder: Path) -> str:
    """A BERT with random weights, for which some words are two sub-words; at most 64 of them."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {piece: place for place, piece in enumerate([*SPECIAL, *PIECES, *OTHERS])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return save_small_bert(folder, tokenizer, initializer_range=0.5)  # else all words have nearly one vector
