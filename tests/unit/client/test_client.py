"""Both clients alike: what goes over the wire, and what each answer comes to."""

import inspect
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any, assert_type

import pytest
from aiohttp import web
from tests.unit.client.far import (
    NO_PAUSES,
    Far,
    ask_async,
    ask_sync,
    cut,
    far,
    streamed_async,
    streamed_sync,
)

from noetl import errors
from noetl.api.types import StartedExecution, Summary
from noetl.client import asks
from noetl.client.asks import Question
from noetl.client.async_client import AsyncClient
from noetl.client.client import Client
from noetl.server.views.standing import Standing

LISTED = {
    "execution_id": "e1",
    "path": "reports/daily",
    "version": "3",
    "status": "running",
    "interrupted": False,
    "started_at": "2026-01-01T00:00:00.000Z",
    "updated_at": "2026-01-01T00:00:00.000Z",
    "finished_at": None,
    "duration_ms": 0,
    "parent_execution_id": None,
    "error": None,
}
Asking = Callable[..., Any]
Streaming = Callable[..., list[Any]]


@pytest.fixture
def server() -> Iterator[Far]:
    with far() as started:
        yield started


@pytest.fixture(params=[ask_sync, ask_async], ids=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Asking:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=[streamed_sync, streamed_async], ids=["sync", "async"])
def streamed(request: pytest.FixtureRequest) -> Streaming:
    return request.param  # type: ignore[no-any-return]


def test_every_question_is_asked_by_both_clients() -> None:
    makers = {
        name: make
        for name, make in vars(asks).items()
        if inspect.isfunction(make) and make.__module__ == asks.__name__ and name[0] != "_"
    }
    listed = {
        name for name, value in vars(asks.ClientQuestions).items() if isinstance(value, Question)
    }
    assert listed == makers.keys()


def test_type_checkers_know_arguments_and_answers() -> None:
    """mypy reads this test too: an ignore that is not needed is an error there."""

    def now(client: Client) -> None:
        assert_type(client.standing("e1"), Standing)
        assert_type(client.summary("e1", wait=1.0), Summary)
        client.standing(1)  # type: ignore[arg-type]
        client.summary("e1", weight=1.0)  # type: ignore[call-arg]

    async def later(client: AsyncClient) -> None:
        assert_type(await client.standing("e1"), Standing)
        await client.standing(1)  # type: ignore[arg-type]

    assert Client.standing.__doc__ == asks.standing.__doc__ == AsyncClient.standing.__doc__


def test_an_execution_is_begun_with_a_key_of_its_own(server: Far, ask: Asking) -> None:
    server.will((201, LISTED))
    for _ in range(2):
        begun = ask(server.url, "secret", "execute", "reports/daily", payload={"a": 1})
        assert begun == StartedExecution(**LISTED)  # type: ignore[arg-type]
    (method, url, headers, body), (_, _, second, _) = server.asked
    assert (method, url) == ("POST", "/api/executions")
    asked = {"playbook_id": None, "path": "reports/daily", "version": None}
    assert json.loads(body) == {**asked, "payload": {"a": 1}, "ctx": {}}
    assert headers["Authorization"] == "Bearer secret"
    assert headers["Idempotency-Key"] != second["Idempotency-Key"]


def test_a_broken_connection_is_asked_again_with_the_same_key(server: Far, ask: Asking) -> None:
    server.will(cut, (201, LISTED))
    assert ask(server.url, None, "execute", "p", key="k").execution_id == "e1"
    assert [headers["Idempotency-Key"] for _, _, headers, _ in server.asked] == ["k", "k"]


def test_what_may_not_be_repeated_is_not(server: Far, ask: Asking) -> None:
    server.will(cut, (201, {}))
    with pytest.raises(errors.ServerAway, match=f"no server answers at {server.url}"):
        ask(server.url, None, "make_token", "ci", "operator")
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("question", "args", "query", "url"),
    [
        ("standing", ["a/b?c"], {}, "/api/executions/a%2Fb%3Fc"),
        ("executions", [], {"status": "failed", "limit": 5}, "?status=failed&limit=5"),
        ("events", ["e"], {"after": 7, "name": "task.*"}, "after=7&name=task.%2A&limit=200"),
        ("summary", ["e"], {"wait": 99}, "/api/executions/e/result?wait=30.0"),
        ("versions", ["a/b c"], {}, "/api/catalog/versions/a/b%20c?limit=100"),
        ("playbook", ["a/b"], {"version": 2}, "/api/catalog/entries/a/b?version=2"),
        ("remove_credential", ["x y"], {}, "/api/credentials/x%20y"),
    ],
)
def test_names_cannot_leave_their_place_in_the_address(
    server: Far, ask: Asking, question: str, args: list[str], query: dict[str, Any], url: str
) -> None:
    server.will((404, {"error": {"code": "x", "message": "no"}}))
    with pytest.raises(errors.ServerRefused):
        ask(server.url, None, question, *args, **query)
    assert server.asked[0][1].endswith(url)


FINDING = {
    "code": "unknown-kind",
    "severity": "error",
    "line": 1,
    "column": 1,
    "path": "x",
    "message": "no such kind",
    "hint": "",
}


@pytest.mark.parametrize(
    ("status", "fault", "error", "said"),
    [
        (
            404,
            {"code": "execution_not_found", "message": "no execution 'e'", "hint": "list them"},
            errors.ExecutionNotFound,
            "no execution 'e'",
        ),
        (404, {"code": "playbook_not_found", "message": "no"}, errors.PlaybookNotFound, "no"),
        (409, {"code": "key_reused", "message": "twice"}, errors.KeyReused, "twice"),
        (
            401,
            {"code": "unauthorized", "message": "a token is needed"},
            errors.ServerRefused,
            "a token is needed; set NOETL_TOKEN to a token of this server "
            "(`noetl server token add`); on the home of the server (NOETL_HOME) its owner needs "
            "none",
        ),
        (
            422,
            {"code": "invalid", "message": "x", "findings": [FINDING]},
            errors.PlaybookRejected,
            "the playbook has 1 error",
        ),
        (
            409,
            {"code": "finished", "message": "it has ended"},
            errors.ServerRefused,
            "it has ended",
        ),
        (
            429,
            {
                "code": "limit_reached",
                "message": "the limit is reached; try again later",
                "hint": "try again when others have ended",
            },
            errors.ServerRefused,
            "the limit is reached; try again later",
        ),
        (
            503,
            {
                "code": "odd",
                "message": "the disk is full; make room and try again",
                "hint": "try again; nothing was changed",
            },
            errors.ServerRefused,
            "the disk is full; make room and try again; nothing was changed",
        ),
    ],
)
def test_a_refusal_is_the_exception_of_its_code(
    server: Far, ask: Asking, status: int, fault: dict[str, Any], error: type[Exception], said: str
) -> None:
    server.will((status, {"error": fault}))
    with pytest.raises(error) as refused:
        ask(server.url, None, "standing", "e")
    assert str(refused.value) == said
    if isinstance(refused.value, errors.ServerRefused):
        assert (refused.value.code, refused.value.status) == (fault["code"], status)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"<html>", "cannot read"),
        (200, b'{"execution_id": 5}', "cannot read"),
        (502, b"Bad gateway", "answered 502 without a reason; is it a NoETL server?"),
    ],
)
def test_another_kind_of_server_is_recognized(
    server: Far, ask: Asking, status: int, body: bytes, said: str
) -> None:
    server.will((status, body))
    with pytest.raises(errors.ServerRefused, match=said.replace("?", r"\?")):
        ask(server.url, None, "standing", "e")


def test_nobody_there(ask: Asking) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(errors.ServerAway, match=f"{url} .*noetl server start"):
            ask(url, None, "standing", "e")


@pytest.mark.parametrize("url", ["ftp://x", "http://", "x:1", "http://h:99999"])
def test_an_address_that_is_none(url: str) -> None:
    for client in (Client, AsyncClient):
        with pytest.raises(errors.SettingRefused, match="the server must be http://HOST:PORT"):
            client(url)


def test_pages_follow_their_cursor(server: Far) -> None:
    server.will(
        (200, {"executions": [LISTED], "next": "c2"}), (200, {"executions": [], "next": None})
    )
    with Client(server.url) as client:
        pages = list(client.pages(client.executions, status="failed"))
    assert [len(page.executions) for page in pages] == [1, 0]
    assert "cursor=c2" in server.asked[1][1]


# ── streams ──────────────────────────────────────────────────────────────────────────────────


def message(seq: int, name: str) -> bytes:
    event = (
        f'{{"event_id":"e.{seq}","seq":{seq},"execution_id":"e","timestamp":"t","source":"server",'
        f'"name":"{name}","entity":"workflow","entity_id":"e","status":"success","step":null,'
        f'"step_run_id":null,"task_run_id":null,"trace_id":"e","parent_id":null,"data":{{}}}}'
    )
    return f": beat\r\nid: {seq}\nevent: {name}\ndata: {event}\n\n".encode()


def stream(*pieces: bytes) -> Callable[[web.Request], web.StreamResponse]:
    return lambda _: web.Response(body=b"".join(pieces), content_type="text/event-stream")


def test_a_stream_goes_on_where_it_broke(server: Far, streamed: Streaming) -> None:
    server.will(
        stream(message(1, "execution.requested"), message(2, "step.done")[:20]),
        cut,
        stream(message(2, "step.done"), message(3, "playbook.processed")),
    )
    assert [event.seq for event in streamed(server.url, "e")] == [1, 2, 3]
    assert [url.partition("after=")[2] for _, url, _, _ in server.asked] == ["0", "1", "1"]


def test_a_stream_that_cannot_be_had_again_ends_in_words(server: Far, streamed: Streaming) -> None:
    server.will(cut)
    with pytest.raises(errors.ServerAway):
        streamed(server.url, "e")
    assert len(server.asked) >= 1 + len(NO_PAUSES)


@pytest.mark.parametrize("status", [401, 404])
def test_a_refused_stream_is_not_tried_again(server: Far, streamed: Streaming, status: int) -> None:
    server.will((status, {"error": {"code": "no", "message": "not for you"}}))
    with pytest.raises(errors.ServerRefused, match="not for you"):
        streamed(server.url, "e")
    assert len(server.asked) == 1


def test_rubbish_in_a_stream_is_said_so(server: Far, streamed: Streaming) -> None:
    server.will(stream(b"data: {}\n\n"))
    with pytest.raises(errors.ServerRefused, match="the stream cannot be read"):
        streamed(server.url, "e")
