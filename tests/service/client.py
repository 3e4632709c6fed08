"""Calls an ASGI application as a server does."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any, NamedTuple


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def content(self) -> Any:
        return json.loads(self.body)


async def call(app: Any, path: str, content: Any = None, **changed: str | None) -> Answer:
    """GET, or POST with content. changed: headers that differ from those of a usual program; None leaves one out."""
    body = b"" if content is None else content if isinstance(content, bytes) else json.dumps(content).encode()
    headers: dict[str, str | None] = {"host": "127.0.0.1:8000"}
    if content is not None:
        headers |= {"content-type": "application/json", "content-length": str(len(body))}
    headers |= {name.replace("_", "-"): value for name, value in changed.items()}
    scope = {
        "type": "http",
        "method": "GET" if content is None else "POST",
        "path": path,
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items() if value is not None],
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    given = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], given, b"".join(each.get("body", b"") for each in sent[1:]))


def ask(app: Any, path: str, content: Any = None, **changed: str | None) -> Answer:
    """One request."""
    return asyncio.run(call(app, path, content, **changed))


def ask_at_once(app: Any, path: str, contents: Sequence[Any]) -> list[Answer]:
    """Many requests that do not wait for each other."""

    async def together() -> list[Answer]:
        return list(await asyncio.gather(*(call(app, path, each) for each in contents)))

    return asyncio.run(together())
