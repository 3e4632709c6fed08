"""Files of a page, from the folder `static` of a package."""

from collections.abc import Awaitable, Callable
from importlib.resources import files

from drift.errors import needed_for
from drift.web.guard import WEB

with needed_for("drift annotate and drift serve", WEB):
    from starlette.requests import Request
    from starlette.responses import Response

TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def static_file(package: str, name: str | None = None) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that answers with one file of a package, or with the one that `{name}` in the path asks for."""

    async def endpoint(request: Request) -> Response:
        return _content(package, name or str(request.path_params["name"]))

    return endpoint


def _content(package: str, name: str) -> Response:
    folder = files(package) / "static"
    known = {each.name for each in folder.iterdir()}
    kind = TYPES.get(name[name.rfind(".") :])
    if name not in known or kind is None:  # looked up among the names, so that no path leads out of the folder
        return Response("There is no such file.\n", 404, media_type="text/plain")
    return Response((folder / name).read_bytes(), media_type=kind)
