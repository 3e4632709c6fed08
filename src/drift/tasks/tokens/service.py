"""Python code that tags sentences with the ONNX file, without torch or this package."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drift.tasks.standalone import FOLDER, quoted, script
from drift.tasks.tokens.record import TokenRecord

VALID = """\
    paths = [(0.0, ["O"])]  # the best path to each tag; I-X only after B-X or I-X, and B-X after these is rare
    for row in np.log(probabilities):
        paths = [
            max(
                (
                    (score + p + RESTART * (tag[0] == "B" and tag[1:] == path[-1][1:]), [*path, tag])
                    for score, path in paths
                    if tag[0] != "I" or tag[1:] == path[-1][1:]
                ),
                default=(-np.inf, [tag]),
            )
            for tag, p in zip(CLASSES, row)
        ]
    return max(paths)[1][1:]"""
PLAIN = """\
    paths = [(0.0, ["O"])]  # the best path to each tag; a slot right after one of another type is rare
    for row in np.log(probabilities):
        paths = [
            max(
                (score + p + RESTART * (path[-1] not in ("O", tag) and tag != "O"), [*path, tag])
                for score, path in paths
            )
            for tag, p in zip(CLASSES, row)
        ]
    return max(paths)[1][1:]"""


def token_script(model: Any, record: TokenRecord, onnx: str | None) -> str:
    """`use.py` of a tagger. onnx: the name of an ONNX file of the folder, or None."""
    note = " The rules that vote in the tagger are left out." if model.votes is not None else ""
    if onnx is not None:
        lines = service_lines(record, {}, FOLDER, FOLDER / onnx)
        return script(lines, "tag(text.split())", "onnxruntime, tokenizers and numpy", note)
    lines = [
        "from transformers import pipeline",
        "",
        'tag = pipeline("token-classification", "@", aggregation_strategy="simple")',
    ]
    return script(lines, "tag(text)", "torch and transformers", note)


def service_lines(record: TokenRecord, config: Mapping[str, Any], model: Path, onnx: Path) -> list[str]:
    """A function from the words of a sentence to their tags, by the same decoding as `TokenModel.tags`."""
    return [
        "import json",
        "import numpy as np",
        "import onnxruntime",
        "from tokenizers import Tokenizer",
        "",
        f"about = json.load(open({quoted(model / 'drift.json')}))",
        'CLASSES, RESTART = about["classes"], about["restart"]',
        f"tokenizer = Tokenizer.from_file({quoted(model / 'tokenizer.json')})",
        f"session = onnxruntime.InferenceSession({quoted(onnx)})",
        "",
        "def tag(words):",
        '    encoding = tokenizer.encode(" ".join(words))',
        '    inputs = {"input_ids": np.array([encoding.ids]), "attention_mask": np.array([encoding.attention_mask])}',
        "    starts = np.cumsum([0, *(len(word) + 1 for word in words[:-1])])",
        "    first = [next(i for i, (a, b) in enumerate(encoding.offsets) if a <= start < b) for start in starts]",
        "    probabilities = session.run(None, inputs)[0][0][first]  # of each word's first sub-word",
        *(VALID if record.entities else PLAIN).split("\n"),
    ]
