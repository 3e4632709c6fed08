"""Files that are wrong in many ways, and finished runs to use them on."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.cli.conftest import call  # noqa: F401 - a fixture
from tests.data.test_hostile_graphs import MALFORMED, unchecked
from tests.data.test_reading import BOMB
from tests.hostile.newer_files import write_newer
from tests.runs.small import small_encoder, small_fit, small_table, write_csv
from tests.runs.small_graphs import small_graph, write_npz

RULES = "rules:\n- {name: a, label: money, has: [stock]}\n- {name: b, label: sport, has: [team]}\n"
TOKEN_RULES = "task: tokens\ntypes: [X]\nrules:\n- {name: a, type: X, phrases: [stock]}\n"
TEXTS = {
    "empty.csv": "",
    "ragged.csv": "text,label\na,b,c\n",
    "noext": "text,label\na,b\n",
    "nul.csv": "text,label\na\0,b\n",
    "quote.csv": 'text,label\n"a,b\n',
    "twice.csv": "text,text\na,b\n",
    "headless.csv": ",label\na,b\n",
    "nolabels.csv": "text,label\nstock market,\nteam game,\n",
    "oneclass.csv": "text,label\nstock market,money\nteam game,money\n",
    "deep.jsonl": '{"text": ' + "[" * 100_000 + "\n",
    "broken.jsonl": '{"text": "a"\n',
    "list.jsonl": "[1, 2]\n",
    "surrogate.jsonl": '{"text": "a\\ud800", "label": "x"}\n',
    "badtags.jsonl": '{"tokens": ["a"], "labels": [["X"]]}\n',
    "uneven.jsonl": '{"tokens": ["a", "b"], "labels": ["B-X"]}\n',
    "fake.parquet": "PAR1 nothing",
    "fake.csv.gz": "not gzip",
    "bomb.yaml": BOMB,
    "listbomb.yaml": "data:\n  train: x\ntraining:\n" + "".join(f"  {line}\n" for line in BOMB.splitlines()),
    "deep.yaml": "a: " + "[" * 100_000,
    "recursive.yaml": "a: &a [1, *a]",
    "empty.yaml": "",
    "listed.yaml": "- 1\n- 2\n",
    "groups.yaml": "data: [1]\nmethod: x\n",
    "names.yaml": "task: [text]\nmethod: {name: {a: 1}}\n",
    "tagged.yaml": "a: !!python/object/apply:os.system [true]\n",
    "norules.yaml": "classes: [a, b]\n",
    "gazdevice.yaml": "task: tokens\nrules:\n- {name: a, type: X, gazetteer: /dev/zero}\n",
    "gazmissing.yaml": "task: tokens\nrules:\n- {name: a, type: X, gazetteer: nothing.txt}\n",
    "syntax.py": "rules = (",
    "rules.yaml": RULES,
    "tokenrules.yaml": TOKEN_RULES,
    "sysexit.py": "import sys\ndef make(d, c): sys.exit(7)\nsys.exit(7)\n",
    "sentences.jsonl": "".join(
        json.dumps({"tokens": ["stock", word], "labels": ["B-X", "O"]}) + "\n" for word in ("team", "game", "match")
    ),
}


ROWS = "body,topic\nstock market,money\nteam game,sport\n"
PARTS = {
    "parts": {"a.csv": ROWS, "b.csv": ROWS},
    "noparts": {},
    "mixedparts": {"a.csv": ROWS, "b.nothing": ROWS},
}


class Code:
    """Would create a file if it were unpickled."""

    def __reduce__(self) -> Any:
        return open, ("code-ran", "w")


def write_graphs(folder: Path) -> None:
    """Graph files that are wrong."""
    x, edges = torch.rand(6, 4), torch.tensor([[0, 1, 2], [1, 2, 3]])
    faulty: dict[str, Any] = {
        "badcoo": {"x": unchecked(*MALFORMED["coo, column far outside"])},
        "meta": {"x": x.to("meta")},
        "complex": {"x": x.to(torch.complex64)},
        "nan": {"x": x * float("nan")},
        "farnode": {"edge_index": edges * 10**9},
        "floatedges": {"edge_index": edges.float()},
        "zerosized": {"x": x[:0]},
        "noedges": {"edge_index": None},
        "quantised": {"x": torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)},
        "code": {"x": Code()},
    }
    for name, entries in faulty.items():
        torch.save({"x": x, "edge_index": edges, "y": torch.arange(6) % 2, **entries}, folder / f"{name}.pt")
    torch.save(3, folder / "number.pt")
    wrong = {"adj_data": np.ones(2), "adj_indices": np.array([0, 10**9]), "adj_indptr": np.array([0, 1, 2])}
    np.savez(folder / "badcsr.npz", adj_shape=np.array([2, 2]), attr_matrix=np.eye(2), **wrong)
    np.savez(folder / "pickled.npz", x=np.array([Code()], dtype=object), edge_index=edges.numpy())
    write_npz(folder / "graph.npz", small_graph())


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Names of files and folders, for the cases. A name of a case may have an ending."""
    folder = tmp_path_factory.mktemp("hostile")
    files = folder / "files"
    files.mkdir()
    for name, text in TEXTS.items():
        (files / name).write_text(text)
    for ending in ("csv", "yaml", "npz", "pt", "conll"):
        (files / f"binary.{ending}").write_bytes(bytes(range(256)) * 4)
    write_graphs(files)
    write_newer(files)
    for name, tables in PARTS.items():
        (folder / name).mkdir()
        for file, text in tables.items():
            (folder / name / file).write_text(text)
    (folder / "full").mkdir()
    (folder / "full" / "file").write_text("taken")
    encoder = small_encoder(folder / "encoder")
    table = write_csv(files / "table.csv", small_table(24, labeled=8))
    write_csv(files / "labelled.csv", small_table(60, labeled=48))
    run = folder / "run"
    small_fit(table, encoder, text="body", label="topic", out=run, test=table)
    stems = {path.name.split(".")[0]: str(path.with_name(path.name.split(".")[0])) for path in files.iterdir()}
    whole = {
        name: str(files / file)
        for name, file in {
            "table": "table.csv", "graph": "graph.npz", "rules": "rules.yaml", "tokenrules": "tokenrules.yaml",
            "sentences": "sentences.jsonl", "sysexit": "sysexit.py",
        }.items()
    }  # fmt: skip
    return {
        **stems,
        **whole,
        "missing": str(folder / "missing"),
        "folder": str(files),
        "file": str(files / "noext"),
        "device": "/dev/zero",
        "full": str(folder / "full"),
        **{name: str(folder / name) for name in PARTS},
        "encoder": encoder,
        "run": str(run),
    }


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where a command may write; a bad call must leave nothing there."""
    return tmp_path / "out"
