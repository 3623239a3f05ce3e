"""What the rules say about the kinds of objects, shown on `s3` and, for what is the same, `gcs`."""

import asyncio
import base64
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.gcs import GcsPlace
from tests.support.http_server import CERTIFICATE, HttpServer, serving
from tests.support.s3 import S3Place
from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.storage import GcsInputs, S3Inputs
from noetl.messages.outcome import Outcome
from noetl.messages.reference import Reference
from noetl.playbook.model import Timeout
from noetl.tools.storage.gcs import gcs_tool
from noetl.tools.storage.s3 import s3_tool


class Objects:
    """One kind with its server; `ask` is one call."""

    def __init__(self, kind: str, server: S3Place | GcsPlace, folder: Path) -> None:
        self.kind = kind
        self.server = server
        self.place = BenchPlace(db=server.credential)
        self._folder = str(folder)
        self._runner = asyncio.Runner()
        self._tool = s3_tool() if kind == "s3" else gcs_tool()

    def ask(self, operation: str, key: str | None = None, **named: Any) -> Outcome:
        more = {
            name: named.pop(name)
            for name in ("max_inline", "timeout", "client_retries")
            if name in named
        }
        kind = S3Inputs if self.kind == "s3" else GcsInputs
        given = {"operation": operation, "bucket": "bucket", "key": key, "auth": "db", **named}
        call = call_of(kind(**given), folder=self._folder, **more)
        return self._runner.run(self._tool.call(call, self.place))

    def close(self) -> None:
        self._runner.run(self._tool.close())
        self._runner.close()


@pytest.fixture(params=["s3", "gcs"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Objects]:
    objects = Objects(request.param, request.getfixturevalue(f"{request.param}_server"), tmp_path)
    yield objects
    objects.close()


def error_of(outcome: Outcome) -> tuple[str, bool]:
    assert outcome.error is not None, outcome
    return outcome.error["kind"], outcome.error["retryable"]


def message_of(outcome: Outcome) -> str:
    assert outcome.error is not None, outcome
    return str(outcome.error["message"])


@pytest.mark.rule("TOOL-0")
@pytest.mark.parametrize(
    ("key", "named", "kept", "data", "encoding"),
    [
        ("a/b c.json", {"body": {"x": [1, None]}}, b'{"x":[1,null]}', {"x": [1, None]}, None),
        ("list", {"body": [1, 2]}, b"[1,2]", [1, 2], None),
        ("é.txt", {"body": "Grüße"}, "Grüße".encode(), "Grüße", None),
        ("text.json", {"body": "7", "encoding": "json"}, b'"7"', "7", None),
        ("raw.bin", {"body": "AP8=", "encoding": "base64"}, b"\x00\xff", "AP8=", "base64"),
        ("none.txt", {"body": ""}, b"", "", None),
    ],
)
def test_what_was_put_can_be_had(
    objects: Objects, key: str, named: dict[str, Any], kept: bytes, data: Any, encoding: str | None
) -> None:
    put = objects.ask("put", key, **named)
    got = objects.ask("get", key)

    assert put.status == "ok", put.error
    assert objects.server.bytes_at(key) == kept
    assert (got.result["data"], got.result["encoding"]) == (data, encoding)
    assert (put.result["key"], put.result["size"]) == (key, len(kept))
    assert got.result["size"] == len(kept)


@pytest.mark.rule("OUT-2")
def test_the_block_names_the_object(objects: Objects) -> None:
    put = objects.ask("put", "a", body="x")
    got = objects.ask("get", "a")
    missing = objects.ask("get", "b")

    assert put.block is not None
    assert put.block["etag"]
    assert put.block == {**put.block, "bucket": "bucket", "key": "a", "size": 1}
    assert got.block == put.block
    assert missing.block == {"bucket": "bucket", "key": "b", "etag": None, "size": None}


@pytest.mark.rule("TOOL-0")
@pytest.mark.parametrize(
    ("key", "content_type", "body", "named", "data"),
    [
        ("a", "application/json; charset=utf-8", b"[1]", {}, [1]),
        ("a", "text/csv", b"1,2", {}, "1,2"),
        ("a.json", "application/octet-stream", b"[1]", {}, [1]),
        ("a", "application/octet-stream", b"plain", {}, "plain"),
        ("a", "image/png", b"\x89P", {}, base64.b64encode(b"\x89P").decode()),
        ("a", "image/png", b"[1]", {"encoding": "json"}, [1]),
        ("a.json", "application/json", b"[1]", {"encoding": "text"}, "[1]"),
    ],
)
def test_data_is_what_it_is_said_to_be(
    objects: Objects, key: str, content_type: str, body: bytes, named: dict[str, Any], data: Any
) -> None:
    objects.server.put(key, body, content_type)

    assert objects.ask("get", key, **named).result["data"] == data


@pytest.mark.rule("TOOL-0")
def test_objects_are_listed_told_copied_and_deleted(objects: Objects) -> None:
    for key in ("logs/1", "logs/2", "logs-old", "other"):
        objects.ask("put", key, body=key)

    listed = objects.ask("list", prefix="logs")
    below = objects.ask("list", prefix="logs/")
    head = objects.ask("head", "logs/1")
    copied = objects.ask("copy", "copy/1", source="logs/1")
    deleted = [objects.ask("delete", "other").status for _ in range(2)]
    every = objects.ask("list")

    assert sorted(one["key"] for one in listed.result) == ["logs-old", "logs/1", "logs/2"]
    assert [one["key"] for one in below.result] == ["logs/1", "logs/2"]
    assert set(below.result[0]) == {"key", "size", "etag", "last_modified"}
    assert (head.result["size"], head.result["etag"]) == (6, below.result[0]["etag"])
    assert (copied.result["key"], copied.result["size"]) == ("copy/1", 6)
    assert deleted == ["ok", "ok"]  # a repeat after a crash finds nothing, and that is well
    assert sorted(one["key"] for one in every.result) == ["copy/1", "logs-old", "logs/1", "logs/2"]


@pytest.mark.rule("TOOL-0")
def test_files_are_put_and_got(objects: Objects, tmp_path: Path) -> None:
    body = bytes(range(256)) * 4096
    (tmp_path / "in.bin").write_bytes(body)

    put = objects.ask("put", "a.bin", path="in.bin")
    got = objects.ask("get", "a.bin", path="out.bin")

    assert (put.result["size"], got.result["size"]) == (len(body), len(body))
    assert got.result["path"] == "out.bin"
    assert (tmp_path / "out.bin").read_bytes() == body
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.bin", "out.bin"]


@pytest.mark.rule("EVT-4", "RES-1")
@pytest.mark.parametrize(
    ("key", "body"),
    [
        ("a.txt", ('Grüße "😀"\n' * 200_000).encode()),
        ("a.json", msgspec.json.encode([{"n": n} for n in range(200_000)])),
        ("a.bin", bytes(range(256)) * 10_000),
    ],
)
def test_a_large_object_goes_through_the_store_in_pieces(
    objects: Objects, key: str, body: bytes
) -> None:
    objects.server.put(key, body)

    got = objects.ask("get", key)
    data = got.result["data"]
    back = objects.ask("put", f"copy-{key}", body=data, encoding=got.result["encoding"])

    assert isinstance(data, Reference)
    assert objects.place.results.largest_piece < 4 * 1024 * 1024
    assert back.result["size"] == len(body), back.error
    assert objects.server.bytes_at(f"copy-{key}") == body


@pytest.mark.rule("RES-4")
def test_a_stored_body_that_changed_is_not_put(objects: Objects) -> None:
    reference = objects.place.results.stored("e1", b'"' + b"x" * 100_000 + b'"')
    objects.place.results.kept[reference.key] = b'"y"'

    outcome = objects.ask("put", "a", body=reference)

    assert error_of(outcome) == ("result", False)
    assert reference.key in message_of(outcome)
    assert objects.ask("list").result == []


@pytest.mark.rule("RES-1")
def test_a_long_list_is_a_reference(objects: Objects) -> None:
    for number in range(5):
        objects.server.put(f"k{number}", b"")

    outcome = objects.ask("list", max_inline=100)

    assert isinstance(outcome.result, Reference)
    listed = objects.place.results.value(outcome.result)
    assert [one["key"] for one in listed] == [f"k{number}" for number in range(5)]


@pytest.mark.rule("OUT-4")
@pytest.mark.parametrize(
    ("named", "kind", "says"),
    [
        ({"operation": "get", "key": "no"}, "not_found", "get bucket/no got status 404"),
        ({"operation": "head", "key": "no"}, "not_found", "404"),
        ({"operation": "copy", "key": "a", "source": "no"}, "not_found", "404"),
        ({"operation": "get", "key": "a", "bucket": "no-bucket"}, "not_found", "404"),
        ({"operation": "list", "bucket": "no-bucket"}, "not_found", "404"),
        ({"operation": "put", "key": "a", "bucket": "no-bucket", "body": 1}, "not_found", "404"),
        ({"operation": "get"}, "input", "'get' needs 'key'"),
        ({"operation": "copy", "key": "a"}, "input", "'copy' needs 'source'"),
        ({"operation": "put", "key": "a"}, "input", "either 'body' or 'path'"),
        ({"operation": "put", "key": "a", "body": 1, "path": "x"}, "input", "either 'body'"),
        ({"operation": "put", "key": "a", "path": "no.txt"}, "not_found", "there is no file"),
        ({"operation": "put", "key": "a", "path": "../no"}, "input", "leaves the playbook's"),
        ({"operation": "put", "key": "a", "body": 1, "encoding": "base64"}, "input", "not text"),
        ({"operation": "put", "key": "a", "body": "?", "encoding": "base64"}, "input", "base64"),
        ({"operation": "put", "key": "a", "body": 1, "encoding": "text"}, "input", "is none"),
        ({"operation": "get", "key": "odd.json"}, "decode", "claims to be JSON and is not"),
        ({"operation": "get", "key": "odd.json", "path": "no/x"}, "input", "cannot write"),
        ({"operation": "get", "key": "a", "auth": "nobody"}, "auth", "no credential 'nobody'"),
    ],
)
def test_what_cannot_be_done_says_why(
    objects: Objects, named: dict[str, Any], kind: str, says: str
) -> None:
    objects.server.put("odd.json", b"{")

    outcome = objects.ask(**named)

    assert error_of(outcome) == (kind, False)
    assert says in message_of(outcome)


@pytest.mark.rule("OUT-4")
@pytest.mark.parametrize("bucket", ["", "a b", 'a"b', "a/b", "..", "a\nb", "a?b", "b\u00fccher"])
def test_a_bucket_that_cannot_be_is_not_asked_for(objects: Objects, bucket: str) -> None:
    outcome = objects.ask("get", "a", bucket=bucket)

    assert error_of(outcome) == ("input", False)
    assert message_of(outcome).startswith(f"bucket is {bucket!r}; expected letters")


@pytest.mark.rule("OUT-4", "KEY-2")
@pytest.mark.parametrize(
    "endpoint",
    ["nope", "http://", "http://h:99999", "http://h:x", "ftp://h", "http://[::1", "http://u:p w@h"],
)
def test_an_endpoint_that_cannot_be_is_not_asked(objects: Objects, endpoint: str) -> None:
    outcome = objects.ask("get", "a", endpoint=endpoint)

    assert error_of(outcome) == ("input", False)
    assert message_of(outcome).startswith("'endpoint' is not a server address; expected http://")
    assert "p w" not in message_of(outcome)


@pytest.mark.rule("TASK-11")
def test_client_retries_repeat_inside_the_tool(objects: Objects, http_server: HttpServer) -> None:
    path = "/bucket/a" if objects.kind == "s3" else "/storage/v1/b/bucket/o/a"
    http_server.fail(path, times=2)

    objects.ask("head", "a", endpoint=http_server.url, client_retries=2)

    assert http_server.count(path) == 3


@pytest.mark.rule("OUT-4")
@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1", "http://nowhere.invalid"])
def test_no_connection_may_pass(objects: Objects, endpoint: str) -> None:
    outcome = objects.ask("get", "a", endpoint=endpoint)

    assert error_of(outcome) == ("connection", True)
    assert message_of(outcome).startswith("get bucket/a could not connect")


@pytest.mark.rule("OUT-4")
@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (403, "auth", False),
        (409, "object", False),
        (429, "object", True),
        (500, "object", True),
        (503, "object", True),
    ],
)
def test_the_status_decides(
    objects: Objects, http_server: HttpServer, status: int, kind: str, retryable: bool
) -> None:
    path = "/bucket/a" if objects.kind == "s3" else "/storage/v1/b/bucket/o/a"
    http_server.fail(path, times=1, status=status)

    outcome = objects.ask("get", "a", endpoint=http_server.url)

    assert error_of(outcome) == (kind, retryable), outcome.error
    assert f"status {status}" in message_of(outcome)
    assert http_server.count(path) == 1


@pytest.mark.rule("OUT-4")
def test_a_certificate_that_nobody_vouches_for_will_not_pass(objects: Objects) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    with serving(context) as server:
        outcome = objects.ask("head", "a", endpoint=server.url)

    assert error_of(outcome) == ("connection", False)
    assert "was shown a bad certificate" in message_of(outcome)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
SAID: dict[str, tuple[bytes, tuple[str, bool]]] = {
    "nothing": (b"", ("connection", True)),
    "garbage": (b"garbage\r\n\r\n", ("connection", True)),
    "too little": (HEAD + b"Content-Length: 100\r\n\r\n{}", ("connection", True)),
    "no JSON": (HEAD + b'Content-Length: 3\r\n\r\n{"a', ("decode", False)),
}


@pytest.mark.rule("OUT-4")
@pytest.mark.parametrize("said", SAID)
def test_an_answer_that_is_none(objects: Objects, said: str) -> None:
    body, expected = SAID[said]
    with answering(body) as endpoint:
        outcome = objects.ask("get", "a.json", endpoint=endpoint)

    assert error_of(outcome) == expected, outcome.error


@contextmanager
def answering(body: bytes) -> Iterator[str]:
    """A server that says one thing to everybody, and hangs up."""

    class Once(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline().strip():
                continue
            self.wfile.write(body)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Once) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.rule("TASK-7")
@pytest.mark.parametrize(
    ("timeout", "says"),
    [(Timeout(total=0.1), "total timeout of 0.1 s"), (Timeout(read=0.2), "left waiting")],
)
def test_a_silent_peer_times_out(
    objects: Objects, silent_port: int, timeout: Timeout, says: str
) -> None:
    silent = f"http://127.0.0.1:{silent_port}"

    outcome = objects.ask("get", "a", endpoint=silent, timeout=timeout)

    assert error_of(outcome) == ("timeout", True), outcome.error
    assert says in message_of(outcome)


@pytest.mark.rule("KEY-1")
@pytest.mark.parametrize("kind", ["s3", "gcs"])
def test_a_credential_of_another_kind_is_refused(tmp_path: Path, kind: str) -> None:
    objects = Objects(kind, S3Place("http://127.0.0.1:1"), tmp_path)
    objects.place = BenchPlace(db={"user": "x", "password": "y"})

    outcome = objects.ask("get", "a")
    objects.close()

    assert error_of(outcome) == ("auth", False)
    assert f"cannot be used for {kind}; expected the fields" in message_of(outcome)
    assert "y" not in message_of(outcome).split("'db'")[0]


@pytest.mark.rule("KEY-1", "KEY-2")
def test_requests_are_signed_by_the_credential_alone(
    http_server: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the worker's own environment knows is never lent to a playbook."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "WORKERSOWN")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "workers-own")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "workers-token")
    objects = Objects("s3", S3Place(http_server.url), tmp_path)

    objects.ask("get", "a")
    objects.ask("get", "a", auth=None, endpoint=http_server.url)
    objects.close()

    signed, plain = (seen.headers for seen in http_server.seen)
    assert "Credential=loopback/" in signed["authorization"]
    assert "x-amz-security-token" not in signed
    assert "authorization" not in plain
    assert "WORKERSOWN" not in str((signed, plain))
