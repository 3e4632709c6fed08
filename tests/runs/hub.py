"""A small hub on this machine: what `huggingface_hub` calls when a folder is uploaded, with what it stored."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import pytest
import yaml

TOKEN = "hf_of_a_test"  # any word; this hub knows no other


class Hub(BaseHTTPRequestHandler):
    """Creates repositories, takes small files inside a commit and large ones as LFS objects; checks token and sums."""

    private: ClassVar[dict[str, bool]] = {}
    files: ClassVar[dict[str, dict[str, bytes]]] = {}
    objects: ClassVar[dict[str, bytes]] = {}

    def log_message(self, *_: Any) -> None:
        pass

    @property
    def body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        return b"".join(parts)

    def answer(self, content: Any, status: int = 200, **headers: str) -> None:
        sent = json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(sent)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(sent)

    def do_PUT(self) -> None:
        """An LFS object, at the address that the batch gave."""
        content, name = self.body, self.path.removeprefix("/objects/")
        if hashlib.sha256(content).hexdigest() != name:
            self.answer({"error": "wrong sum"}, 400)
            return
        self.objects[name] = content
        self.answer({}, ETag=name)

    def do_POST(self) -> None:
        body = self.body
        if self.headers.get("authorization") != f"Bearer {TOKEN}":
            self.answer({"error": "Invalid username or password."}, 401)
        elif self.path == "/api/repos/create":
            self.create(json.loads(body))
        elif self.path == "/api/validate-yaml":
            self.validate(json.loads(body))
        elif found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/preupload/main", self.path):
            self.upload_modes(found[1], json.loads(body))
        elif re.fullmatch(r"/[^/]+/[^/]+\.git/info/lfs/objects/batch", self.path):
            self.batch(json.loads(body))
        elif found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/commit/main", self.path):
            self.commit(found[1], [json.loads(line) for line in body.splitlines()])
        else:
            self.answer({"error": f"nothing at {self.path}"}, 404)

    def create(self, asked: dict[str, Any]) -> None:
        name = f"{asked['organization']}/{asked['name']}"
        if name in self.private:
            self.answer({"error": "You already created this model repo", "url": f"{self.server.url}/{name}"}, 409)  # type: ignore[attr-defined]
            return
        self.private[name] = asked.get("visibility") == "private" or asked.get("private") is True
        self.files[name] = {}
        self.answer({"url": f"{self.server.url}/{name}", "name": name, "id": "1"})  # type: ignore[attr-defined]

    def validate(self, asked: dict[str, Any]) -> None:
        """The metadata of a card: the types of the fields that the hub documents."""
        about = yaml.safe_load(asked["content"].split("---")[1])
        lists = [name for name in ("tags", "model-index") if not isinstance(about.get(name, []), list)]
        errors = [{"message": f'"{name}" must be an array'} for name in lists]
        self.answer({"errors": errors, "warnings": []}, 400 if errors else 200)

    def upload_modes(self, name: str, asked: dict[str, Any]) -> None:
        def mode(path: str) -> str:
            return "lfs" if path.endswith((".safetensors", ".onnx")) else "regular"

        files = [{"path": e["path"], "uploadMode": mode(e["path"]), "shouldIgnore": False} for e in asked["files"]]
        self.answer({"files": files}, 200 if name in self.private else 404)

    def batch(self, asked: dict[str, Any]) -> None:
        def place(oid: str) -> dict[str, Any]:
            return {"upload": {"href": f"{self.server.url}/objects/{oid}"}}  # type: ignore[attr-defined]

        objects = [{**each, "actions": place(each["oid"])} for each in asked["objects"]]
        self.answer({"transfer": "basic", "objects": objects})

    def commit(self, name: str, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                self.files[name][value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                self.files[name][value["path"]] = self.objects[value["oid"]]
        self.answer({"commitUrl": f"{self.server.url}/{name}/commit/1", "commitOid": "1" * 40})  # type: ignore[attr-defined]


@contextmanager
def hub(token: str = TOKEN) -> Iterator[type[Hub]]:
    """In the block, `huggingface_hub` calls this hub with a token; yields what it stored."""
    from huggingface_hub import constants

    class Own(Hub):
        private: ClassVar[dict[str, bool]] = {}
        files: ClassVar[dict[str, dict[str, bytes]]] = {}
        objects: ClassVar[dict[str, bytes]] = {}

    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    server.url = f"http://127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        with pytest.MonkeyPatch.context() as patch:  # what HF_ENDPOINT and HF_HUB_DISABLE_XET set before an import
            patch.setattr(constants, "ENDPOINT", server.url)  # type: ignore[attr-defined]
            patch.setattr(constants, "HF_HUB_DISABLE_XET", True)
            patch.setattr(constants, "HF_HUB_OFFLINE", False)
            patch.setenv("HF_TOKEN", token)
            patch.setenv("NO_PROXY", "127.0.0.1")
            yield Own
    finally:
        server.shutdown()
        server.server_close()
