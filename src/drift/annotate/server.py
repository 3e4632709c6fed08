"""The page of a session, on this machine only.

Nothing but the person's own browser may talk to it: it listens on 127.0.0.1, the address has a random token, a request
whose Host is another name is refused (DNS rebinding), and a change is accepted only from the page itself (Origin). The
page may load nothing from elsewhere and run no inline script, and sets texts only as text.
"""

import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from drift.annotate.finish import Finish
from drift.annotate.session import Annotation
from drift.annotate.views import errors_view, list_view, progress_view, question_view, text_view
from drift.errors import DriftError, FileError, needed_for
from drift.web.guard import WEB, Check, Guard, Refusal, changes, json_only, not_cross_site, only_hosts
from drift.web.listening import HOST, Listener
from drift.web.static import static_file

with needed_for("drift annotate", WEB):
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route
    from starlette.types import Scope

REPORT_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"


def only_token(token: str) -> Check:
    """Refuse addresses that do not begin with the token."""

    def check(scope: Scope, headers: Mapping[str, str]) -> Refusal | None:
        given = scope["path"].split("/")[1] if scope["path"].count("/") else ""
        if not hmac.compare_digest(given.encode(), token.encode()):
            return 403, "The address lacks the token that drift annotate printed."
        return None

    return check


def from_page(scope: Scope, headers: Mapping[str, str]) -> Refusal | None:
    """Refuse changes that the page itself does not make."""
    if changes(scope) and headers.get("origin") != f"http://{headers.get('host', '')}":
        return 403, "Changes are accepted only from the page itself."
    return None


class Server:
    """The page of a session, with an address of its own.

    session: what is labelled. finish: writes the labels and trains the final run. port: 0 takes a free one.
    """

    def __init__(self, session: Annotation, finish: Finish, *, port: int = 0, token: str | None = None) -> None:
        self.session, self.finish = session, finish
        self.token = token or secrets.token_urlsafe(24)
        self.listener = Listener(HOST, port)
        self.port = self.listener.port
        hosts = frozenset({f"{HOST}:{self.port}", f"localhost:{self.port}"})
        checks = [only_hosts(hosts), only_token(self.token), not_cross_site, from_page, json_only]
        self.app = Guard(self._routes(), checks)

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    def run(self) -> None:
        """Serve until Ctrl-C, or until `stop` is called."""
        self.listener.run(self.app)

    def stop(self) -> None:
        """End `run`."""
        self.listener.stop()

    def _routes(self) -> Starlette:
        session, finish, base = self.session, self.finish, f"/{self.token}"
        pages = partial(static_file, "drift.annotate")

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
                Route(base + "/", pages("index.html"), methods=["GET"]),
                Route(base + "/static/{name}", pages(), methods=["GET"]),
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
