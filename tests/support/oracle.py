"""
The common oracle of fault tests: what every log and the ledger must show, whatever was disturbed.

It reads what the program shows (the API, or `noetl events` and `noetl replay --verify`), never
what lies behind it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from tests.support.fleet import Fleet
from tests.support.ledger import Effect
from tests.support.processes import Running

from noetl.client.client import Client

Event = dict[str, Any]
Logs = Mapping[str, list[Event]]
"""Execution → its events, each in its envelope."""

PAGE = 200
EFFECTFUL = ("http",)
"""Kinds whose tasks the ledger sees."""


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def logs_on(fleet: Fleet, execution_ids: Iterable[str]) -> Logs:
    """The logs of these executions, each of which proves itself (EVT-5)."""
    return {one: fleet.ask(partial(log_of, one)) for one in execution_ids}


def log_of(execution_id: str, client: Client) -> list[Event]:
    proof = client.verified(execution_id)
    assert proof.ok, f"{execution_id}: {proof.message}"
    return events_of(client, execution_id)


def events_of(client: Client, execution_id: str) -> list[Event]:
    events: list[Event] = []
    after = 0
    while True:
        page = client.events(execution_id, after=after, limit=PAGE)
        events += [msgspec.to_builtins(event) for event in page.events]
        after = page.after
        if not page.more:
            return events


def everything_on(fleet: Fleet) -> list[str]:
    """Every execution that the servers know, children included."""
    return fleet.ask(
        lambda client: [
            one.execution_id
            for page in client.pages(client.executions, limit=PAGE)
            for one in page.executions
        ]
    )


def logs_in(home: Path, execution_ids: Iterable[str]) -> Logs:
    """The same for a home on this machine."""
    found = {}
    for number, one in enumerate(execution_ids):
        proof = Running(home, "replay", one, "--verify", name=f"proof-{number}")
        assert proof.ended() == 0, proof.out + proof.err
        shown = Running(home, "events", one, "--json", name=f"events-{number}")
        assert shown.ended() == 0, shown.err
        found[one] = [json.loads(line) for line in shown.out.splitlines()]
    return found


# ── judging ──────────────────────────────────────────────────────────────────────────────────


def judge(logs: Logs, effects: Iterable[Effect] = ()) -> None:
    """One end, one accepted outcome, one owner, no gap, and an effect for each outcome."""
    seen = set(effects)
    for execution_id, events in logs.items():
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1)), execution_id
        ends = [event for event in events if event["name"] == "workflow.finished"]
        assert len(ends) == 1, f"{execution_id} ended {len(ends)} times"
        assert twice(outcomes_in(events)) == {}, f"{execution_id}: accepted twice"
        assert twice(owners_in(events)) == {}, f"{execution_id}: two owners at one epoch"
        missing = accepted_in(execution_id, events) - seen
        assert missing == set(), f"{execution_id}: recorded, never done"


def judge_fleet(fleet: Fleet, effects: Iterable[Effect] = ()) -> Logs:
    """The oracle over everything that a fleet has run."""
    logs = logs_on(fleet, everything_on(fleet))
    judge(logs, effects)
    return logs


def twice(things: Iterable[Any]) -> dict[Any, int]:
    return {thing: times for thing, times in Counter(things).items() if times > 1}


def outcomes_in(events: list[Event]) -> list[tuple[str, int]]:
    """Task run and attempt of every recorded outcome."""
    return [
        (event["task_run_id"], event["data"].get("attempt", 1))
        for event in events
        if event["name"] == "task.done"
    ]


def owners_in(events: list[Event]) -> list[tuple[str, int, int]]:
    return [
        (event["step_run_id"], event["data"].get("part", 0), event["data"]["epoch"])
        for event in events
        if event["name"] == "token.claimed"
    ]


def accepted_in(execution_id: str, events: list[Event]) -> set[Effect]:
    """What was recorded, as the ledger names it."""
    kinds = {
        event["task_run_id"]: event["data"]["kind"]
        for event in events
        if event["name"] == "task.started"
    }
    return {
        (f"{execution_id}-{task}", attempt)
        for task, attempt in outcomes_in(events)
        if kinds.get(task) in EFFECTFUL
    }


def losses_in(events: list[Event]) -> list[Event]:
    """Leases that ran out, whether or not they count as the loss of a worker."""
    return [
        event
        for event in events
        if event["name"] == "lease.expired" and not event["data"].get("returned", False)
    ]


def losses(logs: Logs) -> int:
    return sum(len(losses_in(events)) for events in logs.values())


def lost_workers(logs: Logs) -> Counter[str]:
    """
    Execution → leases that count as the loss of a worker. A grant that never arrived does not:
    whether one was on its way when a line broke, or a worker died, is chance (WRK-1).
    """
    return Counter(
        execution_id
        for execution_id, events in logs.items()
        for event in losses_in(events)
        if not event["data"].get("uncounted", False)
    )


def end_of(events: list[Event]) -> tuple[str, str | None]:
    """Status, and the kind of the error."""
    (end,) = [event["data"] for event in events if event["name"] == "workflow.finished"]
    return end["status"], (end.get("error") or {}).get("kind")


def ends(logs: Logs) -> Counter[tuple[str, str | None]]:
    return Counter(end_of(events) for events in logs.values())


def tasks_per_worker(events: list[Event], name: str) -> Counter[str]:
    """Events of a name, by the worker that held their part when they were reported."""
    holder: dict[tuple[str, int], str] = {}
    found: Counter[str] = Counter()
    for event in events:
        part = (event["step_run_id"], event["data"].get("part", 0))
        if event["name"] == "token.claimed":
            holder[part] = event["data"]["worker"]
        if event["name"] == name:
            found[holder[part]] += 1
    return found
