"""Messages, keys and objects on a real server."""

import asyncio
from typing import Any

import nats
import pytest
from nats.aio.msg import Msg
from tests.unit.tools.nats.bench import Bench

from noetl.messages.reference import Reference
from noetl.playbook.model import Timeout

VALUES: list[tuple[Any, bytes, dict[str, Any]]] = [
    ("plain text", b"plain text", {"data": "plain text"}),
    ({"a": [1, "ü"]}, '{"a":[1,"ü"]}'.encode(), {"data": {"a": [1, "ü"]}}),
    (7, b"7", {"data": 7}),
    ("", b"", {"data": ""}),
    (None, b"", {"data": ""}),
]


@pytest.mark.parametrize(("value", "sent", "back"), VALUES)
def test_a_request_and_its_answer(
    bench: Bench, value: Any, sent: bytes, back: dict[str, Any]
) -> None:
    seen: list[bytes] = []

    async def answer(message: Msg) -> None:
        seen.append(message.data)
        await message.respond(message.data)

    (outcome,) = bench.with_peer("echo", answer, bench.call("request", subject="echo", value=value))

    assert seen == [sent]
    assert outcome.result == {"headers": {}, **back}


def test_headers_travel_both_ways(bench: Bench) -> None:
    async def answer(message: Msg) -> None:
        reply = Msg(
            _client=message._client,
            subject=message.reply,
            headers={"Seen": (message.headers or {})["Asked"]},
        )
        await message._client.publish(reply.subject, b"x", headers=reply.headers)

    call = bench.call("request", subject="headers", headers={"Asked": "yes"})
    (outcome,) = bench.with_peer("headers", answer, call)
    assert outcome.result == {"headers": {"Seen": "yes"}, "data": "x"}


def test_a_message_is_published_with_its_key(bench: Bench) -> None:
    seen: list[tuple[bytes, dict[str, str] | None]] = []

    async def keep(message: Msg) -> None:
        seen.append((message.data, message.headers))

    call = bench.call("publish", subject="news", value={"n": 1}, headers={"A": "b"})
    (outcome,) = bench.with_peer("news", keep, call)
    assert outcome.result == {"subject": "news", "size": 7}
    assert seen == [(b'{"n":1}', {"Nats-Msg-Id": "e1-r1", "A": "b"})]


@pytest.mark.rule("TASK-9")
def test_a_stream_keeps_a_message_once_however_often_it_comes(bench: Bench) -> None:
    async def make() -> None:
        peer = await nats.connect(bench.server.url)
        await peer.jetstream().add_stream(name="ORDERS", subjects=["orders.>"])
        await peer.close()

    asyncio.run(make())
    again = bench.call("publish", subject="orders.new", value="x", ack=True)
    other = bench.call("publish", subject="orders.new", value="x", ack=True, task_run_id="r2")
    results = [outcome.result for outcome in bench.run(again, again, other)]
    assert [(one["seq"], one["duplicate"]) for one in results] == [
        (1, False),
        (1, True),
        (2, False),
    ]
    assert {one["stream"] for one in results} == {"ORDERS"}


def test_keys(bench: Bench) -> None:
    def call(operation: str, **more: Any) -> Any:
        return bench.call(operation, bucket="settings", **more)

    outcomes = bench.run(
        call("kv_put", key="a.b", value={"x": 1}, create=True),
        call("kv_put", key="a.b", value="two"),
        call("kv_put", key="c", value=""),
        call("kv_get", key="a.b"),
        call("kv_keys"),
        call("kv_delete", key="a.b"),
        call("kv_delete", key="c"),
        call("kv_delete", key="never"),
        call("kv_keys"),
        call("kv_get", key="c"),
    )
    assert [outcome.result for outcome in outcomes[:-1]] == [
        {"key": "a.b", "revision": 1},
        {"key": "a.b", "revision": 2},
        {"key": "c", "revision": 3},
        {"key": "a.b", "revision": 2, "data": "two"},
        ["a.b", "c"],
        {"key": "a.b"},
        {"key": "c"},
        {"key": "never"},
        [],
    ]
    assert (outcomes[-1].error or {})["kind"] == "not_found"


def test_objects(bench: Bench) -> None:
    def call(operation: str, **more: Any) -> Any:
        return bench.call(operation, bucket="files", key="a/b.json", **more)

    put, got, gone, missing = bench.run(
        call("object_put", value={"rows": [1, 2]}, create=True),
        call("object_get"),
        call("object_delete"),
        call("object_get"),
    )
    assert put.result["size"] == 14
    assert got.result == {**put.result, "data": {"rows": [1, 2]}}
    assert gone.result == {"key": "a/b.json"}
    assert (missing.error or {})["kind"] == "not_found"


def test_a_large_object_goes_to_the_store_in_pieces(bench: Bench) -> None:
    text = "0123456789" * 200_000
    put, got = bench.run(
        bench.call("object_put", bucket="large", key="k", value=text, create=True),
        bench.call("object_get", bucket="large", key="k", max_inline=1000),
    )
    assert (put.result["size"], got.result["size"]) == (2_000_000, 2_000_000)
    assert isinstance(got.result["data"], Reference)
    assert asyncio.run(bench.place.results.fetch(got.result["data"])) == text
    assert bench.place.results.largest_piece < 300_000
    assert bench.place.results.unfinished == 0


def test_a_large_value_goes_to_the_store(bench: Bench) -> None:
    values = list(range(1000))
    _, got = bench.run(
        bench.call("kv_put", bucket="wide", key="k", value=values, create=True),
        bench.call("kv_get", bucket="wide", key="k", max_inline=100),
    )
    assert asyncio.run(bench.place.results.fetch(got.result["data"])) == values


def test_an_empty_object(bench: Bench) -> None:
    _, got = bench.run(
        bench.call("object_put", bucket="empty", key="k", value="", create=True),
        bench.call("object_get", bucket="empty", key="k"),
    )
    assert (got.result["size"], got.result["data"]) == (0, "")


def test_bytes_that_are_no_text_are_noted(bench: Bench) -> None:
    async def answer(message: Msg) -> None:
        await message.respond(b"\x1f\x8b\0\xff")

    (outcome,) = bench.with_peer("bytes", answer, bench.call("request", subject="bytes"))
    assert outcome.result == {"headers": {}, "data": "H4sA/w==", "encoding": "base64"}


def test_calls_share_a_connection_and_a_lost_one_is_opened_anew(bench: Bench) -> None:
    from noetl.tools.nats.tool import NatsTool

    async def calls() -> list[str]:
        tool = NatsTool()
        call = bench.call("kv_put", bucket="shared", key="k", value=1, create=True)
        first = await tool.call(call, bench.place)
        assert tool._connections is not None
        (connection,) = tool._connections._open.values()
        await asyncio.gather(*(tool.call(call, bench.place) for _ in range(5)))
        assert list(tool._connections._open.values()) == [connection]
        await connection.close()
        last = await tool.call(call, bench.place)
        await tool.close()
        return [first.status, last.status]

    assert asyncio.run(calls()) == ["ok", "ok"]


def test_an_answer_that_does_not_come(bench: Bench) -> None:
    async def silent(message: Msg) -> None:
        del message

    slow = bench.call("request", subject="silent", timeout=Timeout(total=0.2))
    slow_read = bench.call("request", subject="silent", timeout=Timeout(read=0.2))
    for outcome in bench.with_peer("silent", silent, slow, slow_read):
        assert outcome.error == {
            "kind": "timeout",
            "message": "request silent had no answer within 0.2 s",
            "retryable": True,
        }
