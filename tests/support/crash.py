"""
Crashes at every point: the log is cut after each event, and a new process goes on from there.

A cut keeps the first n events of what a whole run wrote; every prefix that ends within a worker's
report is what the log would hold had the report been sent in two parts.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from tests.support.scenario import Scenario

from noetl.control.ending import result_of
from noetl.control.evolve import evolve
from noetl.control.execution import Execution
from noetl.messages import events as e
from noetl.messages.codec import decode_events, encode_events
from noetl.messages.names import REPORTED
from noetl.ports.event_log import ExecutionRow, LogRow
from noetl.tools.tool import ToolCall


class Cut(msgspec.Struct, kw_only=True):
    """What came of an execution that was taken up again after `where`."""

    where: str
    status: str
    ctx: dict[str, Any]
    result: Any
    events: list[e.Event]
    outcomes: list[tuple[str, int]]
    """Task run and attempt of every recorded outcome, in order."""
    calls: list[ToolCall[Any]]
    """Of both processes."""
    twice: int
    """Calls that the second process made though the first had made them."""


def crash_everywhere(make: Callable[[], Scenario]) -> Iterator[Cut]:
    """Cut the log of a whole run after every event that a report may end with."""
    first = make().run()
    for count, event in enumerate(first.events, 1):
        following = first.events[count : count + 1]
        if not may_be_last(event, following) or not still_open(make(), first.events[:count]):
            continue
        yield go_on(make(), first.events[:count], first.calls)


def may_be_last(event: e.Event, following: list[e.Event]) -> bool:
    """Whether a decision may end here: after a worker's event, or before one."""
    ends = isinstance(event, REPORTED) and not isinstance(event, e.StepDone | e.StepFailed)
    if isinstance(event, e.TaskDone) and event.set_ctx:  # its patch belongs to it
        return not (following and isinstance(following[0], e.CtxPatched))
    if isinstance(event, e.LoopDone) and event.parent_id is None:
        return False
    if isinstance(event, e.LoopStarted) and event.parent_id is None:
        return False
    if isinstance(event, e.IterationDone | e.IterationFailed) and event.parent_id is None:
        return bool(following) and isinstance(following[0], REPORTED)
    return ends or isinstance(event, e.CtxPatched | e.TokenEnqueued | e.TokenClaimed)


def still_open(made: Scenario, events: list[e.Event]) -> bool:
    """Whether somebody has a part to run: other prefixes end in the middle of a decision."""
    state = Execution(execution_id="x1")
    for event in events:
        evolve(state, event, made.plan)
    return not state.finished and any(run.parts for run in state.runs.values())


def go_on(made: Scenario, events: list[e.Event], before: list[ToolCall[Any]]) -> Cut:
    """A process that died after these events, and the next one."""
    lay_down(made, events)
    done = Counter(outcomes_in(events))
    calls = before[: done.total()]
    for label in {call.label for call in calls}:
        given = made.tools.answers.get(label, [])
        del given[: min(len(given) - 1, sum(call.label == label for call in calls))]

    async def whole() -> Execution:
        local = made.local("2")
        try:
            active = await local.resume("x1")
            await active.finished
            return active.execution
        finally:
            await local.close()

    state = asyncio.run(whole())
    written = [
        event for row in made.home.tables.decisions["x1"] for event in decode_events(row.events)
    ]
    again = Counter((call.task_run_id, call.attempt) for call in made.tools.calls)
    return Cut(
        where=f"after {len(events)}: {events[-1]}",
        status=state.status,
        ctx=state.ctx,
        result=result_of(state.leaves),
        events=written,
        outcomes=outcomes_in(written),
        calls=calls + made.tools.calls,
        twice=sum((again & done).values()),
    )


def outcomes_in(events: list[e.Event]) -> list[tuple[str, int]]:
    """Task run and attempt of every recorded outcome, in order."""
    return [(event.task_run_id, event.attempt) for event in events if isinstance(event, e.TaskDone)]


def lay_down(made: Scenario, events: list[e.Event]) -> None:
    """Put a log into the scenario's home, as one that a dead process wrote."""
    tables = made.home.tables
    plan = made.plan
    tables.playbooks[plan.digest] = (made.text, None)
    tables.decisions["x1"] = [LogRow(1, len(events), 1, encode_events(events))]
    tables.rows["x1"] = ExecutionRow(
        execution_id="x1",
        path=plan.path,
        digest=plan.digest,
        status="running",
        started_at=1,
        updated_at=1,
        owner="1",
        seq=len(events),
    )
    made.home.die()
