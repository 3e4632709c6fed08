"""What limits taggers from weak tags: the same head, learned from tags that are better in one respect each.

    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/tag_limits.py run [--cells mitr,wikigold]
    python benchmarks/tag_limits.py render

A head with one hidden layer learns from fixed vectors of words, which takes seconds where fine-tuning takes minutes;
F1 is of at most 800 dev sentences. Rows that use the gold tags of training sentences say what better weak tags would
be worth. The others are ways to treat the weak tags that were tried. One line per dataset and row is added to
docs/results/tag_limits.jsonl; `render` writes the table in docs/results/taggers.md.
"""

import argparse
import gzip
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from drift.data.labels import UNLABELED
from drift.models.encoders import encoder_part, load_tagger
from drift.models.word_embedding import embed_words
from drift.tasks.tokens.decoding import restart_odds
from drift.tasks.tokens.students import KEPT
from drift.tasks.tokens.tagging import Tagging
from drift.tasks.tokens.uncovered import fillings
from recorded import RESULTS, add_line, read_lines, table

LINES = RESULTS / "tag_limits.jsonl"
CELLS, DEV = ("mitr", "wikigold"), 800
ENCODER, MAX_LENGTH = "granite-embedding-30m-english", 128
HIDDEN, DROPOUT, STEPS, BATCH, RATE, DECAY = 128, 0.2, 400, 1024, 3e-3, 0.01
SHARE = {"mitr": 0.3, "wikigold": 0.25}  # of the true O, or of the weak O, that are learned
FOLDS, DOUBT = 3, 0.5  # weak tags with less than this probability by the heads of other sentences are dropped
TEXT = """\

A head with one hidden layer ({hidden}) on fixed vectors of words, F1 in % on at most {dev} dev sentences, seed 0, by
`python benchmarks/tag_limits.py`. It is not the tagger of the table above, and learns from the same tags:

"""


def read(cell: str, part: str) -> list[dict[str, Any]]:
    path = Path(os.environ["DRIFT_DATA"]) / cell / f"{part}.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class Heads:
    """Heads on the vectors of one dataset, and their scores on dev. weak, gold: codes of the training words."""

    def __init__(self, cell: str) -> None:
        train, dev = read(cell, "train"), read(cell, "dev")[:DEV]
        weak = [tag for row in train for tag in row["weak"]]
        self.tags = ["O", *sorted({tag for tag in weak if tag not in (None, "O")})]
        self.entities = any(tag.startswith("B-") for tag in self.tags)
        code_of: Mapping[str | None, int] = {tag: code for code, tag in enumerate(self.tags)} | {None: UNLABELED}
        self.weak = np.array([code_of[tag] for tag in weak])
        self.gold, self.truth = (
            np.array([code_of.get(tag, 0) for row in rows for tag in row["labels"]]) for rows in (train, dev)
        )
        self.sentences = [row["tokens"] for row in train]
        self.sizes = np.array([len(words) for words in self.sentences])
        odds = restart_odds(self.weak, self.sizes, self.tags, entities=self.entities)
        self.tagging = Tagging(self.tags, np.array([len(row["tokens"]) for row in dev]), self.entities, odds)
        layers = encoder_part(ENCODER, KEPT)
        tagger, tokenizer = load_tagger(ENCODER, self.tags, seed=0, layers=layers)
        vectors = [
            embed_words(part, tagger, tokenizer, ENCODER, max_length=MAX_LENGTH, layers=layers)
            for part in (self.sentences, [row["tokens"] for row in dev])
        ]
        mean, scale = vectors[0].mean(0), vectors[0].std(0) + 1e-6
        self.train, self.dev = (torch.from_numpy((part - mean) / scale) for part in vectors)

    def fit(self, codes: np.ndarray) -> nn.Module:
        """A head that learned these tags; -1 for none."""
        torch.manual_seed(0)
        width = self.train.shape[1]
        head = nn.Sequential(
            nn.Linear(width, HIDDEN), nn.ReLU(), nn.Dropout(DROPOUT), nn.Linear(HIDDEN, len(self.tags))
        )
        optimizer = torch.optim.AdamW(head.parameters(), lr=RATE, weight_decay=DECAY)
        known, labels = torch.from_numpy(np.flatnonzero(codes >= 0)), torch.from_numpy(codes)
        for _ in range(STEPS):
            rows = known[torch.randint(len(known), (BATCH,))]
            loss = nn.functional.cross_entropy(head(self.train[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return head.eval()

    def score(self, codes: np.ndarray) -> dict[str, float]:
        return self.tagging(predicted(self.fit(codes), self.dev), self.truth)

    def doubtful(self, codes: np.ndarray) -> np.ndarray:
        """Weak tags that heads of other sentences give less than `DOUBT`."""
        fold = np.repeat(np.random.default_rng(0).permutation(len(self.sizes)) % FOLDS, self.sizes)
        p = np.empty((len(codes), len(self.tags)), dtype=np.float32)
        for number in range(FOLDS):
            own = fold == number
            p[own] = predicted(self.fit(np.where(own, UNLABELED, codes)), self.train[own])
        return np.asarray((self.weak >= 0) & (p[np.arange(len(p)), np.maximum(self.weak, 0)] < DOUBT))


@torch.inference_mode()
def predicted(head: nn.Module, vectors: Tensor) -> np.ndarray:
    probabilities: np.ndarray = head(vectors).softmax(-1).numpy()
    return probabilities


def ways(heads: Heads, share: float) -> Iterator[tuple[str, np.ndarray]]:
    """The rows of a dataset: a name, and the tags that are learned."""
    weak, gold = heads.weak, heads.gold
    drawn = np.random.default_rng(0).random(len(weak)) < share
    tagged = weak > 0
    plain = fillings(heads.sentences, weak.copy(), outside=0, covered=len(weak))["common"]
    if (weak == 0).any():
        plain = np.where((weak == 0) & ~drawn, UNLABELED, weak)
    yield "weak tags as in a plain run", plain
    yield "weak tags that heads of other sentences doubt are dropped", np.where(heads.doubtful(plain), UNLABELED, plain)
    yield "only true O, and weak tags", np.where(tagged, weak, np.where((gold == 0) & drawn, 0, UNLABELED))
    yield "true tags of the words that have a weak tag, other words as in a plain run", np.where(tagged, gold, plain)
    some = np.random.default_rng(1).random(len(weak)) < tagged.mean()
    yield "true tags of as many words, drawn at random", np.where(some, gold, UNLABELED)
    yield "all true tags", gold


def run(cells: list[str]) -> None:
    done = {(line["cell"], line["row"]) for line in read_lines(LINES)}
    for cell in cells:
        heads = Heads(cell)
        for name, codes in ways(heads, SHARE[cell]):
            if (cell, name) not in done:
                line = {"cell": cell, "row": name, **heads.score(codes)}
                add_line(LINES, line)
                print(line, flush=True)


def limits_table() -> str:
    """The table in docs/results/taggers.md; empty without measurements."""
    lines = read_lines(LINES)
    f1 = {(line["row"], line["cell"]): f"{100 * line['f1']:.1f}" for line in lines}
    cells = [cell for cell in CELLS if any(cell == known for _, known in f1)]
    rows = [[name, *(f1.get((name, cell), "-") for cell in cells)] for name in dict.fromkeys(row for row, _ in f1)]
    text = TEXT.format(hidden=HIDDEN, dev=DEV)
    return text + "\n".join(table(["tags that are learned", *cells], rows)) + "\n" if rows else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "render"])
    parser.add_argument("--cells", default=",".join(CELLS))
    options = parser.parse_args()
    if options.what == "run":
        torch.set_num_threads(1)
        run(options.cells.split(","))
        return
    from taggers import render

    render()


if __name__ == "__main__":
    main()
