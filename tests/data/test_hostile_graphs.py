"""Graph files of strangers: whatever a tensor is, it is read or refused in one line, and the process lives."""

import io
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from drift.data.graphs import read_graph
from drift.errors import DriftError

NODES = 6
X, EDGES = torch.rand(NODES, 4), torch.tensor([[0, 1, 2], [1, 2, 3]])


def unchecked(layout: torch.layout, *parts: Any, size: tuple[int, int] = (NODES, 4)) -> torch.Tensor:
    """A sparse tensor that torch did not validate, as a file may hold it."""
    with torch.sparse.check_sparse_tensor_invariants(False):
        if layout == torch.sparse_coo:
            return torch.sparse_coo_tensor(*parts, size)
        return torch.sparse_compressed_tensor(*parts, size, layout=layout)


ONES, STARTS = torch.ones(2), torch.tensor([0, 1, 2, 2, 2, 2, 2])
MALFORMED = {
    "coo, column far outside": (torch.sparse_coo, torch.tensor([[0, 1], [0, 10**9]]), ONES),
    "coo, negative row": (torch.sparse_coo, torch.tensor([[-5, 1], [0, 1]]), ONES),
    "csr, column far outside": (torch.sparse_csr, STARTS, torch.tensor([0, 10**9]), ONES),
    "csr, negative column": (torch.sparse_csr, STARTS, torch.tensor([0, -1]), ONES),
    "csr, starts beyond the values": (torch.sparse_csr, STARTS * 10**6, torch.tensor([0, 1]), ONES),
    "csr, starts that fall": (torch.sparse_csr, torch.tensor([0, 2, 0, 2, 2, 2, 2]), torch.tensor([0, 1]), ONES),
    "csc, row far outside": (torch.sparse_csc, torch.tensor([0, 1, 2, 2, 2]), torch.tensor([0, 10**9]), ONES),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("entry", ["x", "edge_index", "y", "train_mask"])
def test_a_malformed_sparse_tensor_is_refused(tmp_path: Path, name: str, entry: str) -> None:
    torch.save({"x": X, "edge_index": EDGES, entry: unchecked(*MALFORMED[name])}, tmp_path / "g.pt")
    with pytest.raises(DriftError, match=r"g\.pt") as raised:
        read_graph(tmp_path / "g.pt")
    assert "\n" not in str(raised.value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("make", "form"),
    [
        (lambda: X.to("meta"), "meta"),
        (lambda: torch.quantize_per_tensor(X, 0.1, 0, torch.qint8), "quantised"),
        (lambda: X.to(torch.complex64), "complex"),
        (lambda: torch.nested.nested_tensor([X[0], X[1, :2]]), "nested"),
        (lambda: X.to(torch.float8_e4m3fn), "float8_e4m3fn"),
        (lambda: torch.ones(NODES, 4, dtype=torch.uint16), "uint16"),
    ],
)
def test_tensors_without_plain_numbers_are_refused(tmp_path: Path, make: Any, form: str) -> None:
    torch.save({"x": make(), "edge_index": EDGES}, tmp_path / "g.pt")
    with pytest.raises(DriftError, match=form):
        read_graph(tmp_path / "g.pt")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("convert", ["to_sparse", "to_sparse_csr", "to_sparse_csc", "clone", "bfloat16"])
def test_sound_tensors_of_every_layout_are_read(tmp_path: Path, convert: str) -> None:
    torch.save({"x": getattr(X, convert)(), "edge_index": EDGES}, tmp_path / "g.pt")
    features = read_graph(tmp_path / "g.pt").features.to_dense()
    torch.testing.assert_close(features, X, atol=1e-2, rtol=0)


def mutated(parts: dict[str, bytes], generator: random.Random) -> bytes:
    """A .pt file with one to four bytes of its pickle or of its tensors replaced."""
    parts = dict(parts)
    for _ in range(generator.randint(1, 4)):
        name = generator.choice([name for name in parts if name.endswith("data.pkl") or "/data/" in name])
        content = bytearray(parts[name])
        content[generator.randrange(len(content))] = generator.choice([0, 1, 2, 127, 128, 255])
        parts[name] = bytes(content)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, stored in parts.items():
            archive.writestr(name, stored)
    return written.getvalue()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("convert", ["clone", "to_sparse", "to_sparse_csr"])
def test_damaged_files_never_end_the_process(tmp_path: Path, convert: str) -> None:
    torch.save({"x": getattr(X, convert)(), "edge_index": EDGES}, tmp_path / "sound.pt")
    with zipfile.ZipFile(tmp_path / "sound.pt") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    generator, refusals = random.Random(0), []
    for _ in range(150):
        (tmp_path / "g.pt").write_bytes(mutated(parts, generator))
        try:
            graph = read_graph(tmp_path / "g.pt")
        except DriftError as error:
            refusals.append(str(error))
        else:
            assert np.isfinite(graph.features.to_dense().numpy()).all()
    assert len(refusals) > 50
    assert not any("\n" in message for message in refusals)
