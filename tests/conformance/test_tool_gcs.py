"""What is `gcs` alone: who asks, and what cancelling does to a library that waits inside."""

import asyncio
from typing import Any

import pytest
from tests.support.gcs import GcsPlace
from tests.support.http_server import HttpServer
from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.storage import GcsInputs
from noetl.messages.outcome import Outcome
from noetl.tools.storage.gcs import gcs_tool


def ask(credential: dict[str, Any] | None, **named: Any) -> Outcome:
    async def asking() -> Outcome:
        tool, place = gcs_tool(), BenchPlace(db=credential or {})
        auth = None if credential is None else "db"
        inputs = GcsInputs(operation="head", bucket="bucket", key="a", auth=auth, **named)
        try:
            return await tool.call(call_of(inputs), place)
        finally:
            await tool.close()

    return asyncio.run(asking())


@pytest.mark.rule("KEY-1")
@pytest.mark.parametrize(
    ("credential", "header"),
    [(None, None), ({"anonymous": True}, None), ({"token": "t0ken"}, "Bearer t0ken")],
)
def test_the_credential_says_who_asks(
    http_server: HttpServer, credential: dict[str, Any] | None, header: str | None
) -> None:
    ask(credential, endpoint=http_server.url)

    (seen,) = http_server.seen
    assert seen.headers.get("authorization") == header


@pytest.mark.rule("KEY-1", "KEY-2")
def test_a_service_account_that_is_none_is_refused() -> None:
    broken = {"client_email": "a@b", "private_key": "not-a-key", "token_uri": "http://x"}

    outcome = ask(broken)

    assert outcome.error is not None
    assert outcome.error["kind"] == "auth"
    assert "not-a-key" not in outcome.error["message"]


@pytest.mark.rule("TOOL-0")
def test_the_project_is_billed(http_server: HttpServer) -> None:
    ask(None, endpoint=http_server.url, project="payer")

    (seen,) = http_server.seen
    assert ("userProject", "payer") in seen.query


@pytest.mark.rule("TASK-7")
def test_cancelling_closes_the_request(gcs_server: GcsPlace, http_server: HttpServer) -> None:
    """The library waits in a thread; its socket is cut, so that the thread ends too."""

    async def cancelling() -> Outcome:
        tool, place = gcs_tool(), BenchPlace(db=gcs_server.credential)
        hanging = GcsInputs(
            operation="head", bucket="bucket", key="a", endpoint=f"{http_server.url}/hang?"
        )
        running = asyncio.create_task(tool.call(call_of(hanging), place))
        await asyncio.to_thread(http_server.wait_for, "/hang")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.to_thread(http_server.wait_for_drop, "/hang")
        listing = GcsInputs(operation="list", bucket="bucket", auth="db")
        return await tool.call(call_of(listing), place)

    assert asyncio.run(cancelling()).result == []
