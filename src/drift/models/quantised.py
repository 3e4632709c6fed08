"""From an int8 ONNX file of a BERT encoder to a folder that transformers opens: weights are dequantised one by one."""

import hashlib
import importlib.metadata
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from drift.data.files import atomic_folder
from drift.errors import FileError, needed_for
from drift.models.catalogue import Encoder, Quantised

MODEL, TOKENIZER = "model_quantized.onnx", "tokenizer.json"
PRODUCT = "/MatMul_quant"  # a node /encoder/layer.0/output/dense/MatMul_quant has encoder.layer.0.output.dense.weight
HEADS = 32  # width of an attention head of BERT encoders of this size; ONNX does not store the number of heads


def quantised_files(source: Quantised) -> Path | None:
    """The folder of the files if the package is installed and they are the expected ones; None if it is not.

    FileError if they are others. The package is not imported.
    """
    try:
        package = importlib.metadata.distribution(source.package)
    except importlib.metadata.PackageNotFoundError:
        return None
    folder = Path(str(package.locate_file(source.folder)))
    if not folder.is_dir():
        return None
    for name, expected in source.sums.items():
        if not (folder / name).is_file() or file_sum(folder / name) != expected:
            raise FileError(f"{folder / name} is not the file that is known; install it again: {source.install}")
    return folder


def file_sum(file: Path) -> str:
    """SHA-256 of a file."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def convert(files: Path, encoder: Encoder, target: Path) -> None:
    """Write an encoder in float32 in the form of transformers. Interrupted, it leaves nothing.

    files: the folder with the ONNX file and the tokenizer. target: the folder to create.
    """
    from safetensors.numpy import save_file

    state = dequantised(files / MODEL)
    with atomic_folder(target) as folder:
        save_file(state, folder / "model.safetensors", {"format": "pt"})
        (folder / "model.safetensors").chmod(0o644)  # safetensors writes files that other users cannot read
        _write_json(folder / "config.json", _config(state, encoder))
        _write_json(folder / "tokenizer_config.json", _tokenizer_config(encoder))
        shutil.copyfile(files / TOKENIZER, folder / TOKENIZER)


def dequantised(file: Path) -> dict[str, np.ndarray]:
    """The weights of the graph in float32, by their names in transformers' BertModel."""
    with needed_for("reading an ONNX file"):
        import onnx
    graph = onnx.load(str(file)).graph
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    state = {name: value.copy() for name, value in stored.items() if name.startswith(("embeddings.", "encoder."))}
    state = {name: value for name, value in state.items() if name.endswith((".weight", ".bias"))}
    for name in [name for name in stored if name.endswith(".weight_quantized")]:  # word, position and type embeddings
        state[name.removesuffix("_quantized")] = _values(stored, name.removesuffix("_quantized"))
    for node in graph.node:
        if node.name.endswith(PRODUCT):
            module = node.name.removesuffix(PRODUCT).strip("/").replace("/", ".")
            matrix = _values(stored, node.input[1].removesuffix("_quantized"))
            state[f"{module}.weight"] = np.ascontiguousarray(matrix.T)  # x @ W in ONNX, W @ x in torch
    return dict(sorted(state.items()))


def _values(stored: dict[str, np.ndarray], name: str) -> np.ndarray:
    """scale (q - zero point), per column where there are several scales."""
    numbers = stored[f"{name}_quantized"].astype(np.int32) - stored[f"{name}_zero_point"].astype(np.int32)
    values: np.ndarray = (numbers * stored[f"{name}_scale"]).astype(np.float32)
    return values


def _config(state: dict[str, np.ndarray], encoder: Encoder) -> dict[str, Any]:
    vocabulary, width = state["embeddings.word_embeddings.weight"].shape
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "dtype": "float32",
        "vocab_size": vocabulary,
        "hidden_size": width,
        "num_hidden_layers": encoder.layers,
        "num_attention_heads": width // HEADS,
        "intermediate_size": len(state["encoder.layer.0.intermediate.dense.bias"]),
        "max_position_embeddings": len(state["embeddings.position_embeddings.weight"]),
        "type_vocab_size": len(state["embeddings.token_type_embeddings.weight"]),
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
    }


def _tokenizer_config(encoder: Encoder) -> dict[str, Any]:
    special = {name: f"[{name[:-6].upper()}]" for name in ("pad_token", "unk_token", "cls_token", "sep_token")}
    return {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": True,
        "model_max_length": encoder.max_length,
        "mask_token": "[MASK]",
        **special,
    }


def _write_json(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
