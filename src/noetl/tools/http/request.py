"""What exactly is sent: the rendered inputs become URL, headers and payload (TOOL-0)."""

import mimetypes
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import IO, Any
from urllib.parse import urlencode

import aiohttp
import msgspec
from multidict import CIMultiDict
from yarl import URL

from noetl import __version__
from noetl.kinds.http import HttpInputs
from noetl.messages.clipping import beginning
from noetl.messages.trace import traceparent
from noetl.tools.http.credential import sign
from noetl.tools.paths import open_file
from noetl.tools.refusal import Refusal, base64_bytes, json_of
from noetl.tools.tool import ToolCall, Workplace

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NO_JSON = "a value cannot be sent as JSON"
_HARMLESS = frozenset(
    ("accept", "accept-encoding", "accept-language", "content-type", "if-none-match", "user-agent")
)
"""Headers by hand that follow to another host; any other may be somebody's key."""
_USUAL = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"})
_AGENT = f"noetl/{__version__}"
_NONE: frozenset[str] = frozenset()
_WITH_EFFECT = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request, ready to be sent once or again."""

    method: str
    url: URL
    headers: CIMultiDict[str]
    private: frozenset[str]
    """Headers that may carry a credential; another host never sees them."""
    body: bytes | None
    """None also where files are sent: then it is made anew for each sending (`multipart`)."""
    call: ToolCall[HttpInputs]

    @property
    def name(self) -> str:
        """What messages call it: without query and user, which may hold secrets (KEY-2)."""
        return f"{self.method} {self.url.origin()}{self.url.path}"


async def make_request(call: ToolCall[HttpInputs], workplace: Workplace) -> Request:
    """The request that the inputs ask for; raises Refusal where they cannot be sent."""
    inputs = call.inputs
    method = inputs.method.upper()
    if inputs.method not in _USUAL and not _TOKEN.fullmatch(inputs.method):
        says = f"'{inputs.method}' is not a request method; expected a word such as GET"
        raise Refusal("input", says)
    url = url_of(inputs.url)
    if inputs.params:
        url = url.extend_query(list(pairs(inputs.params)))
    headers = headers_of(inputs.headers)
    body, content_type = body_of(inputs)
    if content_type:
        headers.setdefault("Content-Type", content_type)
    if inputs.files is not None:  # only who writes the parts knows the boundary between them
        headers.popall("Content-Type", None)
    headers.setdefault("User-Agent", _AGENT)
    if call.trace_id:
        known = traceparent(call.trace_id, call.execution_id, call.task_run_id)
        headers.setdefault("traceparent", known)
    if method in _WITH_EFFECT:  # TASK-9: the receiver can tell a repeat from a new request
        headers.setdefault("Idempotency-Key", call.idempotency_key)
    private = frozenset(map(str.lower, inputs.headers)) - _HARMLESS if inputs.headers else _NONE
    if inputs.auth is not None:
        credential = await workplace.unlock(inputs.auth)
        url, signed = sign(url, headers, credential, inputs.auth)
        private |= signed
    return Request(
        method=method,
        url=url,
        headers=headers,
        private=private,
        body=body,
        call=call,
    )


def url_of(text: str) -> URL:
    try:
        url = URL(text.strip())
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        says = f"'{beginning(text, 200)}' is not a URL; expected http://host/… or https://host/…"
        raise Refusal("input", says)
    return url


def headers_of(named: Mapping[str, Any]) -> CIMultiDict[str]:
    headers: CIMultiDict[str] = CIMultiDict()
    for name, value in named.items():
        text = plain(value)
        if not _TOKEN.fullmatch(name) or re.search(r"[\x00-\x08\x0a-\x1f\x7f]", text):
            says = f"header '{name}' cannot be sent: its name or value is not legal"
            raise Refusal("input", says)
        headers[name] = text
    return headers


def pairs(named: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Fields of a query or form: lists repeat, null is left out, mappings are JSON."""
    for name, value in named.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None:
                yield str(name), plain(one)


def plain(value: Any) -> str:
    """A value as text: booleans as true and false, as JSON writes them."""
    if isinstance(value, str):
        return value
    return json_of(value, _NO_JSON).decode()


def body_of(inputs: HttpInputs) -> tuple[bytes | None, str | None]:
    """The payload that needs no files, with its content type."""
    if inputs.body is not None and (inputs.form is not None or inputs.files is not None):
        raise Refusal(
            "input", "'body' is set together with 'form' or 'files'; give only one of them"
        )
    if inputs.files is not None:
        return None, None
    if inputs.form is not None:
        fields = urlencode(list(pairs(inputs.form)))
        return fields.encode(), "application/x-www-form-urlencoded"
    if inputs.body is None:
        return None, None
    if isinstance(inputs.body, str):
        return inputs.body.encode(), "text/plain; charset=utf-8"
    return json_of(inputs.body, _NO_JSON), "application/json"


class Upload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file: `path` below the playbook's folder, or `content` with a `filename`."""

    path: str | None = None
    content: str | None = None
    filename: str | None = None
    content_type: str | None = None
    encoding: str | None = None
    """`base64` where `content` stands for bytes."""


def multipart(call: ToolCall[HttpInputs], opened: ExitStack) -> aiohttp.MultipartWriter:
    """The form with its files; what is opened here is closed with `opened`."""
    writer = aiohttp.MultipartWriter("form-data")
    for name, text in pairs(call.inputs.form or {}):
        writer.append(text).set_content_disposition("form-data", name=name)
    for name, given in (call.inputs.files or {}).items():
        for one in given if isinstance(given, list) else [given]:
            upload = upload_of(name, one)
            content, filename = content_of(name, upload, call, opened)
            content_type = upload.content_type or mimetypes.guess_type(filename)[0]
            headers = {"Content-Type": content_type or "application/octet-stream"}
            part = writer.append(content, headers)
            part.set_content_disposition("form-data", name=name, filename=filename)
    return writer


def upload_of(name: str, given: Any) -> Upload:
    try:
        upload = msgspec.convert({"path": given} if isinstance(given, str) else given, Upload)
    except msgspec.ValidationError as fault:
        raise Refusal("input", f"file '{name}': {fault}; expected a path or a mapping") from None
    if (upload.path is None) == (upload.content is None):
        raise Refusal("input", f"file '{name}' needs either 'path' or 'content'")
    if upload.encoding not in (None, "base64"):
        raise Refusal("input", f"file '{name}': encoding '{upload.encoding}' is not 'base64'")
    return upload


def content_of(
    name: str, upload: Upload, call: ToolCall[Any], opened: ExitStack
) -> tuple[bytes | IO[bytes], str]:
    if upload.path is not None:
        source = call.path(upload.path)
        try:
            return opened.enter_context(open_file(source)), upload.filename or source.name
        except OSError as fault:
            raise Refusal("not_found", f"cannot read {source}: {fault.strerror}") from None
    assert upload.content is not None
    filename = upload.filename or name
    if upload.encoding is None:
        return upload.content.encode(), filename
    return base64_bytes(upload.content, f"file '{name}'"), filename
