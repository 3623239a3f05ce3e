"""What is sent for which inputs, and which inputs are refused before anything is sent."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.http_server import HttpServer, Seen
from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.http import HttpInputs
from noetl.messages.outcome import Outcome
from noetl.tools.http.tool import HttpTool


def ask(inputs: HttpInputs, place: BenchPlace | None = None, **more: Any) -> Outcome:
    """One call with a tool of its own."""

    async def run() -> Outcome:
        tool = HttpTool()
        try:
            return await tool.call(call_of(inputs, **more), place or BenchPlace())
        finally:
            await tool.close()

    return asyncio.run(run())


def sent(server: HttpServer, place: BenchPlace | None = None, **inputs: Any) -> Seen:
    """The request that arrives for these inputs."""
    more = {name: inputs.pop(name) for name in ("folder",) if name in inputs}
    outcome = ask(HttpInputs(url=f"{server.url}/echo", **inputs), place, **more)
    assert outcome.status == "ok", outcome.error
    return server.seen[-1]


@pytest.mark.parametrize(
    ("params", "query"),
    [
        ({"page": 2, "q": "a b&c"}, [("page", "2"), ("q", "a b&c")]),
        ({"id": [1, 2, None, 3]}, [("id", "1"), ("id", "2"), ("id", "3")]),
        ({"gone": None, "yes": True, "no": False}, [("yes", "true"), ("no", "false")]),
        ({"x": 1.5, "where": {"a": [1]}}, [("x", "1.5"), ("where", '{"a":[1]}')]),
        ({"empty": "", "none": []}, [("empty", "")]),
        ({"accent": "é/ü+%"}, [("accent", "é/ü+%")]),
    ],
)
def test_params_become_the_query(
    http_server: HttpServer, params: dict[str, Any], query: list[tuple[str, str]]
) -> None:
    assert sent(http_server, params=params).query == query


def test_params_extend_the_query_of_the_url(http_server: HttpServer) -> None:
    ask(HttpInputs(url=f"{http_server.url}/echo?a=1&b=2", params={"b": 3}))

    assert http_server.seen[0].query == [("a", "1"), ("b", "2"), ("b", "3")]


@pytest.mark.parametrize(
    ("inputs", "content_type", "body"),
    [
        ({"body": {"a": [1, None]}}, "application/json", b'{"a":[1,null]}'),
        ({"body": [1, "é"]}, "application/json", '[1,"é"]'.encode()),
        ({"body": 7}, "application/json", b"7"),
        ({"body": "text é"}, "text/plain; charset=utf-8", "text é".encode()),
        (
            {"body": "<a/>", "headers": {"content-type": "text/xml"}},
            "text/xml",
            b"<a/>",
        ),
        (
            {"form": {"a": "1 2", "b": [True, 3], "c": None, "d": "&="}},
            "application/x-www-form-urlencoded",
            b"a=1+2&b=true&b=3&d=%26%3D",
        ),
        ({}, None, b""),
    ],
)
def test_body_and_form_become_the_payload(
    http_server: HttpServer, inputs: dict[str, Any], content_type: str | None, body: bytes
) -> None:
    seen = sent(http_server, method="POST", **inputs)

    assert (seen.headers.get("content-type"), seen.body) == (content_type, body)


def parts_of(seen: Seen) -> list[tuple[str, str, bytes]]:
    """Disposition, content type and content of each part of a multipart body."""
    boundary = re.search(r"boundary=([^;]+)", seen.headers["content-type"])
    assert boundary is not None
    parts = seen.body.split(b"--" + boundary[1].strip('"').encode())[1:-1]
    shown = []
    for part in parts:
        head, _, content = part.strip(b"\r\n").partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        shown.append((fields["Content-Disposition"], fields["Content-Type"], content))
    return shown


def test_files_and_form_make_a_multipart_body(http_server: HttpServer, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.csv").write_bytes(b"x,y\n1,2")

    seen = sent(
        http_server,
        method="POST",
        headers={"Content-Type": "multipart/form-data"},
        form={"title": "hi"},
        files={
            "plain": "sub/a.csv",
            "made": {"filename": "b.json", "content": "{}"},
            "raw": {"content": "AAEC", "encoding": "base64", "content_type": "image/png"},
        },
        folder=str(tmp_path),
    )

    assert parts_of(seen) == [
        ('form-data; name="title"', "text/plain; charset=utf-8", b"hi"),
        ('form-data; name="plain"; filename="a.csv"', "text/csv", b"x,y\n1,2"),
        ('form-data; name="made"; filename="b.json"', "application/json", b"{}"),
        ('form-data; name="raw"; filename="raw"', "image/png", b"\x00\x01\x02"),
    ]


@pytest.mark.parametrize(
    ("files", "kind", "says"),
    [
        ({"f": "../secret"}, "input", "leaves the playbook's folder"),
        ({"f": "/etc/passwd"}, "input", "leaves the playbook's folder"),
        ({"f": "link"}, "input", "leaves the playbook's folder"),
        ({"f": "missing.txt"}, "not_found", "No such file"),
        ({"f": {"filename": "x"}}, "input", "needs either 'path' or 'content'"),
        ({"f": {"path": "a", "content": "b"}}, "input", "needs either 'path' or 'content'"),
        ({"f": {"contents": "b"}}, "input", "unknown field"),
        ({"f": {"content": "%", "encoding": "base64"}}, "input", "not base64 text"),
        ({"f": {"content": "x", "encoding": "hex"}}, "input", "is not 'base64'"),
        ({"f": 7}, "input", "expected a path or a mapping"),
        ({"f": "a\0b"}, "input", "cannot be read"),
    ],
)
def test_files_that_cannot_be_sent_are_refused(
    http_server: HttpServer, tmp_path: Path, files: dict[str, Any], kind: str, says: str
) -> None:
    (tmp_path / "link").symlink_to("/etc")
    inputs = HttpInputs(url=f"{http_server.url}/echo", method="POST", files=files)

    outcome = ask(inputs, folder=str(tmp_path))

    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == (kind, False)
    assert says in outcome.error["message"]
    assert http_server.seen == []


def test_a_path_needs_a_folder(http_server: HttpServer) -> None:
    outcome = ask(HttpInputs(url=http_server.url, files={"f": "a.txt"}))

    assert outcome.error is not None
    assert "has no folder to start from" in outcome.error["message"]


def test_headers_are_sent_as_text(http_server: HttpServer) -> None:
    seen = sent(http_server, headers={"X-Flag": True, "X-Count": 3, "Accept": "text/csv"})

    assert {name: seen.headers[name] for name in ("x-flag", "x-count", "accept")} == {
        "x-flag": "true",
        "x-count": "3",
        "accept": "text/csv",
    }
    assert seen.headers["user-agent"].startswith("noetl/")


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"url": "ftp://host/x"}, "is not a URL"),
        ({"url": "nonsense"}, "is not a URL"),
        ({"url": "http://"}, "is not a URL"),
        ({"url": "http://[::1"}, "is not a URL"),
        ({"url": "http://host:99999/"}, "is not a URL"),
        ({"url": ""}, "is not a URL"),
        ({"url": "http://h/", "method": "GET /\r\n"}, "not a request method"),
        ({"url": "http://h/", "method": "PO\u017fT"}, "not a request method"),
        ({"url": "http://h/", "headers": {"X-A": "a\r\nX-B: b"}}, "header 'X-A' cannot be sent"),
        ({"url": "http://h/", "headers": {"a b": "c"}}, "header 'a b' cannot be sent"),
        ({"url": "http://h/", "body": {}, "form": {}}, "give only one of them"),
        ({"url": "http://h/", "body": "x", "files": {}}, "give only one of them"),
        ({"url": "http://h/", "body": "lone \ud800"}, "cannot be sent"),
        ({"url": "http://h/", "form": {"a": "lone \ud800"}}, "cannot be sent"),
        ({"url": "http://h/", "body": {"a": {1, 2}, "b": object()}}, "cannot be sent as JSON"),
    ],
)
def test_inputs_that_make_no_request_are_refused(inputs: dict[str, Any], says: str) -> None:
    outcome = ask(HttpInputs(**inputs))

    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == ("input", False)
    assert says in outcome.error["message"]
    assert outcome.block == {"status": None, "headers": {}}


@pytest.mark.parametrize(
    ("credential", "header", "value"),
    [
        ({"kind": "basic", "user": "u", "password": "p:é"}, "authorization", "Basic dTpwOsOp"),
        ({"username": "u", "password": "p"}, "authorization", "Basic dTpw"),
        ({"kind": "bearer", "token": "t0k"}, "authorization", "Bearer t0k"),
        ({"kind": "bearer_credential", "token": "t0k"}, "authorization", "Bearer t0k"),
        ({"token": "t0k"}, "authorization", "Bearer t0k"),
        ({"kind": "bearer", "value": "t0k"}, "authorization", "Bearer t0k"),
        ({"kind": "api_key", "value": "k3y"}, "x-api-key", "k3y"),
        ({"kind": "api_key", "key": "k3y"}, "x-api-key", "k3y"),
        ({"key": "k3y", "header": "X-Token"}, "x-token", "k3y"),
    ],
)
def test_credentials_become_headers(
    http_server: HttpServer, credential: dict[str, Any], header: str, value: str
) -> None:
    seen = sent(http_server, BenchPlace(api=credential), auth="api")

    assert seen.headers[header] == value


def test_an_api_key_may_stand_in_the_query(http_server: HttpServer) -> None:
    place = BenchPlace(api={"kind": "api_key", "key": "k3y", "query": "key"})

    assert sent(http_server, place, auth="api", params={"a": 1}).query == [
        ("a", "1"),
        ("key", "k3y"),
    ]


@pytest.mark.parametrize(
    ("credential", "says"),
    [
        ({"kind": "snowflake"}, "of kind 'snowflake', which http cannot use"),
        ({"host": "db"}, "of kind 'generic', which http cannot use"),
        ({"kind": "bearer"}, "has no field 'token'"),
        ({"kind": "basic", "user": "u"}, "has no field 'password'"),
    ],
)
def test_credentials_that_do_not_fit_are_refused(credential: dict[str, Any], says: str) -> None:
    outcome = ask(HttpInputs(url="http://h/", auth="api"), BenchPlace(api=credential))

    assert outcome.error is not None
    assert outcome.error["kind"] == "auth"
    assert says in outcome.error["message"]
