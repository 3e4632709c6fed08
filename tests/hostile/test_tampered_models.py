"""What else is in a model's folder: rules of a tagger, and ONNX files. Changed by a stranger, they are one line."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drift.errors import DriftError, FileError
from drift.models.onnx_module import OnnxModule
from drift.tasks.tokens.model import RULES, TokenModel
from drift.tasks.tokens.voting import Votes
from drift.weak.token_rules import SAVED, TokenRuleSet
from tests.hostile.test_tampered_runs import mutations
from tests.runs.small import small_fit
from tests.runs.small_tokens import small_sentences, small_word_encoder, write_jsonl

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'drift-ssl[text]'")
SENTENCES = [["Ann", "lives", "in", "Bern"], []]
GRAPHS = ("other inputs", "two outputs", "other classes", "text out", "fails")


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of a tagger with rules that vote."""
    base = tmp_path_factory.mktemp("tagger")
    options: dict[str, Any] = {"task": "tokens", "finetune": True, "seeds": 1}
    table = write_jsonl(base / "t.jsonl", small_sentences(12, labeled=8))
    model = small_fit(table, small_word_encoder(base / "encoder"), **options).model
    kind = next(tag[2:] for tag in model.classes if tag != "O")
    (base / "words.csv").write_text(f"phrase,type\nAnn,{kind}\n")
    listed = [{"name": "a", "gazetteer": "words.csv"}, {"name": "b", "type": kind, "phrases": ["Bern"]}]
    (base / "rules.yaml").write_text(json.dumps({"task": "tokens", "types": [kind], "rules": listed}))
    votes = Votes(TokenRuleSet.from_file(base / "rules.yaml"), 1.0)
    TokenModel(**{**vars(model), "votes": votes}).save(base / "model")
    return base / "model"


@pytest.fixture
def copied(tagger: Path, tmp_path: Path) -> Path:
    shutil.copytree(tagger, tmp_path / "model")
    return tmp_path / "model"


def opened(folder: Path) -> str:
    """Open a tagger and use it; the message of the error, if there is one."""
    try:
        TokenModel.load(folder).predict(SENTENCES)
    except DriftError as error:
        return str(error)
    return ""


def test_rules_of_another_type_are_errors_of_ours(copied: Path) -> None:
    assert opened(copied) == ""
    content = json.loads((copied / RULES / SAVED).read_text())
    for changed in mutations(content, seed=0):
        (copied / RULES / SAVED).write_text(json.dumps(changed))
        opened(copied)


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../drift.json", "0.csv/../1.csv", "/dev/zero", "9.csv", "", "0.csv\n"]
)
def test_rules_cannot_name_dictionaries_outside(copied: Path, name: str) -> None:
    content = json.loads((copied / RULES / SAVED).read_text())
    content["rules"][0]["gazetteer"] = name
    (copied / RULES / SAVED).write_text(json.dumps(content))
    assert "\n" not in opened(copied).strip()
    assert opened(copied)


@pytest.mark.parametrize("file", [SAVED, "0.csv"])
@pytest.mark.parametrize(
    "content", [b"", b"\0" * 10, b"[" * 100_000, b"\xff\xfe", b"&a [*a]", b"!!python/name:os.system"]
)
def test_a_damaged_file_of_rules_is_an_error_of_ours(copied: Path, file: str, content: bytes) -> None:
    assert (copied / RULES / file).is_file()
    (copied / RULES / file).write_bytes(content)
    opened(copied)


@pytest.mark.parametrize("file", [RULES, f"{RULES}/{SAVED}", f"{RULES}/0.csv"])
def test_a_link_among_the_rules_is_refused(copied: Path, tmp_path: Path, file: str) -> None:
    shutil.move(copied / file, tmp_path / "elsewhere")
    (copied / file).symlink_to(tmp_path / "elsewhere")
    assert "is a link that leads out of" in opened(copied)


def test_rules_that_are_gone_are_named(copied: Path) -> None:
    shutil.rmtree(copied / RULES)
    assert SAVED in opened(copied)


def graph(fault: str) -> Any:
    """An ONNX model that is valid, and not ours."""
    helper, kinds = onnx.helper, onnx.TensorProto
    names = ["ids", "mask"] if fault == "other inputs" else ["input_ids", "attention_mask"]
    inputs = [helper.make_tensor_value_info(name, kinds.INT64, ["n", "m"]) for name in names]
    outputs = [helper.make_tensor_value_info("out", kinds.FLOAT, None)]
    nodes = [helper.make_node("Cast", [names[0]], ["out"], to=kinds.FLOAT)]
    if fault == "two outputs":
        outputs.append(helper.make_tensor_value_info("more", kinds.FLOAT, None))
        nodes.append(helper.make_node("Identity", ["out"], ["more"]))
    elif fault == "text out":
        outputs = [helper.make_tensor_value_info("out", kinds.STRING, None)]
        nodes = [helper.make_node("Cast", [names[0]], ["out"], to=kinds.STRING)]
    elif fault == "fails":
        shape = helper.make_tensor("shape", kinds.INT64, [1], [7919])
        nodes = [
            helper.make_node("Constant", [], ["s"], value=shape),
            helper.make_node("Cast", [names[0]], ["f"], to=kinds.FLOAT),
            helper.make_node("Reshape", ["f", "s"], ["out"]),
        ]
    made = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs), opset_imports=[helper.make_opsetid("", 17)]
    )
    made.ir_version = 8
    return made


@pytest.mark.parametrize("fault", GRAPHS)
def test_an_onnx_file_of_another_model_is_refused(tmp_path: Path, fault: str) -> None:
    import torch

    file = tmp_path / "model_int8.onnx"
    onnx.save(graph(fault), file)
    tokens = torch.ones(3, 4, dtype=torch.int64)
    with pytest.raises(FileError, match="is not the ONNX file of this model"):
        OnnxModule(file, 2)(tokens, tokens)


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"\xff" * 1000, b"ONNX"])
def test_a_damaged_onnx_file_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(FileError) as error:
        OnnxModule(tmp_path / "model.onnx", 2)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd"])
def test_an_onnx_file_reads_no_weights_from_outside_its_folder(tmp_path: Path, location: str) -> None:
    (tmp_path / "secret").write_bytes(np.ones(4, dtype=np.float32).tobytes())
    folder = tmp_path / "model"
    folder.mkdir()
    made, kinds = graph("other classes"), onnx.TensorProto
    outside = kinds(name="w", data_type=kinds.FLOAT, dims=[4], data_location=kinds.EXTERNAL)
    for key, value in (("location", location), ("offset", "0"), ("length", "16")):
        entry = outside.external_data.add()
        entry.key, entry.value = key, value
    made.graph.initializer.append(outside)
    made.graph.node[0].output[0] = "f"
    made.graph.node.append(onnx.helper.make_node("Add", ["f", "w"], ["out"]))
    (folder / "model.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(FileError, match="cannot be opened as ONNX"):
        OnnxModule(folder / "model.onnx", 2)
