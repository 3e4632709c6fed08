"""Other systems and devices: modules import without POSIX-only ones, and models are moved to the accelerator."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import drift
from drift.models import devices
from drift.tasks.text import model as text_model
from drift.tasks.tokens import model as token_model

SOURCE = Path(drift.__file__).parent
HIDDEN = """
import importlib, json, sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name in ("resource", "fcntl"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
for name in ("resource", "fcntl"):
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Hide())
failed = {}
for name in json.loads(sys.argv[1]):
    try:
        importlib.import_module(name)
    except ImportError as error:
        failed[name] = str(error)
print(json.dumps(failed))
"""


def test_every_module_imports_without_resource_and_fcntl() -> None:
    """As on Windows, which has neither."""
    modules = [
        ".".join(("drift", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "__main__.py"
    ]
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN, json.dumps(modules)], capture_output=True, text=True, check=True
    )
    assert len(modules) > 150
    assert json.loads(done.stdout.splitlines()[-1]) == {}


def test_the_device_is_the_accelerator_if_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda *_: torch.device("meta"))
    assert devices.best_device() == torch.device("meta")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert devices.best_device() == torch.device("cpu")


class Records(torch.nn.Module):
    """Keeps the device of its inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 2)
        self.seen: list[torch.device] = []

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        self.seen += [input_ids.device, attention_mask.device]
        return torch.zeros(len(input_ids), 2)  # on the CPU: "meta" has no values


class Tokenizer:
    pad_token_id = 0

    def __call__(self, texts: list[str], **_: object) -> dict[str, list[list[int]]]:
        return {"input_ids": [[1] * len(text.split()) for text in texts]}


def test_a_text_model_and_its_inputs_are_on_the_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_model, "best_device", lambda: torch.device("meta"))
    module = Records()
    model = text_model.TextModel(module, Tokenizer(), ["a", "b"], "finetuned")
    assert module.layer.weight.device.type == "meta"
    assert model.predict_proba(["one text", "another"]).shape == (2, 2)
    assert {device.type for device in module.seen} == {"meta"}


def test_a_tagger_is_on_the_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_model, "best_device", lambda: torch.device("meta"))
    module = Records()
    token_model.TokenModel(module, Tokenizer(), ["O"], "finetuned", entities=False)
    assert module.layer.weight.device.type == "meta"
