"""spaCy's own tagger on tagged sentences, for `few_tags.py` and `tagger_speed.py`; needs an environment with spacy.

    ENV/bin/python benchmarks/spacy_peer.py --train few.jsonl --test test.jsonl --out tagged.json --epochs 100

A blank English pipeline with the component `ner` as it is configured by default: no transformer, no vectors, no model
that was trained elsewhere. Sentences have `tokens` and `labels` in IOB2. Batches grow from 4 to 32 sentences, and
dropout is 0.1. Writes the tags of the test sentences and the processor time of both parts.
"""

import argparse
import json
import random
import time
from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import compounding, fix_random_seed, minibatch

DROPOUT = 0.1


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("train", "test", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    fix_random_seed(options.seed)
    rows, test = read(options.train), read(options.test)
    nlp = spacy.blank("en")
    ner = nlp.add_pipe("ner")
    for label in sorted({tag[2:] for row in rows for tag in row["labels"] if tag != "O"}):
        ner.add_label(label)
    examples = [
        Example(Doc(nlp.vocab, words=row["tokens"]), Doc(nlp.vocab, words=row["tokens"], ents=row["labels"]))
        for row in rows
    ]
    optimizer = nlp.initialize(lambda: examples)
    began = time.process_time()
    sizes = compounding(4.0, 32.0, 1.001)
    for _ in range(options.epochs):
        random.shuffle(examples)
        for batch in minibatch(examples, size=sizes):
            nlp.update(batch, sgd=optimizer, drop=DROPOUT)
    trained = time.process_time()
    docs = list(nlp.pipe((Doc(nlp.vocab, words=row["tokens"]) for row in test), batch_size=256))
    done = time.process_time()
    tags = [[f"{word.ent_iob_}-{word.ent_type_}" if word.ent_type_ else "O" for word in doc] for doc in docs]
    seconds = {"train": trained - began, "predict": done - trained}
    options.out.write_text(json.dumps({"tags": tags, "seconds": seconds}), encoding="utf-8")


if __name__ == "__main__":
    main()
