"""CPU time of one step of fine-tuning, by way: relative to all layers in float32, interleaved.

    DRIFT_MODELS=... ENV/bin/python benchmarks/finetune_step.py [--repeats 3] [--out docs/results/finetune_step.json]

ENV needs the package peft. Ways are those of `benchmarks/finetune.py`, for bge-small-en-v1.5 on 32 texts of 48 tokens,
with the default game of `drift.Game`: all layers in float32, the same in bfloat16, LoRA in bfloat16, and the upper
third of the layers on stored states in bfloat16. One thread; medians and quartiles over repeats.
"""

import argparse
import gc
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from drift.models.upper_layers import LayerSplit
from finetune import CELLS, LORA
from step import measure, spread, stepper, with_game

ENCODER = CELLS["agnews"].encoder
ROWS, TOKENS, CLASSES = 32, 48, 4
BASE = "float32"


def cases(folder: Path) -> dict[str, tuple[nn.Module, dict[str, Tensor]]]:
    """A student and its batch, by way."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForSequenceClassification

    def student() -> Any:
        return AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32, num_labels=CLASSES)

    rng = torch.manual_seed(0)
    mask = torch.ones(ROWS, TOKENS, dtype=torch.int64)
    inputs = {"input_ids": torch.randint(1000, 30000, (ROWS, TOKENS), generator=rng), "attention_mask": mask}
    whole = student()
    layers = whole.config.num_hidden_layers
    split = LayerSplit(whole, round(layers / 3), name=ENCODER, identity="")
    states = torch.randn(ROWS, TOKENS, whole.config.hidden_size, generator=rng)
    return {
        BASE: (whole, inputs),
        "bfloat16": (whole, inputs),
        "lora": (get_peft_model(student(), LoraConfig(task_type="SEQ_CLS", **LORA)), inputs),
        "upper": (split.upper, {"inputs_embeds": states, "attention_mask": mask}),
    }


def in_bfloat16(step: Callable[[], Tensor]) -> Callable[[], Tensor]:
    def run() -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return step()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    gc.disable()
    students = cases(Path(os.environ["DRIFT_MODELS"]).expanduser() / ENCODER)
    steps = {way: stepper(case, with_game, "differentiable") for way, case in students.items()}
    steps = {way: step if way == BASE else in_bfloat16(step) for way, step in steps.items()}
    ms = measure(steps, options.repeats)
    found = {
        way: {
            "of_float32": spread(ms[way] / ms[BASE]),
            "trained_weights": sum(p.numel() for p in students[way][0].parameters() if p.requires_grad),
        }
        for way in steps
    }
    text = json.dumps({"command": "python " + " ".join(sys.argv), "repeats": options.repeats, "ways": found}, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
