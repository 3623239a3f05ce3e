"""A receiver takes a body, is waited for, or is named with its answer."""

import socket
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.collector import Collector, Reply
from tests.support.http_server import HttpServer
from tests.unit.exports.stories import run
from yarl import URL

from noetl.errors import ReceiverUnavailable
from noetl.exports.receiver import Receiver, seconds_of, shown_url

EMPTY = b'{"resourceSpans":[]}'


def send(collector: Collector, times: int = 1, **changes: Any) -> list[float]:
    """Send, and tell how long was waited between attempts."""
    waited: list[float] = []

    async def pause(seconds: float) -> None:
        waited.append(seconds)

    async def sent() -> None:
        url = URL(collector.url + "/v1/traces")
        receiver = Receiver(url, content_type="application/json", pause=pause, **changes)
        async with receiver:
            for _ in range(times):
                await receiver.send(EMPTY)

    run(sent())
    return waited


def test_a_body_is_posted(collector: Collector) -> None:
    assert send(collector, headers={"X-Key": "k"}) == []
    assert (collector.paths, len(collector.requests)) == (["/v1/traces"], 1)
    assert collector.headers[0]["content-type"] == "application/json"
    assert collector.headers[0]["x-key"] == "k"


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_who_is_busy_is_waited_for(collector: Collector, status: int) -> None:
    collector.replies = [Reply(status), Reply(status)]
    assert send(collector) == [0.5, 1.0]
    assert len(collector.requests) == 1, "taken in the end, once"


@pytest.mark.parametrize(
    ("told", "waits"), [("7", 7.0), ("0", 0.5), ("3600", 30.0), ("Fri, 31 Dec 1999", 0.5)]
)
def test_a_receiver_may_say_when(collector: Collector, told: str, waits: float) -> None:
    collector.replies = [Reply(503, headers=(("Retry-After", told),))]
    assert send(collector) == [waits]


def test_patience_ends(collector: Collector) -> None:
    collector.replies = [Reply(503, b"full")] * 9
    with pytest.raises(ReceiverUnavailable) as refused:
        send(collector, pauses=(1, 1))
    assert "answered 503 Service Unavailable: full (3 attempts)" in str(refused.value)
    assert "export again" in str(refused.value)
    assert len(collector.replies) == 6


@pytest.mark.parametrize("status", [301, 400, 401, 404, 413, 500])
def test_a_refusal_is_shown_at_once(collector: Collector, status: int) -> None:
    collector.replies = [Reply(status, b"  why\n  not  " + b"x" * 9000)]
    with pytest.raises(ReceiverUnavailable) as refused:
        send(collector)
    assert f"{collector.url}/v1/traces answered {status}" in str(refused.value)
    assert "why not xxx" in str(refused.value)
    assert len(str(refused.value)) < 900, "the answer is cut"
    assert len(collector.paths) == 1


def test_a_failure_after_the_first_bytes_is_a_refusal(collector: Collector) -> None:
    collector.replies = [Reply(200, EMPTY, (("X-ClickHouse-Exception-Code", "241"),))]
    with pytest.raises(ReceiverUnavailable, match="answered 200"):
        send(collector)


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


UNREACHABLE: dict[str, Callable[[], str]] = {
    "nobody listens": lambda: f"http://127.0.0.1:{closed_port()}",
    "no such host": lambda: "http://host.invalid:4318",
}


@pytest.mark.parametrize("case", UNREACHABLE)
def test_who_was_never_there_is_not_waited_for(case: str, collector: Collector) -> None:
    collector.url = UNREACHABLE[case]()
    with pytest.raises(ReceiverUnavailable) as refused:
        send(collector)
    assert f"{collector.url}/v1/traces cannot be reached: " in str(refused.value)
    assert "(1 attempt); check the address" in str(refused.value)


def test_who_was_there_is_waited_for(collector: Collector) -> None:
    """A receiver that hangs up in the middle of an answer is asked again."""
    collector.replies = [Reply(200), Reply(200, headers=(("Content-Length", "99"),))]
    assert send(collector, times=2) == [0.5]
    assert len(collector.paths) == 3


@pytest.mark.parametrize("path", ["/garbage", "/reset"])
def test_an_answer_that_is_none(path: str, http_server: HttpServer) -> None:
    async def sent() -> None:
        url = URL(f"{http_server.url}{path}?key=secret")
        async with Receiver(url, content_type="text/plain") as receiver:
            await receiver.send(b"x")

    with pytest.raises(ReceiverUnavailable) as refused:
        run(sent())
    assert f"{http_server.url}{path} cannot be reached: " in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://user:secret@h:8123/?password=secret", "http://h:8123/"),
        ("https://h/path", "https://h/path"),
    ],
)
def test_addresses_are_shown_without_secrets(url: str, shown: str) -> None:
    assert shown_url(URL(url)) == shown


@pytest.mark.parametrize(("text", "seconds"), [("12", 12.0), ("", 0.0), ("-1", 0.0), ("²", 0.0)])
def test_seconds(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds
