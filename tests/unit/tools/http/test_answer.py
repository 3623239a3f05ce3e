"""What each kind of answer, and each kind of failure, comes to."""

import asyncio
import base64
import socket
import ssl
from typing import Any

import pytest
from tests.support.http_server import CERTIFICATE, HttpServer, serving
from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.http import HttpInputs
from noetl.messages.outcome import Outcome
from noetl.messages.reference import Reference
from noetl.playbook.model import Timeout
from noetl.tools.http.tool import HttpTool


async def no_pause(seconds: float) -> None:
    """Retries of these tests do not wait."""


def ask(
    url: str, place: BenchPlace | None = None, tool: HttpTool | None = None, **more: Any
) -> Outcome:
    fields = {n: more.pop(n) for n in list(more) if n in HttpInputs.__struct_fields__}

    async def run() -> Outcome:
        used = tool or HttpTool(pause=no_pause)
        try:
            call = call_of(HttpInputs(url=url, **fields), **more)
            return await used.call(call, place or BenchPlace())
        finally:
            await used.close()

    return asyncio.run(run())


def error_of(outcome: Outcome) -> tuple[str, bool]:
    assert outcome.error is not None
    return outcome.error["kind"], outcome.error["retryable"]


def message_of(outcome: Outcome) -> str:
    assert outcome.error is not None
    return str(outcome.error["message"])


@pytest.mark.parametrize(
    ("body", "content_type", "value"),
    [
        ('{"a": 1}', "application/json", {"a": 1}),
        ("[1]", "application/problem+json; charset=utf-8", [1]),
        ("\ufeff[1]", "application/json", [1]),
        ("null", "application/json", None),
        ("99999999999999999999999", "application/json", 99999999999999999999999),
        ('{"a": 1}', "text/plain", '{"a": 1}'),
        ("é", "text/html", "é"),
        ("<a/>", "application/xml", "<a/>"),
        ("<a/>", "image/svg+xml", "<a/>"),
        ("{}\n{}", "application/x-ndjson", "{}\n{}"),
        ("bytes", "application/octet-stream", "Ynl0ZXM="),
        ("", "application/json", None),
        ("", "text/plain", None),
    ],
)
def test_the_content_type_decides_what_the_body_is(
    http_server: HttpServer, body: str, content_type: str, value: Any
) -> None:
    params = {"as": content_type}

    outcome = ask(f"{http_server.url}/raw", method="PUT", body=body, params=params)

    assert outcome.status == "ok", outcome.error
    assert outcome.result["data"] == value


@pytest.mark.parametrize(
    ("content", "content_type", "value"),
    [
        ("/w==", "text/plain", "\ufffd"),
        ("6Q==", "text/plain; charset=iso-8859-1", "é"),
        ("/wA=", None, "/wA="),
        ("AAAA", None, "AAAA"),
        ("cGxhaW4=", None, "plain"),
        ("", None, None),
        ("WyLpIl0=", "application/json; charset=latin-1", ["é"]),
    ],
)
def test_bytes_are_read_by_their_charset(
    content: str, content_type: str | None, value: Any
) -> None:
    assert served(content, content_type).result["data"] == value


def served(content: str, content_type: str | None, **more: Any) -> Outcome:
    """The outcome for a server that answers with these bytes, given in base64."""
    body = base64.b64decode(content)
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n"
    if content_type is not None:
        head += f"Content-Type: {content_type}\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head.encode() + b"\r\n" + body)
        await writer.drain()
        writer.close()

    async def run() -> Outcome:
        tool = HttpTool()
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            call = call_of(HttpInputs(url=f"http://127.0.0.1:{port}/"), **more)
            outcome = await tool.call(call, BenchPlace())
            await tool.close()
        return outcome

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("body", "content_type", "says"),
    [
        ('{"a": ', "application/json", "claims to be JSON and is not"),
        ("<html>", "application/vnd.api+json", "claims to be JSON and is not"),
        ("[NaN]", "application/json", "claims to be JSON and is not"),
        ("[" * 100_000, "application/json", "claims to be JSON and is not"),
        ("abc", "text/plain; charset=utf-16", "not in its charset 'utf-16'"),
        ("x", "text/plain; charset=klingon", "not in its charset 'klingon'"),
        ("a" * 99, "text/plain; charset=punycode", "not in its charset 'punycode'"),
        ("a" * 99, "application/json; charset=punycode", "claims to be JSON and is not"),
        ("aa", "text/plain; charset=idna", "not in its charset 'idna'"),
        ("\\x41", "text/plain; charset=unicode_escape", "not in its charset 'unicode_escape'"),
        ("aa", "text/plain; charset=zip", "not in its charset 'zip'"),
    ],
)
@pytest.mark.parametrize("max_inline", [1_048_576, 0])
def test_a_body_that_is_not_what_it_claims_is_an_error(
    http_server: HttpServer, body: str, content_type: str, says: str, max_inline: int
) -> None:
    place = BenchPlace()
    params = {"as": content_type}

    outcome = ask(
        f"{http_server.url}/raw",
        place,
        method="PUT",
        body=body,
        params=params,
        max_inline=max_inline,
    )

    assert error_of(outcome) == ("decode", False)
    if max_inline:
        assert says in message_of(outcome)
        assert outcome.result["data"] == body
    assert (place.results.kept, place.results.unfinished) == ({}, 0)


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        *((400, False), (401, False), (403, False), (404, False), (409, False)),
        *((408, True), (425, True), (429, True)),
        *((500, True), (501, True), (502, True), (503, True), (504, True)),
    ],
)
def test_a_bad_status_is_an_error_with_its_body(
    http_server: HttpServer, status: int, retryable: bool
) -> None:
    outcome = ask(f"{http_server.url}/status/{status}?token=s3cret")

    assert error_of(outcome) == ("http", retryable)
    assert outcome.result["data"] == {"code": status}
    assert outcome.block is not None
    assert outcome.block["status"] == outcome.result["status"] == status
    assert f"was answered with {status}" in message_of(outcome)
    assert "s3cret" not in message_of(outcome)


@pytest.mark.parametrize("status", [200, 201, 204, 304])
def test_other_statuses_are_ok(http_server: HttpServer, status: int) -> None:
    outcome = ask(f"{http_server.url}/status/{status}")

    assert (outcome.status, outcome.result["status"]) == ("ok", status)
    assert outcome.result["data"] == ({"code": status} if status < 204 else None)


def test_headers_come_in_lower_case_and_joined(http_server: HttpServer) -> None:
    outcome = ask(f"{http_server.url}/twice")

    assert outcome.result["headers"]["x-seen"] == "one, two"
    assert outcome.result["headers"]["set-cookie"] == "a=1, b=2"
    assert outcome.block == {"status": 200, "headers": outcome.result["headers"]}


def test_cookies_are_not_kept_between_calls(http_server: HttpServer) -> None:
    async def run() -> None:
        tool = HttpTool()
        for path in ("/twice", "/echo"):
            await tool.call(call_of(HttpInputs(url=http_server.url + path)), BenchPlace())
        await tool.close()

    asyncio.run(run())

    assert [seen.path for seen in http_server.seen] == ["/twice", "/echo"]
    assert "cookie" not in http_server.seen[1].headers


@pytest.mark.parametrize(
    ("content_type", "size"),
    [("application/json", 4_000_000), ("text/plain", 4_000_000), ("image/png", 4_000_001)],
)
def test_a_large_body_goes_into_the_store_piece_by_piece(
    http_server: HttpServer, content_type: str, size: int
) -> None:
    place = BenchPlace()

    outcome = ask(
        f"{http_server.url}/big",
        place,
        params={"size": size, "as": content_type},
        max_inline=100_000,
    )

    assert outcome.status == "ok", outcome.error
    reference = outcome.result["data"]
    assert isinstance(reference, Reference)
    body = place.results.value(reference)
    assert {"application/json": "x" * (size - 2), "text/plain": "x" * size}.get(
        content_type, "eHh4" * (size // 3) + "eHg="
    ) == body
    assert place.results.unfinished == 0
    assert place.results.largest_piece < size


def test_the_store_holds_text_of_any_charset_as_json() -> None:
    text = 'é"\\\n\u2028€' * 40

    outcome = served(
        base64.b64encode(text.encode("utf-16")).decode(), "text/plain; charset=utf-16", max_inline=7
    )

    assert isinstance(outcome.result["data"], Reference)


def test_a_body_without_end_is_cut_off(http_server: HttpServer) -> None:
    place = BenchPlace()
    tool = HttpTool(longest=3_000_000)

    outcome = ask(f"{http_server.url}/bomb", place, tool, params={"size": 4_000_000})

    assert error_of(outcome) == ("limit", False)
    assert place.results.unfinished == 0


def test_a_compressed_body_is_unfolded(http_server: HttpServer) -> None:
    assert ask(f"{http_server.url}/bomb", params={"size": 5}).result["data"] == "00000"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("path", "kind", "retryable", "says"),
    [
        ("/truncated", "connection", True, "ended in the middle of the body"),
        ("/reset", "connection", True, "lost its connection"),
        ("/garbage", "decode", False, "an answer that is not HTTP"),
        ("/redirect-to?url=ftp://h/", "input", False, "not http or https"),
        ("/redirect-to?url=http://[", "input", False, "cannot be read"),
        ("/redirect/11", "input", False, "redirected more than 10 times"),
    ],
)
def test_what_the_world_does_wrong_has_a_kind(
    http_server: HttpServer, path: str, kind: str, retryable: bool, says: str
) -> None:
    outcome = ask(http_server.url + path, method="POST")

    assert error_of(outcome) == (kind, retryable)
    assert says in message_of(outcome)
    assert outcome.block == {"status": None, "headers": {}}


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://nowhere.invalid/", "host name that was not found"),
        ("http://127.0.0.1:{port}/", "could not connect: Connection refused"),
        ("http://localhost:{port}/", "could not connect: Connection refused"),
    ],
)
def test_a_peer_that_is_not_there(url: str, says: str) -> None:
    outcome = ask(url.format(port=free_port()))

    assert error_of(outcome) == ("connection", True)
    assert says in message_of(outcome)


def test_a_certificate_that_nobody_vouches_for_is_an_error() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    with serving(context) as server:
        outcome = ask(f"{server.url}/echo")

        assert server.seen == []

    assert error_of(outcome) == ("connection", False)
    assert "shows a bad certificate" in message_of(outcome)
    assert "self-signed" in message_of(outcome)


def test_tls_spoken_to_a_server_without_is_an_error(http_server: HttpServer) -> None:
    outcome = ask(f"https://127.0.0.1:{http_server.port}/echo")

    assert error_of(outcome) == ("connection", True)
    assert "failed in the TLS handshake" in message_of(outcome)


def test_cancelling_hangs_up(http_server: HttpServer) -> None:
    async def run() -> None:
        tool = HttpTool()
        call = call_of(HttpInputs(url=f"{http_server.url}/slow-body"))
        running = asyncio.create_task(tool.call(call, BenchPlace()))
        await asyncio.to_thread(http_server.wait_for, "/slow-body")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.to_thread(http_server.wait_for_drop, "/slow-body")
        await tool.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("path", "timeout", "says"),
    [
        ("/hang", Timeout(read=0.05), "read timeout of 0.05 s"),
        ("/slow-body", Timeout(read=0.05), "read timeout of 0.05 s"),
        ("/hang", Timeout(total=0.05), "total timeout of 0.05 s"),
        ("/slow-body", Timeout(total=0.05), "total timeout of 0.05 s"),
    ],
)
def test_each_timeout_says_which_it_was(
    http_server: HttpServer, path: str, timeout: Timeout, says: str
) -> None:
    outcome = ask(http_server.url + path, timeout=timeout)

    assert error_of(outcome) == ("timeout", True)
    assert says in message_of(outcome)
    http_server.wait_for_drop(path)


def test_a_connection_that_is_never_accepted_times_out() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(deaf.getsockname())

        outcome = ask(f"http://127.0.0.1:{deaf.getsockname()[1]}/", timeout=Timeout(connect=0.05))

        for one in waiting:
            one.close()

    assert error_of(outcome) == ("timeout", True)
    assert "connect timeout of 0.05 s" in message_of(outcome)


def test_redirects_are_followed_up_to_ten(http_server: HttpServer) -> None:
    assert ask(f"{http_server.url}/redirect/10").result["data"]["method"] == "GET"


def test_redirects_may_be_left_alone(http_server: HttpServer) -> None:
    outcome = ask(f"{http_server.url}/redirect/2", follow_redirects=False)

    assert (outcome.status, outcome.result["status"]) == ("ok", 302)
    assert outcome.result["headers"]["location"] == "/redirect/1"


@pytest.mark.parametrize(
    ("credential", "header"),
    [({"kind": "bearer", "token": "t"}, "authorization"), ({"key": "k"}, "x-api-key")],
)
def test_another_host_never_sees_the_credential(
    http_server: HttpServer, credential: dict[str, Any], header: str
) -> None:
    place = BenchPlace(api=credential)
    other = f"http://localhost:{http_server.port}/echo"

    for url in ("/echo", other):
        ask(f"{http_server.url}/redirect-to", place, auth="api", params={"url": url})

    same, away = [seen for seen in http_server.seen if seen.path == "/echo"]
    assert header in same.headers
    assert header not in away.headers


@pytest.mark.parametrize("name", ["Authorization", "Cookie", "X-Auth-Token", "Private-Token"])
def test_another_host_never_sees_a_header_that_was_set_by_hand(
    http_server: HttpServer, name: str
) -> None:
    headers = {name: "by-hand", "Accept": "text/x-kept"}
    for host in ("127.0.0.1", "localhost"):
        url = f"http://{host}:{http_server.port}/echo"
        ask(f"{http_server.url}/redirect-to", headers=headers, params={"url": url})

    same, away = [seen for seen in http_server.seen if seen.path == "/echo"]
    assert same.headers[name.lower()] == "by-hand"
    assert name.lower() not in away.headers
    assert away.headers["accept"] == "text/x-kept"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_private_addresses_can_be_denied(http_server: HttpServer, host: str) -> None:
    outcome = ask(f"http://{host}:{http_server.port}/echo", tool=HttpTool(deny="private"))

    assert error_of(outcome) == ("input", False)
    assert "is private or local, which the worker's setting 'http_deny'" in message_of(outcome)
    assert http_server.seen == []


def test_a_redirect_to_a_denied_address_is_not_followed(http_server: HttpServer) -> None:
    url = "http://169.254.169.254/latest/meta-data/"
    outcome = ask(f"{http_server.url}/redirect-to", params={"url": url})

    assert error_of(outcome) == ("input", False)
    assert "169.254.169.254 is local to the link" in message_of(outcome)


def test_a_name_is_resolved_once_for_its_connection(
    http_server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that means another address when it is asked again is not asked again."""
    addresses = iter(["127.0.0.1", "169.254.169.254"])
    real = socket.getaddrinfo

    def told(host: Any, *more: Any, **named: Any) -> Any:
        changing = host in ("changing.example", b"changing.example")
        return real(next(addresses) if changing else host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", told)
    assert ask(f"http://changing.example:{http_server.port}/echo").status == "ok"
    outcome = ask(f"http://changing.example:{http_server.port}/echo")
    assert error_of(outcome) == ("input", False)


@pytest.mark.parametrize(
    ("failures", "retries", "status", "count"),
    [(2, 2, "ok", 3), (2, 1, "error", 2), (0, 5, "ok", 1), (1, 0, "error", 1)],
)
def test_the_tool_repeats_as_often_as_it_is_told(
    http_server: HttpServer, failures: int, retries: int, status: str, count: int
) -> None:
    http_server.fail("/echo", failures)

    outcome = ask(f"{http_server.url}/echo", method="POST", client_retries=retries)

    assert (outcome.status, http_server.count("/echo")) == (status, count)
    assert http_server.keys("/echo") == {"e1-r1": count}


def test_the_tool_repeats_only_what_may_pass(http_server: HttpServer) -> None:
    ask(f"{http_server.url}/status/404", client_retries=5)

    assert http_server.count("/status/404") == 1
