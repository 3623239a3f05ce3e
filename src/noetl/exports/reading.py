"""What is exported: the events of chosen executions, as envelopes, in the order of the log."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import msgspec

from noetl.messages.codec import recorded_mappings
from noetl.messages.envelope import envelope
from noetl.ports.event_log import EventLog, Executions

PAGE = 500

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


async def envelopes(
    log: EventLog, execution_id: str, cut: Cut = WHOLE
) -> AsyncIterator[tuple[int, Envelope]]:
    """Every event of an execution that the cut holds, each with its time in ms (EVT-1)."""
    trace_id = await _trace_of(log, execution_id)
    enveloped = partial(envelope, execution_id=execution_id, trace_id=trace_id)
    after = cut.after
    while True:
        page = await log.read(execution_id, after=after, limit=PAGE)
        for row in page:
            events = recorded_mappings(execution_id, row.first, row.events)
            for seq, event in enumerate(events, row.first):
                if cut.holds(seq, row.at):
                    yield row.at, enveloped(event, seq=seq, at=row.at)
        if len(page) < PAGE:
            return
        after = page[-1].last


async def all_ids(executions: Executions, since: int = 0) -> list[str]:
    """
    Executions to which something was added since a time (ms), the oldest first.

    The order is that of their starts, so that a later export goes on where this one ended. Only
    ids are held: a million of them take less than 100 MB.
    """
    found: list[str] = []
    before = None
    while True:
        page = await executions.page(before=before, limit=PAGE)
        found += [row.execution_id for row in page if row.updated_at >= since]
        if len(page) < PAGE:
            return found[::-1]
        before = page[-1].execution_id


async def _trace_of(log: EventLog, execution_id: str) -> str | None:
    rows = await log.read(execution_id, limit=1)
    if not rows:
        return None
    trace_id: str | None = recorded_mappings(execution_id, 1, rows[0].events)[0].get("trace_id")
    return trace_id
