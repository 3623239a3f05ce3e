"""What a worker tells of its parts: one by one, or all that a turn brought of a run together."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from noetl.messages.events import Event
from noetl.messages.requests import Report
from noetl.ports.session import PartLost, Session, Taken, refused_writes

if TYPE_CHECKING:
    from noetl.worker.part import PartWork


class Turn:
    """The parts that have something to tell in this turn of the event loop (decision 0077)."""

    def __init__(self) -> None:
        self._parts: dict[PartWork, None] = {}

    def report_soon(self, part: "PartWork") -> None:
        """Report with whatever else of the same run ends in this turn."""
        if not self._parts:
            asyncio.get_running_loop().call_soon(self._report)
        self._parts[part] = None

    def _report(self) -> None:
        parts, self._parts = list(self._parts), {}
        runs: dict[tuple[str, str], list[tuple[PartWork, list[Event]]]] = {}
        for part in parts:
            with suppress(PartLost):
                events = part.unreported()
                if events:
                    run = (part.command.execution_id, part.command.step_run_id)
                    runs.setdefault(run, []).append((part, events))
        for (execution_id, _), told in runs.items():
            reports = [report_of(part, events) for part, events in told]
            session = told[0][0].worker.session
            taken = session.report_turn(execution_id, reports)
            for (part, events), verdict in zip(told, taken, strict=True):
                with suppress(PartLost):
                    count(part, events, verdict)
                    follow(part, verdict)


def one_by_one(session: Session, execution_id: str, reports: list[Report]) -> list[Taken]:
    """`Session.report_turn` of one that has no shorter way."""
    return [session.report(execution_id, report) for report in reports]


def report_of(part: "PartWork", events: list[Event]) -> Report:
    command = part.command
    return Report(
        step_run_id=command.step_run_id,
        part=command.part,
        epoch=command.epoch,
        worker=part.worker.name,
        events=events,
        after=part.reported,
    )


def send(part: "PartWork", events: list[Event]) -> Taken:
    """Report these events; raises PartLost."""
    taken = part.worker.session.report(part.command.execution_id, report_of(part, events))
    count(part, events, taken)
    return taken


def count(part: "PartWork", events: Sequence[Event], taken: Taken) -> None:
    part.reported += len(events)
    if taken.events == []:
        raise PartLost(part.command.step_run_id)


def follow(part: "PartWork", taken: Taken) -> None:
    """Remember what a report waits for, and which of its writes did not stand (LOOP-5)."""
    part.committed, part.unsure = taken.committed, taken.events is None
    if part.asks:
        note_refused(part, taken.events or ())
        if not taken.committed.done():
            taken.committed.add_done_callback(lambda commit: note_refused(part, commit.refused))


def note_refused(part: "PartWork", recorded: Sequence[Event]) -> None:
    for event in refused_writes(recorded):
        part.refused[event.task_run_id] = event
