"""The page of a session, on this machine only.

Nothing but the person's own browser may talk to it: it listens on 127.0.0.1, the address has a random token, a request
whose Host is another name is refused (DNS rebinding), and a change is accepted only from the page itself (Origin). The
page may load nothing from elsewhere and run no inline script, and sets texts only as text.
"""

import hmac
import json
import secrets
import socket
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

from drift.annotate.finish import Finish
from drift.annotate.session import Annotation
from drift.annotate.views import errors_view, list_view, progress_view, question_view, text_view
from drift.errors import DriftError, FileError, needed_for

with needed_for("drift annotate", "pip install 'drift-ssl[annotate]'"):
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"
MOST_BYTES = 1_000_000  # of a request
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)
REPORT_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class Guard:
    """Refuses requests that do not come from the page of this process. Plain ASGI, so that it sees the raw body.

    hosts: values of the Host header that are accepted. token: the first part of every path.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str], token: str) -> None:
        self.app, self.hosts, self.token = app, hosts, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            status, text = refusal
            response = Response(text + "\n", status, {**HEADERS, "content-security-policy": POLICY}, "text/plain")
            await response(scope, receive, send)
            return
        await self.app(scope, _limited(receive), _with_headers(send))

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if host not in self.hosts:
            return 421, "This server answers only to its own address."
        given = scope["path"].split("/")[1] if scope["path"].count("/") else ""
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return 403, "The address lacks the token that drift annotate printed."
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return 403, "Requests from other sites are refused."
        if scope["method"] not in ("GET", "HEAD"):
            if headers.get("origin") != f"http://{host}":
                return 403, "Changes are accepted only from the page itself."
            if headers.get("content-type", "").split(";")[0].strip() != "application/json":
                return 415, "Send JSON."
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > MOST_BYTES:
            return 413, f"A request has at most {MOST_BYTES:,} bytes."
        return None


def _limited(receive: Receive) -> Receive:
    """The body of a request, which may be longer than it says."""
    total = 0

    async def limited() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        return {"type": "http.disconnect"} if total > MOST_BYTES else message

    return limited


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {name.lower() for name, _ in message["headers"]}
            policy = [] if b"content-security-policy" in given else [(b"content-security-policy", POLICY.encode())]
            extra = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message["headers"], *extra, *policy]}
        await send(message)

    return sent


class Server:
    """The page of a session, with an address of its own.

    session: what is labelled. finish: writes the labels and trains the final run. port: 0 takes a free one.
    """

    def __init__(self, session: Annotation, finish: Finish, *, port: int = 0, token: str | None = None) -> None:
        self.session, self.finish = session, finish
        self.token = token or secrets.token_urlsafe(24)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.socket.bind((HOST, port))
            self.socket.listen(64)  # now: the address is printed, and may be opened, before `run`
        except OSError as error:
            self.socket.close()
            raise FileError(f"port {port} cannot be used ({error.strerror}); give another one with --port") from error
        self.port: int = self.socket.getsockname()[1]
        hosts = frozenset({f"{HOST}:{self.port}", f"localhost:{self.port}"})
        self.app = Guard(self._routes(), hosts, self.token)

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    def run(self) -> None:
        """Serve until Ctrl-C, or until `stop` is called."""
        with needed_for("drift annotate", "pip install 'drift-ssl[annotate]'"):
            import uvicorn

        quiet: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
        config = uvicorn.Config(
            self.app, lifespan="off", ws="none", loop="asyncio", timeout_graceful_shutdown=2, **quiet
        )
        self._uvicorn = uvicorn.Server(config)
        try:
            self._uvicorn.run(sockets=[self.socket])
        except KeyboardInterrupt:  # uvicorn passes it on when it has stopped
            pass
        finally:
            self.socket.close()

    def stop(self) -> None:
        """End `run`."""
        if getattr(self, "_uvicorn", None) is not None:
            self._uvicorn.should_exit = True

    def _routes(self) -> Starlette:
        session, finish, base = self.session, self.finish, f"/{self.token}"

        def get(path: str, read: Callable[[Any], Any]) -> Route:
            async def endpoint(request: Request) -> Response:
                return await _answer(lambda: read(dict(request.query_params)))

            return Route(base + path, endpoint, methods=["GET"])

        def post(path: str, change: Callable[[dict[str, Any]], Any]) -> Route:
            async def endpoint(request: Request) -> Response:
                try:
                    sent = json.loads(await request.body())
                except (ValueError, RecursionError):
                    return JSONResponse({"error": "the request is not JSON"}, 400)
                if not isinstance(sent, dict):
                    return JSONResponse({"error": "the request is not an object"}, 400)
                return await _answer(lambda: change(sent))

            return Route(base + path, endpoint, methods=["POST"])

        def act(sent: dict[str, Any]) -> dict[str, Any]:
            perform(session, sent)
            progress = progress_view(session)
            if not sent.get("ask"):
                return {"progress": progress}
            return {"progress": progress, "question": question_view(session, session.next(str(sent.get("client", ""))))}

        return Starlette(
            routes=[
                Route(base + "/", _file("index.html"), methods=["GET"]),
                Route(base + "/static/{name}", _static, methods=["GET"]),
                get("/api/next", lambda q: question_view(session, session.next(q.get("client", "")))),
                get("/api/text", lambda q: text_view(session, int(q["row"]))),
                get("/api/progress", lambda q: progress_view(session)),
                get("/api/list", lambda q: list_view(session, q)),
                get("/api/errors", lambda q: errors_view(session)),
                get("/api/finish", lambda q: finish.status()),
                post("/api/act", act),
                post("/api/finish", lambda sent: finish.start(train=bool(sent.get("train", True)))),
                Route(base + "/report", self._report, methods=["GET"]),
            ]
        )

    async def _report(self, request: Request) -> Response:
        report = self.finish.report()
        if report is None:
            return Response("There is no report yet.\n", 404, media_type="text/plain")
        return Response(report, 200, {"content-security-policy": REPORT_POLICY}, "text/html")


def perform(session: Annotation, sent: dict[str, Any]) -> None:
    """Do what the page asks for: one of the methods of the session."""
    do = sent.get("do")
    match do:
        case "label":
            name = sent.get("class")
            session.label_many(_rows(sent), sent["spans"] if "spans" in sent else name if name is None else str(name))
        case "accept":
            session.accept(_rows(sent))
        case "skip":
            session.skip(int(sent["row"]))
        case "undo":
            session.undo(str(sent.get("client", "")))
        case "flag":
            session.flag(_rows(sent), bool(sent.get("on", True)))
        case "note":
            session.note(int(sent["row"]), str(sent.get("text", "")))
        case "add":
            session.add_class(str(sent["name"]), str(sent.get("guideline", "")))
        case "rename":
            session.rename_class(str(sent["class"]), str(sent["name"]))
        case "merge":
            session.merge_class(str(sent["class"]), str(sent["into"]))
        case "guideline":
            session.set_guideline(str(sent["class"]), str(sent["text"]))
        case _:
            raise ValueError(f"there is no action {do!r}")


def _rows(sent: dict[str, Any]) -> list[int]:
    return [int(row) for row in (sent["rows"] if "rows" in sent else [sent["row"]])]


async def _answer(call: Callable[[], Any]) -> Response:
    """The result of a call, in a thread, so that one request never holds up another; a user's mistake is status 400."""
    try:
        return JSONResponse(await run_in_threadpool(call))
    except FileError as error:  # not saved
        return JSONResponse({"error": str(error)}, 507)
    except DriftError as error:
        return JSONResponse({"error": str(error)}, 400)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        return JSONResponse({"error": f"the request is wrong: {error}"}, 400)


def _file(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(_: Request) -> Response:
        return _content(name)

    return endpoint


async def _static(request: Request) -> Response:
    return _content(str(request.path_params["name"]))


def _content(name: str) -> Response:
    folder = files("drift.annotate") / "static"
    known = {each.name for each in folder.iterdir()}
    kind = TYPES.get(name[name.rfind(".") :])
    if name not in known or kind is None:  # looked up among the names, so that no path leads out of the folder
        return Response("There is no such file.\n", 404, media_type="text/plain")
    return Response((folder / name).read_bytes(), media_type=kind)
