"""Servers that are not there, names that are not known, and inputs that cannot be."""

import base64
import importlib.util
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.support.nats import NatsServer, running
from tests.unit.tools.nats.bench import Bench

from noetl.extras import needs
from noetl.playbook.model import Timeout
from noetl.tools.nats.connections import SEED, USER, checksum, public_of, raw_of
from noetl.tools.refusal import Refusal

SECRET = bytes(range(32))


def seed_of(raw: bytes, role: int = USER) -> str:
    """A seed as NATS writes it."""
    body = bytes([SEED | role >> 5, (role & 31) << 3]) + raw
    return base64.b32encode(body + checksum(body)).decode().rstrip("=")


USERS = f"""
authorization {{ users = [
  {{ user: ann, password: "planted-password" }}
  {{ user: ben, password: "planted-password", permissions: {{ publish: ["allowed", "_INBOX.>"] }} }}
  {{ nkey: {public_of(Ed25519PrivateKey.from_private_bytes(SECRET))} }}
] }}
"""


@pytest.fixture(scope="module")
def guarded() -> Iterator[NatsServer]:
    with running(USERS) as server:
        yield server


@pytest.mark.parametrize(
    ("given", "kind", "retryable", "message"),
    [
        (
            {"operation": "publish"},
            "input",
            False,
            "publish needs 'subject'",
        ),
        ({"operation": "kv_get", "bucket": "b"}, "input", False, "kv_get needs 'key'"),
        (
            {"operation": "publish", "subject": "a b"},
            "input",
            False,
            "publish a b has an invalid subject",
        ),
        (
            {"operation": "publish", "subject": "a", "value": "\ud800"},
            "input",
            False,
            "value cannot be sent: ",
        ),
        (
            {"operation": "publish", "subject": "a", "value": "x" * 1_100_000},
            "limit",
            False,
            "publish a is larger than the server allows",
        ),
        (
            {"operation": "publish", "subject": "no.stream", "ack": True},
            "not_found",
            False,
            "publish no.stream was kept by no stream",
        ),
        (
            {"operation": "request", "subject": "nobody"},
            "not_found",
            True,
            "request nobody has no receiver: nothing subscribes",
        ),
        (
            {"operation": "kv_get", "bucket": "none", "key": "k"},
            "not_found",
            False,
            "kv_get none/k found no such bucket",
        ),
        (
            {"operation": "kv_get", "bucket": "none", "key": "k", "create": True},
            "not_found",
            False,
            "kv_get none/k found no such bucket",
        ),
        (
            {"operation": "object_get", "bucket": "none", "key": "k"},
            "not_found",
            False,
            "object_get none/k found no such bucket",
        ),
        (
            {"operation": "kv_put", "bucket": "b d", "key": "k"},
            "input",
            False,
            "kv_put b d/k has an invalid bucket name",
        ),
        (
            {"operation": "publish", "subject": "a", "url": None},
            "input",
            False,
            "nats needs 'url', or 'auth' with a credential that has one",
        ),
        (
            {"operation": "publish", "subject": "a", "auth": "none"},
            "auth",
            False,
            "no credential 'none'",
        ),
        (
            {"operation": "publish", "subject": "a", "url": "nats://nowhere.invalid:4222"},
            "connection",
            True,
            "the connection to nats://nowhere.invalid:4222 has a host name that was not found",
        ),
    ],
)
def test_what_fails(
    bench: Bench, given: dict[str, Any], kind: str, retryable: bool, message: str
) -> None:
    error = bench.error(**given)
    assert (error["kind"], error["retryable"]) == (kind, retryable), error
    assert error["message"].startswith(message)


def test_a_key_that_cannot_be(bench: Bench) -> None:
    _, wrong, missing = bench.run(
        bench.call("kv_put", bucket="keys", key="ok", value=1, create=True),
        bench.call("kv_put", bucket="keys", key="no spaces", value=1),
        bench.call("kv_get", bucket="keys", key="missing"),
    )
    assert (wrong.error or {})["kind"] == "input"
    assert (missing.error or {})["kind"] == "not_found"
    assert missing.block == {"code": None, "description": None}


def test_a_port_where_nobody_listens(bench: Bench) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"127.0.0.1:{free.getsockname()[1]}"
        error = bench.error("publish", subject="a", url=url)
    assert (error["kind"], error["retryable"]) == ("connection", True)
    assert error["message"].startswith(f"the connection to nats://{url} could not be opened")


def test_a_server_that_says_nothing(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"nats://127.0.0.1:{silent.getsockname()[1]}"
        error = bench.error("publish", subject="a", url=url, timeout=Timeout(connect=0.2))
    assert (error["kind"], error["retryable"]) == ("timeout", True)


def test_a_server_that_stops_and_comes_back() -> None:
    import asyncio

    from noetl.tools.nats.tool import NatsTool

    async def calls(server: NatsServer) -> list[tuple[str, str | None]]:
        bench, tool = Bench(server), NatsTool()
        call = bench.call("publish", subject="a", value="x", timeout=Timeout(total=30))
        outcomes = [await tool.call(call, bench.place)]
        server.stop()
        outcomes.append(await tool.call(call, bench.place))
        assert server.start()
        outcomes.append(await tool.call(call, bench.place))
        await tool.close()
        return [(one.status, (one.error or {}).get("kind")) for one in outcomes]

    with running() as server:
        assert asyncio.run(calls(server)) == [
            ("ok", None),
            ("error", "connection"),
            ("ok", None),
        ]


@pytest.mark.parametrize(
    "fields",
    [
        {"user": "ann", "password": "planted-password"},
        {"username": "ann", "password": "planted-password"},
        {"nkey": seed_of(SECRET)},
    ],
)
def test_who_is_known(guarded: NatsServer, fields: dict[str, Any]) -> None:
    bench = Bench(guarded, who={"kind": "nats", "url": guarded.url, **fields})
    assert bench.result("publish", subject="a", value="x", auth="who", url=None)["size"] == 1


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"user": "ann", "password": "wrong"},
        {"token": "wrong"},
        {"nkey": seed_of(bytes(32))},
    ],
)
def test_who_is_not(guarded: NatsServer, fields: dict[str, Any]) -> None:
    bench = Bench(guarded, who={"kind": "nats", "host": "127.0.0.1", "port": guarded.port} | fields)
    error = bench.error("publish", subject="a", auth="who", url=None)
    assert (error["kind"], error["retryable"]) == ("auth", False)
    assert all(str(value) not in error["message"] for value in fields.values())


def test_who_may_not(guarded: NatsServer) -> None:
    credential = {"kind": "nats", "user": "ben", "password": "planted-password"}
    bench = Bench(guarded, ben=credential)
    assert bench.result("publish", subject="allowed", auth="ben")["size"] == 0
    # Each on a connection of its own: the refusal must never come too late to be seen.
    errors = [bench.error("publish", subject="Forbidden", auth="ben") for _ in range(20)]
    assert errors == 20 * [
        {
            "kind": "auth",
            "message": "publishing to 'Forbidden' is not allowed with this credential",
            "retryable": False,
        }
    ]


def test_a_token(tmp_path: Any) -> None:
    del tmp_path
    with running("authorization { token: planted-token }") as server:
        for fields in ({"token": "planted-token"}, {"value": "planted-token"}):
            bench = Bench(server, who={"kind": "generic", **fields})
            assert bench.result("publish", subject="a", auth="who")["size"] == 0


@pytest.mark.parametrize("seed", ["", "SUNONSENSE", seed_of(SECRET)[:-1] + "A", seed_of(SECRET, 0)])
def test_seeds_that_are_none(seed: str) -> None:
    with pytest.raises(Refusal, match="not a user seed"):
        raw_of(seed)


def test_a_server_without_streams() -> None:
    with running("jetstream: disabled") as server:
        error = Bench(server).error("kv_get", bucket="b", key="k", timeout=Timeout(total=20))
    assert (error["kind"], error["retryable"]) == ("connection", True)


def test_a_missing_extra_names_its_command(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    error = bench.error("publish", subject="a")
    assert error["message"] == needs("'nats'", "nats")
    assert error["kind"] == "not_found"
