"""Time one step of DRIFT, of conventional self-training, and of supervised learning.

The interaction term is one backward pass through the teacher. If a forward pass costs 1 unit and a backward pass 2,
DRIFT costs 3 + 3, self-training 3 + 1, and supervised learning 3: the ratio of DRIFT to self-training is 1.5, and the
rest is overhead. "drift shared" is DRIFT with coupling="shared", without a backward through the teacher: its ratio to
self-training should be near 1. Both games are also written by hand, to measure the overhead of `drift.Game` over a bare
loop. A step is loss, backward, optimizer, zero_grad and follow, with pseudo-labels for all rows. A repeat is one step
of each variant, so that other load on the machine affects all; with one thread, CPU time is measured. Prints JSON:
median and quartiles of milliseconds, and of the ratios of each repeat; and the peak of the memory that one step of each
variant allocates, from torch's profiler. In the file of --out, students that were not measured are kept.

    python benchmarks/step.py
    python benchmarks/step.py --students mlp,cnn --repeats 50
    DRIFT_MODELS=~/models python benchmarks/step.py --students encoder --out docs/results/step.json

The encoders are the folders paraphrase-MiniLM-L3-v2 and bge-small-en-v1.5 in $DRIFT_MODELS; a student whose folder is
missing is skipped.
"""

import argparse
import copy
import gc
import json
import math
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import drift
from drift.models.mlp import mlp
from drift.models.textcnn import TextCNN

ALPHA, TAU, LEARNING_RATE = 0.9, 0.5, 1e-4
WARM_UP = 5  # repeats that are not counted, at most half of the others
SHARED = "drift shared / self-training"
RATIOS = {  # variants, and what is subtracted from their ratio
    "drift / self-training": ("drift", "self-training", 0),
    SHARED: ("drift shared", "self-training", 0),
    "drift / supervised": ("drift", "supervised", 0),
    "self-training / supervised": ("self-training", "supervised", 0),
    "game overhead": ("drift", "drift by hand", 1),
    "game overhead, detached": ("self-training", "self-training by hand", 1),
}
TARGETS = {  # upper bounds of the median
    "mlp": {SHARED: 1.10},
    "textcnn": {SHARED: 1.10},
    "encoder": {"drift / self-training": 1.55, "game overhead": 0.03, SHARED: 1.05},
    "bge-small": {SHARED: 1.05},
}

Case = tuple[nn.Module, dict[str, Tensor]]  # a student, and the batch it is called with
OptimizerLike = tuple[Callable[[], Tensor], Callable[[Tensor], None], Callable[[], None]]  # loss, backward, follow


def mlp_case(rng: torch.Generator) -> Case:
    return mlp(64, 10, hidden=(128,)), {"input": torch.randn(256, 64, generator=rng)}


def cnn_case(rng: torch.Generator) -> Case:
    blocks = [(nn.Conv2d(a, b, 3), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2)) for a, b in ((1, 32), (32, 64))]
    cnn = nn.Sequential(*blocks[0], *blocks[1], nn.Flatten(), nn.Linear(64 * 5 * 5, 10))
    return cnn, {"input": torch.randn(64, 1, 28, 28, generator=rng)}


def textcnn_case(rng: torch.Generator) -> Case:
    student = TextCNN(torch.randn(5000, 100, generator=rng), 4, maps=100)
    tokens = torch.randint(5000, (64, 48), generator=rng)
    return student, {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}


def encoder_case(rng: torch.Generator, name: str = "paraphrase-MiniLM-L3-v2") -> Case | str:  # or why there is none
    folder = Path(os.environ.get("DRIFT_MODELS", "")).expanduser() / name
    if not folder.is_dir():
        return f"no folder {folder.name} found; set DRIFT_MODELS to the folder that holds it"
    try:
        from transformers import AutoModelForSequenceClassification
    except ImportError:
        return "transformers is not installed; pip install 'drift-ssl[text]'"
    student = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32, num_labels=4)
    tokens = torch.randint(1000, student.config.vocab_size, (32, 48), generator=rng)  # BERT's words start near 1000
    return student, {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}


CASES = {
    "mlp": (mlp_case, 500),
    "cnn": (cnn_case, 100),
    "textcnn": (textcnn_case, 100),
    "encoder": (encoder_case, 40),
    "bge-small": (partial(encoder_case, name="bge-small-en-v1.5"), 15),
}  # with the default number of repeats


def logits(module: nn.Module, inputs: dict[str, Tensor]) -> Tensor:  # (N, C)
    output = module(**inputs)
    return getattr(output, "logits", output)


def supervised(student: nn.Module, inputs: dict[str, Tensor], y: Tensor) -> OptimizerLike:
    return lambda: nn.functional.cross_entropy(logits(student, inputs), y), torch.autograd.backward, lambda: None


def with_game(student: nn.Module, inputs: dict[str, Tensor], coupling: Any) -> OptimizerLike:
    game = drift.Game(student, alpha=ALPHA, tau=TAU, coupling=coupling)
    return lambda: game.loss(unlabeled=inputs), game.backward, game.follow


def by_hand(student: nn.Module, inputs: dict[str, Tensor], coupled: bool) -> OptimizerLike:
    """The game as written for one model: no checks, no protection against log 0, no diagnostics."""
    teacher = copy.deepcopy(student).eval().requires_grad_(coupled)
    leaders, followers = list(student.parameters()), list(teacher.parameters())
    sources = leaders + [b for b in student.buffers() if b.is_floating_point()]
    averages = followers + [b for b in teacher.buffers() if b.is_floating_point()]

    def loss() -> Tensor:
        log_q = torch.log_softmax(logits(student, inputs), -1)
        with torch.set_grad_enabled(coupled):
            z = torch.log_softmax(logits(teacher, inputs), -1) / TAU
            log_y = torch.log_softmax(z - z.logsumexp(0, keepdim=True), -1)
            y = log_y.exp()
            omega = 1 + (y * log_y).sum(-1) / math.log(y.shape[-1])
        return (omega * (y * (log_y - log_q)).sum(-1)).mean()

    def backward(loss: Tensor) -> None:
        loss.backward()
        if coupled:
            with torch.no_grad():
                torch._foreach_add_([p.grad for p in leaders], [p.grad for p in followers], alpha=1 - ALPHA)
            teacher.zero_grad()

    return loss, backward, torch.no_grad()(lambda: torch._foreach_lerp_(averages, sources, 1 - ALPHA))


def stepper(case: Case, play: Callable[..., OptimizerLike], setting: object) -> Callable[[], Tensor]:
    """A function that takes one step, with its own student and optimizer, and returns the loss."""
    student = copy.deepcopy(case[0]).train()
    optimizer = torch.optim.AdamW(student.parameters(), lr=LEARNING_RATE, fused=True)
    loss, backward, follow = play(student, case[1], setting)

    def step() -> Tensor:
        value = loss()
        backward(value)
        optimizer.step()
        optimizer.zero_grad()
        follow()
        return value.detach()

    return step


def measure(steps: dict[str, Callable[[], Tensor]], repeats: int) -> dict[str, np.ndarray]:
    """Milliseconds per step of every variant, for every repeat."""
    warm_up = min(WARM_UP, max(1, repeats // 2))
    ms = {variant: np.empty(warm_up + repeats) for variant in steps}
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    for repeat in range(warm_up + repeats):
        order = [*steps][repeat % len(steps) :] + [*steps][: repeat % len(steps)]
        losses = {}
        for variant in (
            order if repeat % 2 else reversed(order)
        ):  # rotated, so that no variant always follows the same one
            torch.manual_seed(repeat)  # the same dropout for all variants
            start = clock()
            losses[variant] = steps[variant]()
            ms[variant][repeat] = 1e3 * (clock() - start)
        for game in ("drift", "self-training"):
            if repeat >= warm_up or f"{game} by hand" not in steps:
                continue
            torch.testing.assert_close(losses[game], losses[f"{game} by hand"], rtol=1e-2, atol=1e-7)
    return {variant: values[warm_up:] for variant, values in ms.items()}


def spread(values: np.ndarray) -> dict[str, float]:
    return dict(zip(("median", "q1", "q3"), np.quantile(values, (0.5, 0.25, 0.75)).round(4).tolist(), strict=True))


def peak_memory(step: Callable[[], Tensor]) -> float:
    """The most memory that tensors of one step take at the same time, beyond what was there before; MB."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as trace:
        step()
    events = [event for event in trace.profiler.kineto_results.events() if event.name() == "[memory]"]
    sizes = [event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]
    return round(float(np.cumsum(sizes).max()) / 1e6, 2)


def run(name: str, repeats: int | None, *, games_only: bool) -> dict[str, Any]:
    """Measure one student; returns its part of the JSON. games_only: without "supervised" and the games by hand."""
    build, default_repeats = CASES[name]
    rng = torch.manual_seed(0)  # the global generator: modules draw their weights from it
    if isinstance(case := build(rng), str):
        return {"skipped": case}
    batch = next(iter(case[1].values()))
    y = torch.randint(4, (len(batch),), generator=rng)
    repeats = repeats or default_repeats
    print(f"{name}: {repeats} repeats", file=sys.stderr)
    steps = {
        "self-training": stepper(case, with_game, "detached"),
        "drift": stepper(case, with_game, "differentiable"),
        "drift shared": stepper(case, with_game, "shared"),
    }
    if not games_only:
        steps["supervised"] = stepper(case, supervised, y)
        steps["self-training by hand"] = stepper(case, by_hand, False)
        steps["drift by hand"] = stepper(case, by_hand, True)
    ms = measure(steps, repeats)
    ratios = {name: spread(ms[a] / ms[b] - less) for name, (a, b, less) in RATIOS.items() if {a, b} <= set(ms)}
    met = {
        key: {"target": most, "met": ratios[key]["median"] <= most}
        for key, most in TARGETS.get(name, {}).items()
        if key in ratios
    }
    times = {variant: spread(values) for variant, values in ms.items()}
    megabytes = {variant: peak_memory(step) for variant, step in steps.items()}
    result = {"batch": [*batch.shape], "repeats": repeats, "ms": times, "ratios": ratios}
    return {**result, "peak_megabytes": megabytes, "targets": met}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", default=",".join(CASES), help="comma-separated (default: %(default)s)")
    parser.add_argument("--repeats", type=int, help="timed steps per variant (default: 15 to 500, by student)")
    parser.add_argument("--games-only", action="store_true", help="measure the three couplings of drift.Game alone")
    parser.add_argument("--threads", type=int, default=1, help="threads torch may use (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="also write the JSON to this file")
    args = parser.parse_args()
    names = args.students.split(",")
    if unknown := [name for name in names if name not in CASES]:
        parser.error(f"--students: {', '.join(unknown)} is not among {', '.join(CASES)}")
    torch.set_num_threads(args.threads)
    gc.disable()  # otherwise one variant would pay for the allocations of all
    setting = {"torch": torch.__version__, "threads": args.threads, "optimizer": "AdamW, fused"}
    students = {name: {"setting": setting, **run(name, args.repeats, games_only=args.games_only)} for name in names}
    print(json.dumps(students, indent=2))
    if args.out:
        earlier = json.loads(args.out.read_text(encoding="utf-8")) if args.out.exists() else {}
        args.out.write_text(json.dumps({**earlier, **students}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
