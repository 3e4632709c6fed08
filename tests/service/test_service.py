"""A served model answers as `predict` does, one line says what is wrong with a request, and limits hold."""

import asyncio
import json
import shutil
import socket
import threading
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drift
from drift.errors import ConfigError, FileError
from tests.runs.small import small_encoder, small_fit, small_table, write_csv
from tests.runs.small_tokens import small_sentences, small_word_encoder, write_jsonl
from tests.service.client import ask, ask_at_once, call

pytest.importorskip("starlette", reason="needs starlette: pip install 'drift-ssl[serve]'")
pytest.importorskip("transformers", reason="needs transformers: pip install 'drift-ssl[text]'")
pytest.importorskip("onnxscript", reason="needs onnxscript: pip install 'drift-ssl[text]'")

from drift.runs.result import INT8, ONNX

TEXTS = ["stock market profit", "", "team goal goal unknown", "bank " * 60]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    base, stored = tmp_path_factory.mktemp("served"), {"onnx": True, "self_contained": True}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRIFT_CACHE", str(base / "cache"))
        encoder, table = small_encoder(base / "encoder"), write_csv(base / "t.csv", small_table(24, labeled=8))
        yield small_fit(table, encoder, out=base / "run", precision="float32", **stored)


@pytest.fixture(scope="module")
def app(run: Any) -> Any:
    return drift.app(run)


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Any:
    base = tmp_path_factory.mktemp("tagger")
    encoder = small_word_encoder(base / "encoder")
    options = {"task": "tokens", "out": base / "run", "finetune": True, "seeds": 1, "onnx": True}
    return small_fit(write_jsonl(base / "t.jsonl", small_sentences(12, labeled=8)), encoder, **options)


def test_a_run_with_onnx_is_served_by_it_and_answers_as_predict_does(run: Any, app: Any) -> None:
    assert ask(app, "/health").content["engine"] == f"onnxruntime ({ONNX})"
    found = ask(app, "/predict", {"texts": TEXTS}).content["predictions"]
    assert [each["label"] for each in found] == run.predict(TEXTS)
    shares = np.array([[each["probabilities"][name] for name in run.classes] for each in found])
    np.testing.assert_allclose(shares, run.predict_proba(TEXTS), atol=1e-4)
    assert [each["confidence"] for each in found] == shares.max(-1).tolist()


def test_without_onnx_torch_answers_and_leaves_no_vectors_in_the_cache(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(run.path, tmp_path / "run")
    for file in (ONNX, INT8):
        (tmp_path / "run" / "model" / file).unlink(missing_ok=True)
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "cache"))
    served = drift.app(tmp_path / "run")
    assert ask(served, "/health").content["engine"].startswith("torch")
    found = ask(served, "/predict", {"texts": TEXTS}).content["predictions"]
    assert not list(tmp_path.glob("cache/**/*.safetensors")) + list(tmp_path.glob("cache/**/*.npy"))
    assert not any(path.is_file() for path in (tmp_path / "cache").rglob("*"))
    monkeypatch.setenv("DRIFT_CACHE", str(tmp_path / "other"))
    expected = run.predict_proba(TEXTS)
    assert [each["label"] for each in found] == run.predict(TEXTS)
    np.testing.assert_allclose([each["probabilities"]["money"] for each in found], expected[:, 0], atol=1e-5)
    with pytest.raises(ConfigError, match=r"no model_int8\.onnx"):
        drift.app(tmp_path / "run", int8=True)


def test_vectors_of_the_encoder_may_be_sent(run: Any, app: Any) -> None:
    vectors = run.model.vectors(TEXTS)
    found = ask(app, "/predict", {"vectors": vectors.tolist()}).content["predictions"]
    assert [each["label"] for each in found] == run.predict(TEXTS)
    short = vectors[0].tolist()[:-1]
    for wrong in ([[1.0]], [None], [[*short, True]], [[*short, 10**400]]):
        refused = ask(app, "/predict", {"vectors": wrong})
        assert refused.status == 400
        assert refused.content["error"].startswith("vectors[0] ")


def test_options_of_a_request(app: Any) -> None:
    found = ask(app, "/predict", {"texts": TEXTS, "abstain_below": 1.0, "probabilities": False}).content
    assert [each["label"] for each in found["predictions"]] == [None] * len(TEXTS)
    assert all("probabilities" not in each for each in found["predictions"])
    for name in ("texts", "vectors"):
        assert ask(app, "/predict", {name: []}).content == {"predictions": []}


def test_requests_at_once_get_their_own_answers(run: Any, app: Any) -> None:
    asked = [[TEXTS[place % 4]] * (place % 3 + 1) for place in range(40)]
    answers = ask_at_once(app, "/predict", [{"texts": texts} for texts in asked])
    expected = dict(zip(TEXTS, run.predict(TEXTS), strict=True))
    assert [[each["label"] for each in answer.content["predictions"]] for answer in answers] == [
        [expected[text] for text in texts] for texts in asked
    ]


def test_a_tagger_is_served(tagger: Any) -> None:
    served = drift.app(tagger)
    assert ask(served, "/health").content["engine"].startswith("onnxruntime")
    sentences = [["john", "lives", "in", "new", "york"], []]
    found = ask(served, "/predict", {"sentences": [*sentences, "john lives in new york"]}).content["predictions"]
    assert [each["tags"] for each in found[:2]] == tagger.predict(sentences)
    assert found[2]["tags"] == found[0]["tags"]
    for each in found[2]["entities"]:
        assert "john lives in new york"[each["start"] : each["end"]] == each["text"]
    assert all(not each["entities"] or each["tags"] for each in found)
    for wrong in (3, [1], {"a": 1}, ["\ud800"]):
        assert ask(served, "/predict", {"sentences": [wrong]}).status == 400


def test_a_classifier_of_vectors_is_served(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(40, 3))
    y = np.where(x[:, 0] > 0, 7, 4)
    y[10:] = -1
    classifier = drift.DriftClassifier(steps=5, initial_steps=5, random_state=0).fit(x, y)
    classifier.save(tmp_path / "model")
    served = drift.app(tmp_path / "model")
    found = ask(served, "/predict", {"vectors": x[:5].tolist()}).content["predictions"]
    assert [each["label"] for each in found] == classifier.predict(x[:5]).tolist()
    with pytest.raises(ConfigError, match="no ONNX"):
        drift.app(classifier, int8=True)
    with pytest.raises(ConfigError, match="a list cannot be served"):
        drift.app([1])


WRONG: list[Any] = [b"", b"nonsense", b"[" * 100_000, b"[]", b"\xff", {}, {"text": ["a"]}, {"texts": "a"}]
WRONG += [{"texts": ["a"], "vectors": []}, {"texts": [1]}, {"texts": [None]}, {"texts": ["a", "\ud800"]}]
WRONG += [{"texts": ["a"], "abstain_below": x} for x in (2, True, "0.5", None)]
WRONG += [{"texts": ["a"], "probabilities": 1}, {"texts": ["a"] * 1001}, b'{"texts": ["a"], "abstain_below": NaN}']


@pytest.mark.parametrize("content", WRONG, ids=lambda content: str(content)[:40])
def test_a_wrong_request_is_answered_in_one_line(app: Any, content: Any) -> None:
    found = ask(app, "/predict", content)
    assert found.status == 400
    assert "\n" not in found.content["error"]


def test_sizes_and_kinds_of_requests_are_limited(run: Any, app: Any) -> None:
    assert ask(app, "/predict", b" " * 1_000_001).status == 413
    assert ask(app, "/predict", b" " * 1_000_001, content_length="2").status == 413
    for length in ("²", "9" * 5000, "-1", "many"):  # int() refuses the first two
        assert ask(app, "/predict", b"{}", content_length=length).status == 413
    assert ask(app, "/predict", {"texts": ["a"]}, content_type="text/plain").status == 415
    assert ask(app, "/predict", {"texts": ["a"]}, sec_fetch_site="cross-site").status == 403
    assert ask(app, "/predict").status == 405
    small = drift.app(run, max_rows=1, max_bytes=100)
    assert ask(small, "/predict", {"texts": ["a", "b"]}).status == 400
    assert ask(small, "/predict", {"texts": ["a" * 100]}).status == 413
    with pytest.raises(ConfigError, match="above 0"):
        drift.app(run, timeout=0)


def test_a_slow_model_neither_blocks_the_loop_nor_keeps_requests(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    model = run.model
    monkeypatch.setattr(type(model), "predict_proba", lambda self, rows: (release.wait(10), np.eye(2)[:1])[1])
    served = drift.app(run, timeout=0.05)

    async def talk() -> tuple[Any, Any]:
        asked = asyncio.ensure_future(call(served, "/predict", {"texts": ["a"]}))
        await asyncio.sleep(0.01)
        health = await call(served, "/health")  # while the model computes
        return health, await asked

    health, slow = asyncio.run(talk())
    release.set()
    assert health.status == 200
    assert slow.status == 503
    assert "0.05 seconds" in slow.content["error"]


def test_other_hosts_are_refused(run: Any) -> None:
    served = drift.app(run, hosts=["127.0.0.1:8000"])
    assert ask(served, "/health").status == 200
    for host in ("evil.example", "127.0.0.1", "", None):
        assert ask(served, "/health", host=host).status == 421


def test_the_page_and_the_description(app: Any) -> None:
    page = ask(app, "/")
    assert page.status == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for name in ("page.js", "style.css"):
        code = ask(app, f"/static/{name}").body.decode()
        assert "innerHTML" not in code
        assert "://" not in page.body.decode() + code
    about = ask(app, "/openapi.json").content
    assert about["openapi"] == "3.1.0"
    schema = about["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(schema["properties"]) == {"texts", "vectors", "abstain_below", "probabilities"}
    assert ask(app, "/predict", schema["example"]).status == 200


def test_serve_listens_on_this_machine_until_it_is_stopped(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from drift.web.listening import Listener

    listeners: list[Any] = []
    listen = Listener.run
    monkeypatch.setattr(Listener, "run", lambda self, *a, **k: (listeners.append(self), listen(self, *a, **k))[1])
    ready, addresses = threading.Event(), []

    def start() -> None:
        drift.serve(run, port=0, ready=lambda url: (addresses.append(url), ready.set()))

    thread = threading.Thread(target=start)
    thread.start()
    assert ready.wait(20)
    body, kind = json.dumps({"texts": TEXTS}).encode(), {"content-type": "application/json"}
    request = urllib.request.Request(addresses[0] + "predict", body, kind)
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert len(json.load(answer)["predictions"]) == len(TEXTS)
    assert listeners[0].socket.getsockname()[0] == "127.0.0.1"
    listeners[0].stop()
    thread.join(20)
    assert not thread.is_alive()


def test_a_port_in_use_is_one_line(run: Any) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(FileError, match="give another one with --port"):
            drift.serve(run, port=other.getsockname()[1])
