"""Refuse requests before they are read, limit their size, and put the headers of a policy on every answer."""

from collections.abc import Callable, Mapping, Sequence

from drift.errors import needed_for

WEB = "pip install 'drift-ssl[serve]'"
with needed_for("drift annotate and drift serve", WEB):
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 1_000_000  # of a request
LONGEST_NUMBER = 20  # digits
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}

Refusal = tuple[int, str]
Check = Callable[[Scope, Mapping[str, str]], Refusal | None]
"""Looks at a request and its headers: status and text of a refusal, or None."""


class Guard:
    """Refuses requests that fail a check or are too long. Plain ASGI, so that it sees the raw body.

    checks: asked in order. most_bytes: of a request.
    """

    def __init__(self, app: ASGIApp, checks: Sequence[Check], most_bytes: int = MOST_BYTES) -> None:
        self.app, self.checks, self.most_bytes = app, checks, most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            status, text = refusal
            response = Response(text + "\n", status, {**HEADERS, "content-security-policy": POLICY}, "text/plain")
            await response(scope, receive, send)
            return
        await self.app(scope, _limited(receive, self.most_bytes), _with_headers(send))

    def _refusal(self, scope: Scope) -> Refusal | None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        for check in self.checks:
            if (refusal := check(scope, headers)) is not None:
                return refusal
        length = headers.get("content-length", "0")
        # Not isdigit: a superscript two is a digit, and int() refuses it, as it does thousands of digits.
        if not length.isdecimal() or len(length) > LONGEST_NUMBER or int(length) > self.most_bytes:
            return 413, f"A request has at most {self.most_bytes:,} bytes."
        return None


def changes(scope: Scope) -> bool:
    """Whether a request may do more than read."""
    return scope["method"] not in ("GET", "HEAD")


def only_hosts(hosts: frozenset[str]) -> Check:
    """Refuse a Host that is not one of these: a name of an attacker may lead to this machine (DNS rebinding)."""

    def check(scope: Scope, headers: Mapping[str, str]) -> Refusal | None:
        if headers.get("host", "") not in hosts:
            return 421, "This server answers only to its own address."
        return None

    return check


def json_only(scope: Scope, headers: Mapping[str, str]) -> Refusal | None:
    """Refuse what a form of another site can send without asking: other content than JSON."""
    if changes(scope) and headers.get("content-type", "").split(";")[0].strip() != "application/json":
        return 415, "Send JSON, with content-type: application/json."
    return None


def not_cross_site(scope: Scope, headers: Mapping[str, str]) -> Refusal | None:
    """Refuse requests that a browser makes for another site."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return 403, "Requests from other sites are refused."
    return None


def _limited(receive: Receive, most: int) -> Receive:
    """The body of a request, which may be longer than it says."""
    total = 0

    async def limited() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        return {"type": "http.disconnect"} if total > most else message

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
