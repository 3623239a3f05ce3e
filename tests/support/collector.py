"""
A receiver of OpenTelemetry traces on loopback, strict as the protocol is.

Requests are read with the official protobufs: an unknown field or a wrong type is an error. Only
ids are turned before that, because OTLP writes them in hexadecimal where protobuf has base64.
"""

import base64
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import msgspec

IDS = {"traceId": 32, "spanId": 16, "parentSpanId": 16}
HEXADECIMAL = re.compile(r"[0-9a-f]+")


class Reply(NamedTuple):
    """What the receiver answers, instead of taking a request."""

    status: int
    body: bytes = b"{}"
    headers: tuple[tuple[str, str], ...] = ()


class Collector:
    """`replies` are given one after the other; after that everything is taken."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.replies: list[Reply] = []
        self.faults: list[str] = []

    @property
    def spans(self) -> list[Any]:
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def take(self, path: str, headers: dict[str, str], body: bytes) -> Reply:
        self.paths.append(path)
        self.headers.append(headers)
        reply = self.replies.pop(0) if self.replies else Reply(200)
        if reply.status == 200:
            from google.protobuf.json_format import ParseError

            try:
                self.requests.append(parsed(body))
            except (AssertionError, ParseError, msgspec.MsgspecError) as wrong:
                self.faults.append(str(wrong))
                return Reply(400, str(wrong).encode())
        return reply


def parsed(body: bytes) -> Any:
    """The request as the protobufs know it."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    return ParseDict(turned(msgspec.json.decode(body)), ExportTraceServiceRequest())


def turned(value: Any) -> Any:
    """The same with ids in base64."""
    if isinstance(value, list):
        return [turned(below) for below in value]
    if not isinstance(value, dict):
        return value
    told = {}
    for key, below in value.items():
        if key in IDS:
            assert HEXADECIMAL.fullmatch(below), f"{key} {below!r} is not hexadecimal"
            assert len(below) == IDS[key], f"{key} has {len(below)} digits"
            told[key] = base64.b64encode(bytes.fromhex(below)).decode()
        else:
            told[key] = turned(below)
    return told


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()

    class Interface(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = collector.take(self.path, headers, body)
            self.send_response(reply.status)
            for name, value in reply.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_: Any) -> None:
            """Not into the output of the tests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Interface) as server:
        collector.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield collector
        finally:
            server.shutdown()
