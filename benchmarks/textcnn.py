"""Speed of TextCNN at the paper's size, which multiplies each distinct word of a batch once, against nn.Conv1d.

    DRIFT_DATA=... OMP_NUM_THREADS=1 python benchmarks/textcnn.py

Batches of similar length from AG News and IMDB, with and without gradients. Medians of processor time, measured
interleaved, are written to docs/results/textcnn_speed.json.
"""

import gzip
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from drift.data.tokenized import tokenize
from drift.data.word_tokens import WordTokenizer
from drift.models.textcnn import TextCNN
from recorded import RESULTS

TEXTS, ROUNDS, WIDTH = 3000, 15, 300
KINDS = ("predict", "learn")
BATCHES = [("agnews", 128, 32), ("agnews", 128, 256), ("imdb", 256, 16), ("imdb", 256, 256)]


class ByConvolution(nn.Module):
    """The same network with the layers of torch."""

    def __init__(self, twin: TextCNN) -> None:
        super().__init__()
        self.vectors = nn.Embedding.from_pretrained(twin.vectors.detach().clone(), freeze=False, padding_idx=0)
        self.filters = nn.ModuleList(nn.Conv1d(WIDTH, len(filters.bias), w) for w, filters in _layers(twin))
        for convolution, (window, filters) in zip(self.filters, _layers(twin), strict=True):
            convolution.weight.data = filters.weight.data.view(-1, window, WIDTH).transpose(1, 2).contiguous()
            convolution.bias.data = filters.bias.data
        self.output = twin.output

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        x = self.vectors(input_ids * attention_mask).transpose(1, 2)
        logits: Tensor = self.output(torch.cat([filters(x).amax(2).relu() for filters in self.filters], 1))
        return logits


def _layers(model: TextCNN) -> list[tuple[int, nn.Module]]:
    return list(zip(model.windows, model.filters, strict=True))


def measure(dataset: str, longest: int, size: int) -> dict[str, Any]:
    with gzip.open(Path(os.environ["DRIFT_DATA"]) / dataset / "train.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line, _ in zip(file, range(TEXTS), strict=False)]
    words = WordTokenizer.from_texts(texts)
    tokens = tokenize(texts, words, max_length=longest)
    middle = tokens.lengths.argsort(stable=True)[TEXTS // 2 :][:size]
    batch = tokens.inputs(middle)
    torch.manual_seed(0)
    ours = TextCNN(torch.randn(len(words), WIDTH) / 10, 4).eval()
    models = {"ours": ours, "conv1d": ByConvolution(ours)}
    runs = {f"{name} {kind}": _pass(model, batch, kind) for name, model in models.items() for kind in KINDS}
    seconds = interleaved(runs)
    return {
        "dataset": dataset,
        "batch": list(batch["input_ids"].shape),
        "different words": round(len(batch["input_ids"].unique()) / batch["input_ids"].numel(), 3),
        "ms": {name: round(1e3 * value, 1) for name, value in seconds.items()},
        "times as fast": {kind: round(seconds[f"conv1d {kind}"] / seconds[f"ours {kind}"], 2) for kind in KINDS},
    }


def _pass(model: nn.Module, batch: dict[str, Tensor], kind: str) -> Callable[[], None]:
    def run() -> None:
        with torch.set_grad_enabled(kind == "learn"):
            loss = model(**batch).logsumexp(1).sum()
        if kind == "learn":
            model.zero_grad()
            loss.backward()

    return run


def interleaved(runs: dict[str, Callable[[], None]]) -> dict[str, float]:
    taken: dict[str, list[float]] = {key: [] for key in runs}
    for _ in range(ROUNDS):
        for key, run in runs.items():
            began = time.process_time()
            run()
            taken[key].append(time.process_time() - began)
    return {key: statistics.median(values) for key, values in taken.items()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    results = [measure(*batch) for batch in BATCHES]
    (RESULTS / "textcnn_speed.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=1))
