"""`drift serve` as people run it."""

from pathlib import Path

import numpy as np
import pytest

import drift
from tests.cli.conftest import Call

pytest.importorskip("starlette", reason="needs starlette: pip install 'drift-ssl[serve]'")

from drift.web.listening import Listener


def test_it_says_where_it_serves(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=(20, 2))
    classifier = drift.DriftClassifier(steps=2, initial_steps=2, random_state=0)
    classifier.fit(x, np.arange(20) % 2).save(tmp_path / "model")
    monkeypatch.setattr(Listener, "run", lambda *_, **__: None)
    code, out, err = call("serve", str(tmp_path / "model"), "--port", "0")
    assert (code, err) == (0, "")
    assert out.startswith(f"Serving {tmp_path / 'model'} at http://127.0.0.1:")


def test_a_folder_without_a_model_is_one_line(tmp_path: Path, call: Call) -> None:
    code, out, err = call("serve", str(tmp_path), "--port", "0")
    assert code != 0
    assert out == ""
    assert len(err.splitlines()) == 1
