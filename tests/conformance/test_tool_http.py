"""What the rules say about the `http` kind, shown on a real server."""

import asyncio
from typing import Any

import pytest
from tests.support.http_server import HttpServer
from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.http import HttpInputs
from noetl.messages.outcome import Outcome
from noetl.messages.reference import Reference
from noetl.playbook.model import Timeout
from noetl.tools.http.tool import HttpTool


async def no_pause(seconds: float) -> None:
    """Retries of these tests do not wait."""


def ask(inputs: HttpInputs, place: BenchPlace | None = None, **more: Any) -> Outcome:
    async def run() -> Outcome:
        tool = HttpTool(pause=no_pause)
        try:
            return await tool.call(call_of(inputs, **more), place or BenchPlace())
        finally:
            await tool.close()

    return asyncio.run(run())


@pytest.mark.rule("TOOL-0")
def test_every_input_reaches_the_server(http_server: HttpServer) -> None:
    place = BenchPlace(api={"kind": "bearer", "token": "t0k"})
    inputs = HttpInputs(
        method="post",
        url=f"{http_server.url}/redirect-to?url=/echo&status=307",
        headers={"X-Trace": 7},
        params={"page": 2},
        body={"name": "é"},
        auth="api",
    )

    outcome = ask(inputs, place)

    assert outcome.status == "ok", outcome.error
    first, second = http_server.seen
    assert (first.method, first.query[-1]) == ("POST", ("page", "2"))
    assert second.path == "/echo"
    assert second.body == '{"name":"é"}'.encode()
    assert second.headers["x-trace"] == "7"
    assert second.headers["authorization"] == "Bearer t0k"
    assert second.headers["content-type"] == "application/json"


@pytest.mark.rule("TOOL-0")
def test_a_redirect_to_another_host_takes_no_header_by_hand_along(http_server: HttpServer) -> None:
    url = f"{http_server.url}/redirect-to?url=http://localhost:{http_server.port}/echo"

    ask(HttpInputs(url=url, headers={"Cookie": "c", "X-Auth-Token": "t", "Accept": "text/plain"}))

    away = http_server.seen[-1].headers
    assert (away.get("cookie"), away.get("x-auth-token")) == (None, None)
    assert away["accept"] == "text/plain"


@pytest.mark.rule("OUT-2", "OUT-3")
def test_the_result_is_status_headers_and_parsed_content(http_server: HttpServer) -> None:
    url = f"{http_server.url}/api/v1/users"

    outcome = ask(HttpInputs(url=url, params={"page": 3, "pageSize": 10}))

    assert outcome.result["data"] == {
        "data": [{"id": n, "name": f"users-{n}"} for n in range(21, 26)],
        "paging": {"hasMore": False, "page": 3, "pageSize": 10, "total": 25},
    }
    assert set(outcome.result) == {"status", "headers", "data"}
    assert outcome.result["headers"]["content-type"] == "application/json; charset=utf-8"
    assert outcome.block == {"status": 200, "headers": outcome.result["headers"]}


@pytest.mark.rule("OUT-3", "OUT-4")
@pytest.mark.parametrize(
    ("status", "retryable"),
    [(400, False), (404, False), (408, True), (425, True), (429, True), (500, True), (599, True)],
)
def test_a_status_of_400_or_more_is_an_error(
    http_server: HttpServer, status: int, retryable: bool
) -> None:
    outcome = ask(HttpInputs(url=f"{http_server.url}/status/{status}"))

    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == ("http", retryable)
    assert outcome.result["data"] == {"code": status}


@pytest.mark.rule("OUT-3", "OUT-4")
def test_a_body_that_claims_json_and_is_not_is_an_error(http_server: HttpServer) -> None:
    inputs = HttpInputs(
        method="PUT",
        url=f"{http_server.url}/raw",
        params={"as": "application/json"},
        body="{oops",
    )

    outcome = ask(inputs)

    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == ("decode", False)


@pytest.mark.rule("OUT-3")
def test_an_empty_body_is_null(http_server: HttpServer) -> None:
    assert ask(HttpInputs(url=f"{http_server.url}/status/204")).result["data"] is None


@pytest.mark.rule("OUT-2", "OUT-4")
@pytest.mark.parametrize(
    ("path", "kind"),
    [("/reset", "connection"), ("/truncated", "connection"), ("/redirect/99", "input")],
)
def test_without_an_answer_the_block_is_there_and_empty(
    http_server: HttpServer, path: str, kind: str
) -> None:
    outcome = ask(HttpInputs(url=http_server.url + path))

    assert outcome.error is not None
    assert outcome.error["kind"] == kind
    assert outcome.block == {"status": None, "headers": {}}


@pytest.mark.rule("TASK-7")
@pytest.mark.parametrize("timeout", [Timeout(total=0.05), Timeout(read=0.05)])
def test_a_timeout_ends_the_request(http_server: HttpServer, timeout: Timeout) -> None:
    outcome = ask(HttpInputs(url=f"{http_server.url}/hang"), timeout=timeout)

    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == ("timeout", True)
    http_server.wait_for_drop("/hang")


@pytest.mark.rule("TASK-9")
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_every_attempt_carries_the_same_idempotency_key(
    http_server: HttpServer, method: str
) -> None:
    inputs = HttpInputs(method=method, url=f"{http_server.url}/echo")

    for attempt in (1, 2):
        ask(inputs, attempt=attempt)

    assert http_server.keys("/echo") == {"e1-r1": 2}


@pytest.mark.rule("TASK-9")
def test_the_key_is_left_to_who_sets_it_and_out_of_reading(http_server: HttpServer) -> None:
    url = f"{http_server.url}/echo"

    ask(HttpInputs(method="POST", url=url, headers={"idempotency-key": "mine"}))
    ask(HttpInputs(url=url))

    assert http_server.keys("/echo") == {"mine": 1, "": 1}


@pytest.mark.rule("TASK-11")
def test_client_retries_repeat_inside_the_tool(http_server: HttpServer) -> None:
    http_server.fail("/api/v1/users", 2)

    outcome = ask(HttpInputs(url=f"{http_server.url}/api/v1/users"), client_retries=2)

    assert outcome.status == "ok"
    assert http_server.count("/api/v1/users") == 3


@pytest.mark.rule("KEY-1")
def test_an_unknown_credential_is_an_error_before_anything_is_sent(
    http_server: HttpServer,
) -> None:
    outcome = ask(HttpInputs(url=http_server.url, auth="nobody"))

    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == ("auth", False)
    assert "nobody" in outcome.error["message"]
    assert http_server.seen == []


@pytest.mark.rule("RES-1")
def test_a_large_body_is_a_reference(http_server: HttpServer) -> None:
    place = BenchPlace()

    outcome = ask(HttpInputs(url=f"{http_server.url}/big?size=3000000"), place)

    reference = outcome.result["data"]
    assert isinstance(reference, Reference)
    assert reference.size == 3_000_000
    assert place.results.value(reference) == "x" * 2_999_998
