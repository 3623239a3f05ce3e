"""What is exported: the events of chosen executions, as envelopes, in the order of the log."""

from collections.abc import AsyncIterator, Awaitable
from datetime import datetime
from typing import Any, Protocol

import msgspec

PAGE = 200

Envelope = dict[str, Any]


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of a log is new to the receiver."""

    after: int = 0
    """Only events with a larger `seq`."""
    since: int = 0
    """Only events recorded at this time (ms) or later."""

    def holds(self, seq: int, at: int) -> bool:
        return seq > self.after and at >= self.since


WHOLE = Cut()


class Pages(Protocol):
    """Pages of events, as a control plane and a server answer them."""

    def __call__(self, execution_id: str, *, after: int, limit: int) -> Awaitable[Any]: ...


async def envelopes(
    pages: Pages, execution_id: str, cut: Cut = WHOLE
) -> AsyncIterator[tuple[int, Envelope]]:
    """Every event of an execution that the cut holds, each with its time in ms (EVT-1)."""
    after, more = cut.after, True
    while more:
        page = await pages(execution_id, after=after, limit=PAGE)
        for event in page.events:
            at = millis(event.timestamp)
            if cut.holds(event.seq, at):
                yield at, msgspec.structs.asdict(event)
        after, more = page.after, page.more


def millis(timestamp: str) -> int:
    """Of a time as events show it."""
    return round(datetime.fromisoformat(timestamp).timestamp() * 1000)
