"""
The pages of the UI: files that `make ui` built, beside the API and never in its way.

Only `/` and what is below `/ui/` is answered here; an address below `/ui/` that has no file is one
of the application's own, which reads it in the browser.
"""

import gzip
import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

BASE = "/ui/"
INDEX = "index.html"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Ending → type; no other file is answered."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
ALWAYS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
ASKED_AGAIN = "no-cache"
KEPT = "public, max-age=31536000, immutable"
"""Of a file whose name changes with what is in it."""
UNBUILT = (
    b"This server has no web UI: it was installed without it. In a checkout, `make ui` builds it; "
    b"a wheel that `pip wheel .` makes has it. The API works without it: see /openapi.json.\n"
)


class PageFile(NamedTuple):
    """A file as it is sent."""

    kind: str
    body: bytes
    small: bytes
    """Compressed."""
    tag: str
    kept: str


def with_pages(app: ASGIApp) -> ASGIApp:
    """The app, with the pages in front of it."""

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == ScopeType.HTTP and is_page(scope):
            await respond(scope, send)
        else:
            await app(scope, receive, send)

    return answering


def is_page(scope: HTTPScope) -> bool:
    path = scope["path"]
    return scope["method"] in ("GET", "HEAD") and (path in ("/", "/ui") or path.startswith(BASE))


async def respond(scope: HTTPScope, send: Send) -> None:
    asked = dict(scope["headers"])
    if not scope["path"].startswith(BASE):
        headers = {"location": BASE, "cache-control": ASKED_AGAIN}
        await answer(scope, send, 307, headers, b"")
        return
    found = page_at(scope["path"].removeprefix(BASE))
    if found is None:
        headers = {"content-type": "text/plain; charset=utf-8", "cache-control": "no-store"}
        await answer(scope, send, 404, headers, UNBUILT)
        return
    headers = {"cache-control": found.kept, "etag": found.tag, "vary": "accept-encoding"}
    if asked.get(b"if-none-match", b"").decode("latin-1") == found.tag:
        await answer(scope, send, 304, headers, b"")
        return
    headers["content-type"] = found.kind
    body = found.body
    if b"gzip" in asked.get(b"accept-encoding", b""):
        headers["content-encoding"], body = "gzip", found.small
    await answer(scope, send, 200, headers, body)


async def answer(
    scope: HTTPScope, send: Send, status: int, headers: dict[str, str], body: bytes
) -> None:
    told = {**ALWAYS, **headers, "content-length": str(len(body))}
    sent = [(name.encode(), value.encode()) for name, value in told.items()]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    shown = b"" if scope["method"] == "HEAD" else body
    await send({"type": "http.response.body", "body": shown, "more_body": False})


def page_at(name: str) -> PageFile | None:
    """The file of this name; the application for any other; None where nothing was built."""
    built = built_files()
    return built.get(name) or (None if name.startswith("assets/") else built.get(INDEX))


@cache
def built_files() -> dict[str, PageFile]:
    """All of them by name, read once: they are few, and no name from outside is ever a path."""
    found: dict[str, PageFile] = {}
    folder = files("noetl") / "ui"
    ahead = [("", folder)] if folder.is_dir() else []
    while ahead:
        before, here = ahead.pop()
        for one in here.iterdir():
            name = f"{before}{one.name}"
            if one.is_dir():
                ahead.append((f"{name}/", one))
            elif (kind := KINDS.get(f".{name.rpartition('.')[2]}")) is not None:
                found[name] = page_file(kind, one.read_bytes(), hashed=bool(before))
    return found


def page_file(kind: str, body: bytes, *, hashed: bool) -> PageFile:
    tag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
    small = gzip.compress(body, mtime=0)
    return PageFile(kind, body, small, tag, KEPT if hashed else ASKED_AGAIN)
