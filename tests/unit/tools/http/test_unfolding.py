"""A body that was packed is unfolded without stopping others (WRK-1)."""

import asyncio

import pytest
from tests.support.http_server import HttpServer
from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.http import HttpInputs
from noetl.messages.outcome import Outcome
from noetl.tools.http.tool import HttpTool


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "image/png"])
def test_a_body_that_unfolds_leaves_others_their_turns(http_server: HttpServer, kind: str) -> None:
    """A few kilobytes are many megabytes of work; a worker renews its leases meanwhile (WRK-1)."""
    size, place = 24_000_000, BenchPlace()

    async def run() -> tuple[Outcome, int]:
        loop, tool, ended = asyncio.get_running_loop(), HttpTool(), False
        between = longest = 0

        def turn() -> None:
            nonlocal between, longest
            longest = max(longest, place.results.taken - between)
            between = place.results.taken
            if not ended:
                loop.call_soon(turn)

        turn()
        params = {"size": size, "as": kind}
        try:
            call = call_of(HttpInputs(url=f"{http_server.url}/bomb", params=params))
            return await tool.call(call, place), longest
        finally:
            ended = True
            await tool.close()

    outcome, longest = asyncio.run(run())
    assert outcome.status == "ok", outcome.error
    assert place.results.taken >= size
    assert 0 < longest < size / 8
