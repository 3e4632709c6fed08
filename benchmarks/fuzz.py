"""Damaged files for every reader: `python benchmarks/fuzz.py --seconds 600`.

Each reader runs in a child process on mutations of sound files. An exception that is no `DriftError`, a message of
several lines, or the end of the process counts as a crash, and the file is kept under `fuzz/crashes`.
`benchmarks/fuzz_coverage.py` looks for inputs that reach new code, from the same seeds.
"""

import argparse
import multiprocessing
import random
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

from drift.annotate.events import check_events
from drift.annotate.journal import Journal
from drift.annotate.state import State
from drift.data.graphs import read_graph
from drift.data.sentences import read_sentences
from drift.data.tables import read_chunks
from drift.errors import DriftError
from drift.runs.layers import read_config
from drift.tasks.nodes.model import Design, NodeModel
from drift.tasks.record import ClassRecord
from drift.weak import RuleSet
from drift.weak.class_names import class_phrases
from drift.weak.dictionaries import read_dictionary
from drift.weak.token_rules import TokenRuleSet

HANGS = 60  # seconds of processor time for `FILES` files, which take a few
FILES = 200
INTERESTING = (
    b"\0",
    b"\xff",
    b'"',
    b"[",
    b"{",
    b",",
    b"\n",
    b"&a ",
    b"*a",
    b"-1",
    b"1e999",
    b"9" * 30,
    b"\\ud800",
    b"null",
)
RULES = b"classes: [a, b]\nrules:\n- {name: x, label: a, has: [b, c]}\n- {name: y, label: b, matches: 'a.*b'}\n"
TOKEN_RULES = (
    b"task: tokens\ntypes: [X]\nrules:\n- {name: x, type: X, phrases: [a b]}\n- {name: y, type: X, pattern: a+}\n"
)
CONFIG = yaml.safe_dump({"task": "text", "data": {"train": "x.csv"}, "training": {"steps": 3}}).encode()
DICTIONARY = b'{"phrase": "a b", "type": "X", "aliases": ["c", "d"], "case": "lower"}\n{"phrase": "e", "type": "Y"}\n'
CLASSES = b"sports: games and matches\nmoney: [stock market, banks]\n"
JOURNAL = (
    b'{"format":"drift-annotate/1","texts":"x"}\n{"do":"classes","names":["a","b"]}\n'
    b'{"do":"label","rows":[0,2],"class":1,"by":"list","guesses":[null,0]}\n{"do":"merge","class":1,"into":0}\n'
)
RECORD = b'{"version": 2, "task": "text", "unit": "texts", "measures": {"accuracy": "accuracy"}, "classes": ["a"]}'


def _all(rows: Any) -> None:
    for _ in rows:
        pass


def _record(path: Path) -> None:
    import json

    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return  # `RunFolder.read_json` reports it
    ClassRecord.read(content, str(path))


def _journal(path: Path) -> None:
    with Journal(path, {"texts": "x"}) as journal:
        check_events(journal.events, 3, path)
        state = State()
        for event in journal.events:
            state.apply(event)


READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "csv": (".csv", lambda path: _all(read_chunks(path))),
    "jsonl": (".jsonl", lambda path: _all(read_chunks(path))),
    "parquet": (".parquet", lambda path: _all(read_chunks(path))),
    "conll": (".conll", read_sentences),
    "npz": (".npz", read_graph),
    "pt": (".pt", read_graph),
    "rules": (".yaml", RuleSet.from_file),
    "token rules": (".yaml", TokenRuleSet.from_file),
    "dictionary": (".jsonl", lambda path: _all(read_dictionary(path))),
    "class names": (".yaml", class_phrases),
    "journal": (".journal", _journal),
    "config": (".yaml", read_config),
    "record": (".json", _record),
    "model": ("/drift.json", NodeModel.load),
    "weights": ("/weights.safetensors", NodeModel.load),
}


def sound_model() -> NodeModel:
    """A model of nodes with four features and two classes."""
    weights = {"first_weight": torch.zeros(1, 4, 3), "first_bias": torch.zeros(1, 3)}
    return NodeModel(weights, Design(hidden=3), ["a", "b"], 4)


def seeds(folder: Path) -> dict[str, bytes]:
    """A sound file for each reader."""
    x, edges = torch.rand(6, 4), torch.tensor([[0, 1, 2], [1, 2, 3]])
    torch.save({"x": x.to_sparse(), "edge_index": edges, "y": torch.arange(6) % 2}, folder / "g.pt")
    np.savez(folder / "g.npz", x=x.numpy(), edge_index=edges.numpy(), y=np.arange(6) % 2)
    import pyarrow
    import pyarrow.parquet

    sound_model().save(folder / "seed")
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a", "b"], "label": ["x", None]}), folder / "t.parquet")
    return {
        "csv": b'text,label\n"a, b",x\nc,\n',
        "jsonl": b'{"text": "a", "label": "x"}\n{"text": "b", "label": null}\n',
        "parquet": (folder / "t.parquet").read_bytes(),
        "conll": b"a B-X\nb I-X\n\nc O\n",
        "npz": (folder / "g.npz").read_bytes(),
        "pt": (folder / "g.pt").read_bytes(),
        "rules": RULES,
        "token rules": TOKEN_RULES,
        "dictionary": DICTIONARY,
        "class names": CLASSES,
        "journal": JOURNAL,
        "config": CONFIG,
        "record": RECORD,
        "model": (folder / "seed" / "drift.json").read_bytes(),
        "weights": (folder / "seed" / "weights.safetensors").read_bytes(),
    }


def mutated(content: bytes, generator: random.Random) -> bytes:
    """One to five changes: a byte, an insertion, a deletion or a repetition."""
    changed = bytearray(content)
    for _ in range(generator.randint(1, 5)):
        at = generator.randrange(len(changed) + 1)
        way = generator.randrange(4)
        if way == 0 and changed:
            changed[min(at, len(changed) - 1)] = generator.randrange(256)
        elif way == 1:
            changed[at:at] = generator.choice(INTERESTING)
        elif way == 2:
            del changed[at : at + generator.randint(1, 8)]
        else:
            changed[at:at] = changed[at : at + 40] * generator.randint(1, 50)
    return bytes(changed)


def attempt(name: str, content: bytes, folder: Path) -> str | None:
    """Read one file. Returns what went wrong; None for a value or an error of one line."""
    ending, read = READERS[name]
    path = folder / f"file{ending}"
    if ending.startswith("/"):  # a file in the folder of a sound model
        path = folder / name
        if not path.exists():
            sound_model().save(path)
        (path / ending[1:]).write_bytes(content)
    else:
        path.write_bytes(content)
    try:
        read(path)
    except DriftError as error:
        # Rule files list all their faults, one per line.
        return f"several lines: {error}" if "\n" in str(error) and "rules" not in name else None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _child(name: str, content: bytes, seed: int, count: int, queue: Any, folder: str) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (HANGS, HANGS + 1))
    warnings.simplefilter("ignore")
    generator = random.Random(seed)
    for number in range(count):
        changed = mutated(content, generator)
        (Path(folder) / "last").write_bytes(changed)
        if fault := attempt(name, changed, Path(folder)):
            queue.put((number, fault))


def fuzz(seconds: float, keep: Path) -> int:
    """Run all readers in turn until the time is over. Returns the number of crashes."""
    context = multiprocessing.get_context("fork")
    crashes, tried, end, seed = 0, 0, time.monotonic() + seconds, 0
    with tempfile.TemporaryDirectory() as scratch:
        sound = seeds(Path(scratch))
        while time.monotonic() < end:
            for name, content in sound.items():
                queue = context.Queue()
                child = context.Process(target=_child, args=(name, content, seed, FILES, queue, scratch))
                child.start()
                child.join(20 * HANGS)  # on a busy machine
                if child.is_alive():
                    child.kill()
                    child.join()
                faults = [] if child.exitcode == 0 else [(-1, f"the process ended with {child.exitcode}")]
                while not queue.empty():
                    faults.append(queue.get())
                for number, fault in faults:
                    keep.mkdir(parents=True, exist_ok=True)
                    crashes += 1
                    print(f"{name}, seed {seed}, file {number}: {' '.join(fault.split())[:200]}", flush=True)
                    if number == -1:
                        (keep / f"{name}-{seed}").write_bytes((Path(scratch) / "last").read_bytes())
                tried += FILES
            seed += 1
            print(f"{tried:,} files, {crashes} crashes", flush=True)
    return crashes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--keep", type=Path, default=Path("fuzz/crashes"))
    arguments = parser.parse_args()
    sys.exit(fuzz(arguments.seconds, arguments.keep) > 0)
