"""Addresses that are none, TLS, servers that drop or say nonsense, and further tries."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support import nats
from tests.support.http_server import CERTIFICATE
from tests.support.workplace import BenchPlace, call_of
from tests.unit.tools.nats.bench import Bench

from noetl.kinds.messaging import NatsInputs
from noetl.messages.outcome import Outcome
from noetl.playbook.model import Timeout
from noetl.tools.nats.tool import NatsTool

INFO = b'INFO {"server_id":"s","version":"2.10.0","headers":true,"max_payload":1048576}\r\n'
PASSWORD = "planted-password"


@pytest.mark.parametrize(
    "url",
    [
        f"nats://u:{PASSWORD}@host:port",
        f"nats://u:{PASSWORD}@host:99999",
        f"nats://u:{PASSWORD}@[::1",
        f"nats://u:{PASSWORD}@",
        f"nats://u:{PASSWORD} @host",
        f"http://u:{PASSWORD}@host",
        f"u:{PASSWORD}@host:0",
        "",
        "://",
    ],
)
@pytest.mark.parametrize("by_credential", [False, True])
@pytest.mark.rule("KEY-2", "OUT-4")
def test_an_address_that_is_none(url: str, by_credential: bool) -> None:
    place = BenchPlace(who={"url": url})
    where: dict[str, Any] = {"auth": "who"} if by_credential else {"url": url}
    inputs = NatsInputs(operation="publish", subject="a", **where)

    outcome = asyncio.run(NatsTool().call(call_of(inputs), place))

    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == ("input", False)
    assert "url" in outcome.error["message"]
    assert PASSWORD not in outcome.error["message"]


class Encrypted:
    """A server that speaks TLS alone, with a certificate for loopback that it signed itself."""

    def __init__(self, server: nats.NatsServer) -> None:
        self.bench = Bench(
            server,
            known={"url": f"tls://127.0.0.1:{server.port}", "ca": CERTIFICATE.read_text()},
            plain={"url": server.url, "ca": CERTIFICATE.read_text()},
            unknown={"url": f"tls://127.0.0.1:{server.port}"},
            nonsense={"url": f"tls://127.0.0.1:{server.port}", "ca": "no certificate"},
            seedless={"url": f"tls://127.0.0.1:{server.port}", "nkey": "no seed"},
        )

    def publish(self, auth: str) -> Outcome:
        return self.bench.one("publish", subject="a", value="x", auth=auth, url=None)


@pytest.fixture(scope="module")
def encrypted() -> Iterator[Encrypted]:
    settings = f'tls {{ cert_file: "{CERTIFICATE}", key_file: "{CERTIFICATE}" }}'
    with nats.running(settings) as server:
        yield Encrypted(server)


@pytest.mark.parametrize("auth", ["known", "plain"])
def test_the_certificate_of_a_credential_is_trusted(encrypted: Encrypted, auth: str) -> None:
    """The server says itself that it wants TLS: the scheme need not."""
    outcome = encrypted.publish(auth)

    assert outcome.status == "ok", outcome.error


@pytest.mark.rule("OUT-4")
def test_a_certificate_that_nobody_vouches_for(encrypted: Encrypted) -> None:
    error = encrypted.publish("unknown").error

    assert error is not None
    assert (error["kind"], error["retryable"]) == ("connection", False)
    assert "shows a bad certificate" in error["message"]


@pytest.mark.rule("OUT-4")
@pytest.mark.parametrize(
    ("auth", "says"),
    [
        ("nonsense", "the credential's ca is not a certificate; expected text in PEM"),
        ("seedless", "the credential's nkey is not a user seed; expected text from 'SU'"),
    ],
)
def test_a_credential_that_cannot_be_read(encrypted: Encrypted, auth: str, says: str) -> None:
    error = encrypted.publish(auth).error

    assert error is not None
    assert (error["kind"], error["retryable"], error["message"]) == ("auth", False, says)


class Flaky:
    """Speaks just enough of the protocol; the first connections are answered with `first`."""

    def __init__(self, drops: int, first: bytes = b"") -> None:
        self._drops = drops
        self._first = first
        self.seen = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.seen += 1
        if self.seen <= self._drops:
            writer.write(self._first)
            writer.close()
            return
        writer.write(INFO)
        while line := await reader.readline():
            if line.startswith(b"PING"):
                writer.write(b"PONG\r\n")
        writer.close()


def publish(flaky: Flaky, *, retries: int = 0, scheme: str = "nats") -> Outcome:
    async def call() -> Outcome:
        server = await asyncio.start_server(flaky, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        inputs = NatsInputs(operation="publish", subject="a", url=f"{scheme}://127.0.0.1:{port}")
        tool = NatsTool()
        asked = call_of(inputs, client_retries=retries, timeout=Timeout(connect=5))
        outcome = await tool.call(asked, BenchPlace())
        await tool.close()
        server.close()
        return outcome

    return asyncio.run(call())


@pytest.mark.rule("TASK-11")
@pytest.mark.parametrize(
    ("drops", "retries", "status", "seen"),
    [(0, 0, "ok", 1), (1, 0, "error", 1), (2, 2, "ok", 3), (3, 2, "error", 3)],
)
def test_client_retries_are_further_tries(drops: int, retries: int, status: str, seen: int) -> None:
    flaky = Flaky(drops)

    outcome = publish(flaky, retries=retries)

    assert (outcome.status, flaky.seen) == (status, seen), outcome.error


@pytest.mark.rule("TASK-11")
def test_what_will_not_pass_is_tried_once(encrypted: Encrypted) -> None:
    call = encrypted.bench.call("publish", subject="a b", url=None, auth="known")
    tried = call_of(call.inputs, client_retries=5, timeout=Timeout(total=60))

    (outcome,) = encrypted.bench.run(tried)

    assert (outcome.error or {})["kind"] == "input"


@pytest.mark.rule("OUT-4")
@pytest.mark.parametrize(
    "said",
    [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"INFO {\r\n", INFO[:20], b"\xff\xfe\r\n", INFO],
    ids=["nothing", "http", "broken", "truncated", "bytes", "then gone"],
)
def test_a_server_that_is_none(said: bytes) -> None:
    error = publish(Flaky(1, said)).error

    assert error is not None
    assert (error["kind"], error["retryable"]) == ("connection", True), error


@pytest.mark.rule("OUT-4")
def test_a_server_without_the_tls_that_was_asked_for() -> None:
    error = publish(Flaky(0), scheme="tls").error

    assert error is not None
    assert (error["kind"], error["retryable"]) == ("connection", False)
    assert "offers no TLS" in error["message"]
