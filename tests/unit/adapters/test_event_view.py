"""The view `event` and the envelope that readers make say the same of every event (EVT-1)."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.contracts.homes import SqliteHomes, decision

from noetl.messages.envelope import envelope, fields_of, status_of, timestamp
from noetl.messages.names import NAMES

RUN = {"step": "fetch", "step_run_id": "4.1"}
EVENTS: list[dict[str, Any]] = [
    {"name": "playbook.execution.requested", "path": "p", "digest": "d", "parent_id": "9.1"},
    {"name": "workflow.started", "step": "start"},
    {"name": "token.created", "token_id": "3.1", "step": "fetch", "source": "start", "args": {}},
    {"name": "policy.admit.evaluated", "token_id": "3.1", "step": "fetch", "allow": True},
    {"name": "policy.admit.evaluated", "token_id": "3.1", "step": "fetch", "allow": False},
    {"name": "step.scheduled", **RUN, "tokens": ["3.1"], "args": None},
    {"name": "task.started", **RUN, "task_run_id": "6.1", "task": "t", "kind": "http"},
    {"name": "task.done", **RUN, "task_run_id": "6.1", "outcome": {"status": "ok", "result": [1]}},
    {"name": "task.done", **RUN, "task_run_id": "6.1", "outcome": {"status": "error"}},
    {"name": "task.done", **RUN, "task_run_id": "6.2", "parent_id": "8.1", "outcome": {}},
    {"name": "ctx.patched", "patch": {"a": {"b": [1, 2.5, None, True, "Grüße 🎈"]}}},
    {"name": "loop.iteration.done", **RUN, "index": 0, "iteration_id": "7.1", "result": 2**60},
    {"name": "step.failed", **RUN, "error": {"kind": "http", "message": 'says "no"'}},
    {"name": "next.fired", **RUN, "arc": 0, "to": "end", "token_id": "12.1"},
    {"name": "workflow.finished", "status": "completed"},
    {"name": "workflow.finished", "status": "failed", "error": {"kind": "http"}},
    {"name": "playbook.processed", "status": "cancelled"},
    {"name": "something.of.later", "step": "x"},
    {"name": "task.done", **RUN, "task_run_id": "6.1.2", "outcome": {"status": "ok"}, "do": "fail"},
    {"name": "task.suspended", **RUN, "task_run_id": "6.1.1r2.3", "reason": "retry", "attempt": 2},
    {"name": "loop.started", **RUN, "total": 1, "mode": "parallel"},
    {"name": "loop.started", **RUN, "total": 1, "mode": "parallel", "parent_id": "6.1"},
    {"name": "loop.iteration.started", **RUN, "index": 0, "iteration_id": "4.1"},
    {"name": "loop.iteration.started", **RUN, "iteration_id": "6.1.1", "parent_id": "6.1"},
    {"name": "step.done", **RUN, "source": "server"},
    {"name": "loop.done", **RUN, "source": "server", "total": 1},
    {"name": "next.evaluated", **RUN, "error": {"kind": "template", "message": "no"}},
    {"name": "playbook.request.evaluated", "error": None},
    {"name": "token.dropped", "token_id": "3.1", "step": "s", "reason": "limit", "error": {}},
    {"name": "token.created", "token_id": "3.1", "step": "s", "parent_step_run_id": "4.0"},
    {"name": "lease.expired", **RUN, "epoch": 1},
    {"name": "lease.expired", **RUN, "epoch": 1, "returned": True},
    {"name": "lease.expired", **RUN, "epoch": 1, "uncounted": True},
    {"name": "token.enqueued", **RUN, "leg": 2, "first": 20, "last": 40},
    {"name": "token.claimed", **RUN, "leg": 2, "worker": "w", "epoch": 1},
]


async def seen(
    homes: SqliteHomes, groups: list[list[dict[str, Any]]], at: int
) -> list[dict[str, Any]]:
    """What the view shows of an execution with these events, some to a decision."""
    home = await homes.open()
    stands_at = 0
    for group in groups:
        events = msgspec.json.encode(group)
        last = stands_at + len(group)
        await home.log.append(decision("e1", stands_at, last, events=events, at=at + stands_at))
        stands_at = last
    rows = home.writer.connection.execute("select * from event order by seq")
    names = [column[0] for column in rows.get_description()]
    found = [dict(zip(names, row, strict=True)) for row in rows.fetchall()]
    return [row | {"data": msgspec.json.decode(str(row["data"]))} for row in found]


@pytest.mark.rule("EVT-1")
@pytest.mark.parametrize("trace_id", [None, "t-1"])
@pytest.mark.parametrize("at", [0, 1_700_000_000_007, 1_767_225_599_999])
async def test_view_and_envelope_agree(tmp_path: Path, trace_id: str | None, at: int) -> None:
    opening = EVENTS[0] | ({"trace_id": trace_id} if trace_id else {})
    homes = SqliteHomes(tmp_path)
    try:
        groups = [[opening, EVENTS[1]], EVENTS[2:5], EVENTS[5:]]
        found = await seen(homes, groups, at)
    finally:
        await homes.close_all()
    starts = [0, 0, 2, 2, 2, *[5] * (len(EVENTS) - 5)]
    assert found == [
        envelope(event, execution_id="e1", seq=n + 1, at=at + start, trace_id=trace_id)
        for n, (event, start) in enumerate(zip([opening, *EVENTS[1:]], starts, strict=True))
    ]
    assert list(found[0]) == [
        *("event_id", "seq", "execution_id", "timestamp", "source", "name", "entity", "entity_id"),
        *("status", "step", "step_run_id", "task_run_id", "trace_id", "parent_id", "data"),
    ]


@pytest.mark.rule("EVT-1", "EVT-2")
async def test_the_view_knows_every_name(tmp_path: Path) -> None:
    homes = SqliteHomes(tmp_path)
    try:
        found = await seen(homes, [[{"name": name} for name in NAMES]], 0)
    finally:
        await homes.close_all()
    told = {row["name"]: (row["source"], row["entity"], row["status"]) for row in found}
    assert told == {
        name: (about.source, about.entity, about.status) for name, about in NAMES.items()
    }


@pytest.mark.rule("EVT-1")
def test_an_envelope_in_full() -> None:
    event = EVENTS[8] | {"attempt": 2, "parent_id": "8.1"}
    assert envelope(event, execution_id="e1", seq=17, at=1_700_000_000_007, trace_id="t") == {
        "event_id": "e1.17",
        "seq": 17,
        "execution_id": "e1",
        "timestamp": "2023-11-14T22:13:20.007Z",
        "source": "worker",
        "name": "task.done",
        "entity": "task",
        "entity_id": "6.1",
        "status": "error",
        "step": "fetch",
        "step_run_id": "4.1",
        "task_run_id": "6.1",
        "trace_id": "t",
        "parent_id": "8.1",
        "data": {"outcome": {"status": "error"}, "attempt": 2, "do": "continue"},
    }


def test_readers_see_no_private_word() -> None:
    """The log keeps its key, so that releases read each other's (decision 0085)."""
    event = {"name": "token.enqueued", **RUN, "leg": 2, "first": 20, "last": 40}
    data = envelope(event, execution_id="e1", seq=1, at=0, trace_id=None)["data"]
    assert data == {"part": 2, "first": 20, "last": 40}
    kept = {"leg": 2, "first": 20, "last": 40}
    assert (fields_of(data), fields_of(kept)) == (kept, kept), "of a server of a release before too"


def test_fields_that_only_share_a_name_stay_in_the_event() -> None:
    token = envelope(EVENTS[2], execution_id="e1", seq=3, at=0, trace_id=None)
    assert (token["source"], token["data"]["source"]) == ("server", "start")
    end = envelope(EVENTS[15], execution_id="e1", seq=16, at=0, trace_id=None)
    assert (end["status"], end["data"]["status"]) == ("error", "failed")


@pytest.mark.parametrize(
    ("event", "status"),
    [(EVENTS[3], "success"), (EVENTS[4], "skipped"), (EVENTS[7], "success"), (EVENTS[8], "error")],
)
def test_the_fields_settle_the_status(event: dict[str, Any], status: str) -> None:
    assert status_of(event, NAMES[event["name"]].status) == status


@pytest.mark.parametrize(
    ("at", "text"),
    [(0, "1970-01-01T00:00:00.000Z"), (1_767_225_599_999, "2025-12-31T23:59:59.999Z")],
)
def test_timestamps(at: int, text: str) -> None:
    assert timestamp(at) == text
