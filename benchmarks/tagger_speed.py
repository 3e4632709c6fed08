"""Sentences per second of training and tagging: `drift fit`, Hugging Face's Trainer on the same encoder, and spaCy.

    DRIFT_DATA=... DRIFT_MODELS=... python benchmarks/tagger_speed.py run --spacy ENV/bin/python
    python benchmarks/tagger_speed.py render

Processor time of one thread on SENTENCES training sentences of CoNLL-03, in batches of 32; each row is measured once
per round, in turn, and the median counts. `drift fit` trains the upper layers on stored states of the lower ones, which
are computed once before; that is a row of its own. The Trainer trains all layers, in float32 as it does by default.
spaCy's pipeline has no encoder that was trained elsewhere. `run` writes docs/results/tagger_speed.json; `render` writes
the table in docs/results/taggers.md.
"""

import argparse
import json
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import transformers

from drift.data.windows import make_windows
from drift.models.encoders import encoder_part, load_tagger
from drift.models.locating import encoder_path
from drift.runs.fit import fit
from drift.tasks.encoder_split import split_encoder
from drift.tasks.tokens.settings import TokenModelSettings
from drift.tasks.tokens.students import KEPT, TRAINED
from drift.training.callbacks import Callback, TrainingState
from few_tags import peer_environment, rows_of, write
from recorded import RESULTS, table

FILE = RESULTS / "tagger_speed.json"
ENCODER, SENTENCES, BATCH, STEPS, EPOCHS = "granite-embedding-30m-english", 256, 32, 10, 4
WARM = 2  # steps that are not counted
NAMES = {
    "drift, start": "DRIFT, first phase",
    "drift, game": "DRIFT, second phase",
    "trainer": "Hugging Face's Trainer",
    "spacy": "spaCy",
}
TEXT = """\

## Speed

Sentences per second of processor time, one thread, on {sentences} sentences of CoNLL-03 (median of {rounds} rounds), by
`python benchmarks/tagger_speed.py`. DRIFT and the Trainer have the same encoder, granite-embedding-30m-english; DRIFT
keeps two thirds of its layers and trains the upper ones in bfloat16 on stored states of the others; the Trainer trains
all of them in float32. These are the defaults of both. A step of the second phase has {batch} sentences with and
{batch} without labels, and counts as {batch}. The lower layers are computed once per run: {stored:.0f} sentences per
second. spaCy's blank pipeline has no encoder that was trained elsewhere.

"""


class Clock(Callback):
    """Processor time at the end of each step, by phase."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {}

    def on_step_end(self, state: TrainingState) -> None:
        self.times.setdefault(state.phase, []).append(time.process_time())


class TrainerClock(transformers.TrainerCallback):
    """The same for the Trainer."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        self.times.append(time.process_time())


def per_second(times: list[float]) -> float:
    return BATCH / float(np.median(np.diff(times[WARM - 1 :])))


def run_drift(rows: list[dict[str, Any]], aside: Path) -> dict[str, float]:
    half = SENTENCES // 2
    table = rows[:half] + [{**row, "labels": None} for row in rows[half:]]
    clock = Clock()
    steps = {"training.initial_steps": STEPS, "training.steps": STEPS}
    done = fit(write(aside / "t.jsonl", table), task="tokens", settings=steps, callbacks=[clock], quiet=True)
    start, game = clock.times.values()
    tokens = [row["tokens"] for row in rows]
    began = time.process_time()
    done.predict(tokens)
    predicted = time.process_time() - began
    return {"drift, start": per_second(start), "drift, game": per_second(game), "drift, tag": len(rows) / predicted}


def run_stored(rows: list[dict[str, Any]]) -> float:
    """Sentences per second of the lower layers."""
    tagger, tokenizer = load_tagger(ENCODER, ["O", "B-X", "I-X"], seed=0, layers=encoder_part(ENCODER, KEPT))
    split = split_encoder(tagger, TokenModelSettings(name=ENCODER), share=TRAINED)
    assert split is not None
    tokens = [row["tokens"] for row in rows]
    windows = make_windows(tokens, tokenizer, max_length=128)
    marked = (f"{time.process_time()}\0" + "\0".join(words) for words in tokens)  # not in the cache
    began = time.process_time()
    split.stored(windows, marked)
    return len(rows) / (time.process_time() - began)


def run_trainer(rows: list[dict[str, Any]], aside: Path) -> dict[str, float]:
    folder = encoder_path(ENCODER)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, add_prefix_space=True)
    names = sorted({tag for row in rows for tag in row["labels"]})
    model = transformers.AutoModelForTokenClassification.from_pretrained(
        folder,
        num_labels=len(names),
        dtype=torch.float32,  # the files may be in half precision, which is slow on a CPU
    )
    encoded = tokenizer([row["tokens"] for row in rows], is_split_into_words=True, truncation=True, max_length=128)
    examples = []
    for row, words in enumerate(rows):
        ids, seen = encoded.word_ids(row), set()
        labels = []
        for word in ids:
            labels.append(-100 if word is None or word in seen else names.index(words["labels"][word]))
            seen.add(word)
        inputs = {name: encoded[name][row] for name in ("input_ids", "attention_mask")}
        examples.append({**inputs, "labels": labels})
    clock = TrainerClock()
    settings = transformers.TrainingArguments(
        str(aside / "trainer"),
        per_device_train_batch_size=BATCH,
        per_device_eval_batch_size=BATCH,
        max_steps=STEPS,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        use_cpu=not torch.cuda.is_available(),
    )
    collator = transformers.DataCollatorForTokenClassification(tokenizer)
    trainer = transformers.Trainer(model, settings, data_collator=collator, train_dataset=examples, callbacks=[clock])
    trainer.train()
    began = time.process_time()
    trainer.predict(examples)
    return {"trainer": per_second(clock.times), "trainer, tag": len(rows) / (time.process_time() - began)}


def run_spacy(python: str, rows: list[dict[str, Any]], aside: Path) -> dict[str, float]:
    file, out = write(aside / "spacy.jsonl", rows), aside / "out.json"
    script = str(Path(__file__).with_name("spacy_peer.py"))
    arguments = ["--train", str(file), "--test", str(file), "--out", str(out), "--epochs", str(EPOCHS)]
    subprocess.run([python, script, *arguments], check=True, env=peer_environment())
    seconds = json.loads(out.read_text(encoding="utf-8"))["seconds"]
    return {"spacy": EPOCHS * len(rows) / seconds["train"], "spacy, tag": len(rows) / seconds["predict"]}


def run(python: str, rounds: int) -> None:
    torch.set_num_threads(1)
    rows = rows_of("conll03", "train")[:SENTENCES]
    measured: dict[str, list[float]] = {}
    for number in range(rounds):
        with TemporaryDirectory() as aside:
            folder = Path(aside)
            line = run_drift(rows, folder) | run_trainer(rows, folder) | run_spacy(python, rows, folder)
            line["stored"] = run_stored(rows)
        print(line, flush=True)
        for name, value in line.items():
            measured.setdefault(name, []).append(round(value, 1))
        content = {"encoder": ENCODER, "sentences": SENTENCES, "batch": BATCH, "rounds": number + 1}
        FILE.write_text(json.dumps({**content, "per_second": measured}, indent=2) + "\n", encoding="utf-8")


def speed_section() -> str:
    """The part of docs/results/taggers.md about speed; empty without measurements."""
    if not FILE.exists():
        return ""
    content = json.loads(FILE.read_text(encoding="utf-8"))
    medians = {name: float(np.median(values)) for name, values in content["per_second"].items()}
    rows = [
        [title, f"{medians[name]:.0f}", f"{medians[name.split(',')[0] + ', tag']:.0f}"] for name, title in NAMES.items()
    ]
    text = TEXT.format(**{name: content[name] for name in ("sentences", "rounds", "batch")}, stored=medians["stored"])
    return text + "\n".join(table(["tagger", "training", "tagging"], rows)) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "render"])
    parser.add_argument("--spacy", help="Python of an environment with spacy.")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.what == "run":
        if options.spacy is None:
            parser.error("run needs --spacy")
        run(options.spacy, options.rounds)
        return
    from taggers import render

    render()


if __name__ == "__main__":
    main()
