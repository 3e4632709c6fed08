"""The server answers only its own page: Host, Origin, token, sizes; and what the page may do is in its headers."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import drift
from tests.annotate.small import CLASSES, answer, session

pytest.importorskip("starlette", reason="needs starlette: pip install 'drift-ssl[annotate]'")

from starlette.requests import ClientDisconnect

from drift.annotate.finish import Finish
from drift.annotate.server import Server
from drift.web.guard import MOST_BYTES

STATIC = Path(drift.__file__).parent / "annotate" / "static"


class Answer:
    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @property
    def content(self) -> Any:
        return json.loads(self.body)


class Client:
    """Calls the server's application as uvicorn does, with any headers."""

    def __init__(self, server: Server) -> None:
        self.server, self.host = server, f"127.0.0.1:{server.port}"

    def __call__(self, path: str, content: Any = None, *, token: str | None = None, **changed: str | None) -> Answer:
        """GET, or POST with content. changed: headers that differ from those of the page; None leaves one out."""
        headers: dict[str, str | None] = {"host": self.host, "sec-fetch-site": "same-origin"}
        body = b"" if content is None else content if isinstance(content, bytes) else json.dumps(content).encode()
        if content is not None:
            headers |= {"origin": f"http://{self.host}", "content-type": "application/json"}
            headers["content-length"] = str(len(body))
        headers |= {name.replace("_", "-"): value for name, value in changed.items()}
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": "GET" if content is None else "POST",
            "path": f"/{self.server.token if token is None else token}{path}",
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items() if value is not None],
        }
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(self.server.app(scope, receive, send))
        given = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], given, b"".join(each.get("body", b"") for each in sent[1:]))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Any:
    tmp_path = tmp_path_factory.mktemp("server")
    opened, codes = session()
    answer(opened, codes, 12)
    server = Server(opened, Finish(opened, tmp_path / "labels.csv", tmp_path / "run"))
    yield Client(server)
    server.listener.socket.close()


def test_it_listens_on_this_machine_only(client: Client) -> None:
    assert client.server.listener.socket.getsockname()[0] == "127.0.0.1"
    assert len(client.server.token) >= 32
    assert client.server.url == f"http://127.0.0.1:{client.server.port}/{client.server.token}/"
    assert client("/").status == 200
    assert client("/api/progress").content["labels"] == 12


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1.evil.example", "", None])
def test_another_host_is_refused(client: Client, host: str | None) -> None:
    """DNS rebinding: a name of the attacker that leads to 127.0.0.1 has that name in the Host header."""
    for path in ("/", "/api/progress", "/static/app.js"):
        assert client(path, host=host).status == 421
    assert client("/api/act", {"do": "undo"}, host=host).status == 421
    assert client("/", host=f"localhost:{client.server.port}").status == 200


@pytest.mark.parametrize("token", ["", "x", "../", "%2e%2e", "api"])
def test_a_wrong_token_is_refused(client: Client, token: str) -> None:
    for path in ("/", "/api/progress", "/static/app.js"):
        assert client(path, token=token).status == 403


ORIGINS = [
    "http://evil.example",
    "null",
    "http://127.0.0.1",
    "https://127.0.0.1:{port}",
    "http://localhost:{port}",
    None,
]


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_change_from_another_origin_is_refused(client: Client, origin: str | None) -> None:
    origin = origin and origin.format(port=client.server.port)
    before = client("/api/progress").content["version"]
    assert client("/api/act", {"do": "undo"}, origin=origin).status == 403
    assert client("/api/finish", {"train": False}, origin=origin).status == 403
    assert client("/api/progress").content["version"] == before


def test_requests_of_other_sites_and_forms_are_refused(client: Client) -> None:
    assert client("/api/progress", sec_fetch_site="cross-site").status == 403
    assert client("/api/progress", sec_fetch_site="same-site").status == 403
    assert client("/", sec_fetch_site="none").status == 200  # typed into the address bar
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None):
        assert client("/api/act", {"do": "undo"}, content_type=kind).status == 415


def test_every_answer_has_the_policy(client: Client) -> None:
    answers = [client(path) for path in ("/", "/static/app.js", "/api/progress", "/report", "/nothing")]
    answers += [client("/", token="x"), client("/", host="evil.example"), client("/api/act", {"do": "x"})]
    for each in answers:
        policy = each.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe-eval" not in policy
        assert "http" not in policy
        assert each.headers["x-content-type-options"] == "nosniff"
        assert each.headers["cache-control"] == "no-store"
        assert each.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in each.headers
    assert "script-src 'self';" in answers[0].headers["content-security-policy"]
    assert "'unsafe-inline'" not in answers[0].headers["content-security-policy"]
    assert "require-trusted-types-for 'script'" in answers[0].headers["content-security-policy"]


def test_sizes_are_limited(client: Client) -> None:
    assert client("/api/act", b" " * (MOST_BYTES + 1)).status == 413
    assert client("/api/act", b"{}", content_length="many").status == 413
    with pytest.raises(ClientDisconnect):  # more than it says: the connection ends
        client("/api/act", b" " * (MOST_BYTES + 1), content_length="2")


WRONG = [
    b"",
    b"[]",
    b"nonsense",
    b"[" * 100_000,
    {"do": "x"},
    {},
    {"do": "label"},
    {"do": "label", "rows": [10**30], "class": "bug"},
]
WRONG += [{"do": "label", "rows": "all", "class": "bug"}, {"do": "label", "row": 0, "class": "none of them"}]
WRONG += [{"do": "add", "name": "  "}, {"do": "add", "name": "x" * 61}, {"do": "note", "row": 0, "text": "x" * 5000}]


@pytest.mark.parametrize("content", WRONG, ids=lambda content: str(content)[:40])
def test_a_wrong_request_is_answered_in_one_line(client: Client, content: Any) -> None:
    before = client("/api/progress").content["version"]
    found = client("/api/act", content)
    assert found.status == 400
    assert "\n" not in found.content["error"]
    assert client("/api/progress").content["version"] == before


def test_only_files_of_the_page_are_served(client: Client) -> None:
    for name in ("app.js", "style.css", "icon.svg", "dom.js"):
        assert client(f"/static/{name}").status == 200
    for name in ("../server.py", "..%2fserver.py", "server.py", "", "types.ts", "....//session.py"):
        assert client(f"/static/{name}").status == 404


def test_the_page_never_makes_html_of_texts() -> None:
    """Beside the policy, which would stop it: no module uses what parses a string as HTML or runs it."""
    for file in STATIC.glob("*.js"):
        code = file.read_text(encoding="utf-8")
        for forbidden in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "srcdoc",
        ):
            assert forbidden not in code, f"{file.name} uses {forbidden}"
        assert "//" not in code.replace("// ", "").replace('"http://www.w3.org/2000/svg"', ""), (
            f"{file.name}: an address?"
        )
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert "style=" not in page
    assert "onclick" not in page
    assert "http" not in page


def test_the_page_works_through_the_same_session(client: Client) -> None:
    question = client("/api/next?client=a").content
    assert question["text"] == client.server.session.texts[question["row"]]
    done = client(
        "/api/act", {"do": "label", "row": question["row"], "class": "bug", "ask": True, "client": "a"}
    ).content
    assert done["progress"]["labels"] == 13
    assert done["question"]["row"] != question["row"]
    assert client.server.session.labels()[question["row"]] == "bug"
    listed = client("/api/list?show=labelled&class=bug&sort=least sure").content
    assert question["row"] in [row["row"] for row in listed["rows"]]
    found = client("/api/list?search=NUMBER 4").content
    assert {row["text"].split()[-1][0] for row in found["rows"]} == {"4"}
    assert client("/api/list?show=everything").status == 400
    assert client("/api/errors").content["judged"] > 0
    written = client("/api/finish", {"train": False}).content
    assert written["state"] == "written"
    lines = Path(written["out"]).read_text(encoding="utf-8").splitlines()
    assert lines[0] == "text,label,row,flag,note"
    assert sum("," + name + "," in line for line in lines for name in CLASSES) == 13
