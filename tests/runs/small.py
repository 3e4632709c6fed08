"""Tables of a few rows and an encoder of a few weights: runs that take a moment."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

import drift
from drift.runs.result import Run

WORDS = {
    "money": ["stock", "market", "profit", "bank", "shares", "price", "trade", "investor", "economy", "fund"],
    "sport": ["team", "game", "match", "player", "goal", "coach", "league", "score", "win", "season"],
}
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
STEPS = {"initial_steps": 4, "steps": 4, "batch_size": 8, "trackers": []}
COST = {"seconds": 0, "peak_memory": 0}  # fields of a record that differ between equal runs


def small_table(rows: int, *, seed: int = 0, labeled: int | None = None) -> dict[str, list[Any]]:
    """Texts of eight words, every other of each class; all rows after the first `labeled` have no label."""
    generator = np.random.default_rng(seed)
    topics = [("money", "sport")[row % 2] for row in range(rows)]
    return {
        "id": [str(row) for row in range(rows)],
        "body": [" ".join(generator.choice(WORDS[topic], 8)) for topic in topics],
        "topic": [topic if labeled is None or row < labeled else None for row, topic in enumerate(topics)],
    }


def write_csv(path: Path, columns: dict[str, list[Any]], encoding: str = "utf-8") -> str:
    with path.open("w", newline="", encoding=encoding) as file:
        csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])
    return str(path)


def small_encoder(folder: Path) -> str:
    """A BERT with random weights that knows the words of `WORDS`; at most 64 tokens."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: place for place, word in enumerate([*SPECIAL, *WORDS["money"], *WORDS["sport"]])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return save_small_bert(folder, tokenizer)


def save_small_bert(folder: Path, tokenizer: Any, **settings: Any) -> str:
    """A BERT with random weights for a tokenizer of `tokenizers` whose first tokens are `SPECIAL`; at most 64 tokens.

    settings: of its configuration, beside its size, or another number of tokens.
    """
    from tokenizers import processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertModel(
            BertConfig(
                vocab_size=tokenizer.get_vocab_size(),
                hidden_size=16,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=32,
                **{"max_position_embeddings": 64, **settings},
            )
        )
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(folder)
    return str(folder)


def small_fit(train: Any, encoder: str, training: dict[str, Any] | None = None, **options: Any) -> Run:
    """`drift.fit` with few steps and two seeds, unless `options` say otherwise."""
    settings: dict[str, Any] = dict(options.pop("settings", {}))
    settings["training"] = {**STEPS, **(training or {})}
    settings["model"] = {"max_length": 32, **settings.get("model", {})}
    options = {"model": encoder, "seeds": 2, "quiet": True, "onnx": False, **options}
    run = drift.fit(train, settings=settings, **options)
    assert isinstance(run, Run)
    return run


def weights(run: Run) -> dict[str, torch.Tensor]:
    """What was trained."""
    return {name: value for name, value in run.model.module.state_dict().items() if not name.startswith("encoder.")}


def same_weights(one: Run, other: Run) -> bool:
    left, right = weights(one), weights(other)
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def metrics_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "metrics.json").read_text(encoding="utf-8")))
