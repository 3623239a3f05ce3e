"""The tests of a playbook: each is an execution in memory, compared with what it expects."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from noetl.messages.codec import decode_events
from noetl.messages.names import NAMES
from noetl.messages.names import canonical as canonical_event
from noetl.messages.words import error_text, value_text
from noetl.node.local import LocalNode
from noetl.node.testing.canned import CannedBox, faults_in, stranger
from noetl.node.testing.document import Case, Expected
from noetl.node.testing.verdict import CaseVerdict
from noetl.playbook.plan import Plan
from noetl.server.replay import rows_of
from noetl.server.report import ExecutionReport, report_of
from noetl.settings import Settings


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """The playbook that is tested, and within which bounds."""

    plan: Plan
    text: str
    folder: str | None = None
    settings: Settings
    real: Sequence[str] = ()
    """Kinds that run for real where a test has no outcome for them."""
    room: int | None = None
    """Characters of one value in what is said about it."""


async def tested_case(case: Case, tested: Tested) -> CaseVerdict:
    """One execution in memory, compared with what the test expects."""
    plan = tested.plan
    problems = faults_in(case.outcomes, plan)
    problems += [
        f"expect.steps names {stranger(name, plan.steps, 'step')}"
        for name in case.expect.steps
        if name not in plan.steps
    ]
    began = time.monotonic()
    if not problems:
        problems = await problems_of(case, tested)
    took = int((time.monotonic() - began) * 1000)
    return CaseVerdict(case.name, not problems, problems, took)


async def problems_of(case: Case, tested: Tested) -> list[str]:
    settings, room = tested.settings, tested.room
    box = CannedBox(case.outcomes, tested.real, settings.home, settings.bounds, room)
    local = LocalNode.in_memory(settings, box)
    local.worker.sleep = no_time
    local.worker.cans_waits = True
    try:
        active = await local.run_text(
            tested.text,
            folder=tested.folder,
            payload=case.workload,
            ctx=case.ctx,
            plan=tested.plan,
        )
        await active.finished
        execution_id = active.execution.execution_id
        names = [
            str(event.__struct_config__.tag)
            async for row in rows_of(local.storage.log, execution_id)
            for event in decode_events(row.events)
        ]
        report = await report_of(active.execution, local.results, 0)
        return [*box.missing, *differences(case.expect, report, names, room)]
    finally:
        await local.close()


async def no_time(seconds: float) -> None:
    """A pause of a pipeline passes at once."""
    del seconds


def differences(
    expected: Expected,
    report: ExecutionReport,
    events: Sequence[str],
    room: int | None = None,
) -> Iterator[str]:
    """All of them, in the order of the contract."""
    if report.status != expected.ends_as:
        why = f" ({error_text(report.error, room)})" if report.error else ""
        yield f"status: expected {expected.ends_as}, got {report.status}{why}"
    runs = {step["step"]: step["runs"] for step in report.steps}
    for step, number in expected.steps.items():
        if runs.get(step, 0) != number:
            yield f"steps.{step}: expected {number} runs, got {runs.get(step, 0)}"
    yield from parts("ctx", expected.ctx, report.ctx, room)
    if expected.result is not msgspec.UNSET and expected.result != report.result:
        wanted, found = shown(expected.result, room), shown(report.result, room)
        yield f"result: expected {wanted}, got {found}"
    yield from missing_event(expected.events, events)
    if expected.error is not None:
        yield from parts("error", expected.error, report.error, room)


def parts(path: str, expected: Any, found: Any, room: int | None) -> Iterator[str]:
    """Mappings may hold more than is expected; anything else must be equal."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            if key in found:
                yield from parts(f"{path}.{key}", value, found[key], room)
            else:
                yield f"{path}.{key}: expected {shown(value, room)}, got nothing"
    elif expected != found:
        yield f"{path}: expected {shown(expected, room)}, got {shown(found, room)}"


def missing_event(expected: Sequence[str], found: Sequence[str]) -> Iterator[str]:
    """The expected names must stand in the log in this order; others may stand between."""
    rest = iter(found)
    for number, name in enumerate(expected):
        if canonical_event(name) not in NAMES:
            yield f"events[{number}]: '{name}' is not an event name"
            return
        if canonical_event(name) not in rest:
            after = f" after {expected[number - 1]}" if number else ""
            yield f"events[{number}]: expected {name}{after}, and none came"
            return


def shown(value: Any, room: int | None) -> str:
    if not isinstance(value, str):
        return value_text(value, room)
    text = repr(value)  # spaces and ends of lines count
    return text if room is None or len(text) <= room else text[: room - 1] + "…"
