"""A body that was packed is unfolded without stopping others (WRK-1)."""

import asyncio

import pytest
from tests.support.http_server import HttpServer
from tests.support.turns import most_between_turns
from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.http import HttpInputs
from noetl.messages.outcome import Outcome
from noetl.tools.http.tool import HttpTool


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "image/png"])
def test_a_body_that_unfolds_leaves_others_their_turns(http_server: HttpServer, kind: str) -> None:
    """A few kilobytes are many megabytes of work; a worker renews its leases meanwhile (WRK-1)."""
    size, place = 24_000_000, BenchPlace()

    async def run() -> tuple[Outcome, int]:
        tool = HttpTool()
        inputs = HttpInputs(url=f"{http_server.url}/bomb", params={"size": size, "as": kind})
        asking = tool.call(call_of(inputs), place)
        try:
            return await most_between_turns(asking, lambda: place.results.taken)
        finally:
            await tool.close()

    outcome, longest = asyncio.run(run())
    assert outcome.status == "ok", outcome.error
    assert place.results.taken >= size
    assert 0 < longest < size / 8
