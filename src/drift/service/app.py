"""`drift.app` and `drift.serve`: a trained model as an ASGI application, and on a port of this machine."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drift import __version__
from drift.errors import ConfigError, DataError, needed_for
from drift.runs.result import Run
from drift.service.batching import Batcher, FullError
from drift.service.models import opened
from drift.service.openapi import description
from drift.service.requests import Asked, asked
from drift.tasks.service import Rows, Service
from drift.web.guard import MOST_BYTES, WEB, Check, Guard, json_only, not_cross_site, only_hosts
from drift.web.listening import HOST, Listener
from drift.web.static import static_file

with needed_for("drift serve", WEB):
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

SMALL = 20_000  # bytes and numbers that are read or written without leaving the event loop
MOST_ROWS, SECONDS = 1_000, 30.0
ANY = "*"


@dataclass(frozen=True)
class Limits:
    """rows, bytes: of a request. seconds: until it is given up."""

    rows: int = MOST_ROWS
    bytes: int = MOST_BYTES
    seconds: float = SECONDS


class Endpoints:
    """The answers of a service. title: of the model, for readers."""

    def __init__(self, service: Service, title: str, limits: Limits) -> None:
        self.service, self.title, self.limits = service, title, limits
        self.batcher = Batcher(service.probabilities)

    def routes(self) -> list[Route]:
        return [
            Route("/", static_file("drift.service", "index.html"), methods=["GET"]),
            Route("/static/{name}", static_file("drift.service"), methods=["GET"]),
            Route("/openapi.json", self.openapi, methods=["GET"]),
            Route("/health", self.health, methods=["GET"]),
            Route("/predict", self.predict, methods=["POST"]),
        ]

    async def openapi(self, _: Request) -> Response:
        return JSONResponse(description(self.service, self.title, __version__, self.limits.rows))

    async def health(self, _: Request) -> Response:
        return JSONResponse(
            {"status": "ok", "model": self.title, "engine": self.service.engine, "waiting": self.batcher.waiting}
        )

    async def predict(self, request: Request) -> Response:
        try:
            body = await request.body()
            wanted = await _away(len(body), lambda: asked(body, self.service, self.limits.rows))
            if not wanted.rows:
                return JSONResponse({"predictions": []})
            found = await asyncio.wait_for(
                asyncio.wrap_future(self.batcher.submit(wanted.name, wanted.rows)), self.limits.seconds
            )
            reply: Response = await _away(sum(each.size for each in found), lambda: self._answer(wanted, found))
            return reply
        except DataError as error:
            return JSONResponse({"error": str(error)}, 400)
        except ClientDisconnect:  # also: the body is longer than the length that was announced
            return JSONResponse({"error": "the request ended early, or is too long"}, 413)
        except FullError as error:
            return JSONResponse({"error": f"{error}; try again later"}, 503, {"retry-after": "1"})
        except TimeoutError:
            return JSONResponse({"error": f"it took longer than {self.limits.seconds:g} seconds"}, 503)

    def _answer(self, wanted: Asked, found: Rows) -> Response:
        predictions = [
            self.service.answer(row, probabilities, wanted.abstain_below)
            for row, probabilities in zip(wanted.rows, found, strict=True)
        ]
        if not wanted.probabilities:
            for each in predictions:
                each.pop("probabilities", None)
        return JSONResponse({"predictions": predictions})


async def _away(size: int, call: Callable[[], Any]) -> Any:
    """The result of a call, in a thread if there is much to do: the event loop answers other requests meanwhile."""
    return call() if size <= SMALL else await run_in_threadpool(call)


def app(
    run: Any,
    *,
    int8: bool = False,
    hosts: Sequence[str] = (ANY,),
    max_rows: int = MOST_ROWS,
    max_bytes: int = MOST_BYTES,
    timeout: float = SECONDS,
) -> Guard:
    """A trained model as an ASGI application, for any server: `uvicorn module:application`.

    `POST /predict` takes `{"texts": [...]}`; `GET /health` and `GET /openapi.json` describe the service. Requests that
    wait while others are computed are computed together. A run's ONNX file is used if there is one.

    Parameters
    ----------
    run : Run, DriftClassifier or path
        A trained run or classifier, or the folder of one.
    int8 : bool, default=False
        Use the ONNX file in int8.
    hosts : sequence of str, default=("*",)
        Accepted values of the Host header; "*" accepts every one.
    max_rows, max_bytes : int, default=1000, 1000000
        Limits of a request.
    timeout : float, default=30.0
        Seconds after which a request is given up.

    Returns
    -------
    ASGI application
    """
    if max_rows < 1 or max_bytes < 1 or not timeout > 0:
        raise ConfigError("max_rows, max_bytes and timeout are limits; give numbers above 0")
    service, title = opened(run, int8=int8)
    endpoints = Endpoints(service, title, Limits(max_rows, max_bytes, timeout))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(endpoints.batcher.close)

    checks: list[Check] = [not_cross_site, json_only]
    if ANY not in hosts:
        checks.insert(0, only_hosts(frozenset(hosts)))
    return Guard(Starlette(routes=endpoints.routes(), lifespan=lifespan), checks, max_bytes)


def serve(
    run: Run | str | Path,
    *,
    host: str = HOST,
    port: int = 8000,
    allow_hosts: Sequence[str] = (),
    int8: bool = False,
    max_rows: int = MOST_ROWS,
    max_bytes: int = MOST_BYTES,
    timeout: float = SECONDS,
    ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve a trained model over HTTP until Ctrl-C.

    Only this machine can reach it, unless `host` is another address. There are no users and no encryption: beyond this
    machine, put a server in front of it that has them.

    Parameters
    ----------
    run : Run, DriftClassifier or path
        A trained run or classifier, or the folder of one.
    host : str, default="127.0.0.1"
        Address of this machine to listen on.
    port : int, default=8000
        Port; 0 takes a free one.
    allow_hosts : sequence of str, default=()
        Further accepted values of the Host header, such as "model.example:443"; "*" accepts every one.
    int8, max_rows, max_bytes, timeout
        As for `drift.app`.
    ready : callable, default=None
        Called with the address when the service listens.
    """
    listener = Listener(host, port)
    shown = f"[{host}]" if ":" in host else host
    own = {f"{name}:{listener.port}" for name in (shown, "localhost", HOST)}
    try:
        application = app(
            run, int8=int8, hosts=(*own, *allow_hosts), max_rows=max_rows, max_bytes=max_bytes, timeout=timeout
        )
        ready(f"http://{shown}:{listener.port}/")
        listener.run(application, lifespan=True)
    finally:
        listener.socket.close()
