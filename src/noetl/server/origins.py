"""The execution that a restart goes back to: its log read, and what is taken over from it (RST)."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from noetl.control.forgetting import History, Recorded, RunAgain
from noetl.control.restarting import Successor, TakenOver, take_over
from noetl.errors import NeedsBody, RestartRefused
from noetl.messages import events as e
from noetl.messages.codec import recorded_events
from noetl.messages.reference import Reference
from noetl.playbook.plan import Plan
from noetl.ports.event_log import EventLog
from noetl.ports.large import off_loop
from noetl.server.replay import Load, rows_of, with_state

EVENT = 100
"""Bytes of JSON that take as long as one event, to whoever looks at each."""


async def recorded_in(log: EventLog, execution_id: str, load: Load) -> AsyncIterator[Recorded]:
    """Everything that happened in an execution; raises RestartRefused where nothing began."""
    async for row in rows_of(log, execution_id):
        for number, event in enumerate(recorded_events(execution_id, row.first, row.events)):
            if isinstance(event, e.RequestEvaluated) and event.error is not None:
                raise RestartRefused(f"nothing of execution {execution_id} ran: its request failed")
            yield Recorded(row.first + number, row.at, await with_state(event, load))


async def history_of(log: EventLog, execution_id: str, plan: Plan, load: Load) -> History:
    """The same as a whole."""
    found = [one async for one in recorded_in(log, execution_id, load)]
    return await off_loop(len(found) * EVENT, History, found, plan)


async def taken_over(
    history: History, choice: RunAgain, successor: Successor, load: Load
) -> TakenOver:
    """The kept state; bodies that reducers look into are loaded as they are asked for."""
    bodies: dict[str, Any] = {}
    while True:
        try:
            return take_over(history, choice, successor, bodies)
        except NeedsBody as need:
            bodies[need.reference.key] = await load(need.reference)


async def opened(
    workload: Mapping[str, Any], changes: Mapping[str, Any], load: Load
) -> dict[str, Any]:
    """The workload, with what is changed from within (`--set a.b=1`) at hand."""
    found = dict(workload)
    for key, value in changes.items():
        below = found.get(key)
        if isinstance(value, Mapping) and isinstance(below, Reference) and below.sealed is None:
            found[key] = await load(below)
    return found
