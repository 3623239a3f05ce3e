"""Where did two executions part? Task by task, with what a restart took over (RST)."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec

from noetl.control.forgetting import History, choose, kept_of, wanted
from noetl.messages import events as e
from noetl.messages.codec import encode_shown
from noetl.messages.places import place_of
from noetl.messages.reference import Reference

MOST = 1000
"""Differences that are told; the rest are counted."""
SHOWN = 200
"""Characters of a result that are shown."""

Read = Callable[[str], Awaitable[History]]
"""The whole log of an execution."""


class TaskSide(msgspec.Struct, frozen=True, kw_only=True):
    """What a task came to in one of both executions."""

    execution_id: str
    """Where it ran: of what a restart took over, the execution before."""
    status: str
    """`ok`, `error`, or `failed` where that failed its pipeline (TASK-2)."""
    attempts: int
    result: str | None = None
    """The beginning of its result as JSON, or where it lies."""
    error: dict[str, Any] | None = None


class TaskDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A task that came to something else, or ran in one execution only."""

    step: str
    run: int
    """Which run of the step, from 1."""
    task: str
    place: str
    """Iteration and number of the task within the run, as its id has them (EVT-0)."""
    within: str = ""
    """The step with its iteration, as `noetl restart --from` takes it."""
    left: TaskSide | None
    right: TaskSide | None


class Differences(msgspec.Struct, frozen=True, kw_only=True):
    """Two executions compared."""

    left: str
    right: str
    same: int
    """Tasks that came to the same in both."""
    parted: int
    """Tasks that did not."""
    differences: list[TaskDifference]
    """Runs of steps in the order of the first execution, iterations by number; a thousand."""


Place = tuple[str, int, str, str]
Told = tuple[TaskSide, Any]
"""A side, and what decides whether two are equal."""


async def differences_of(left: str, right: str, read: Read) -> Differences:
    one, other = await tasks_of(left, read), await tasks_of(right, read)
    found: list[TaskDifference] = []
    same = parted = 0
    for place in in_order([*one, *other]):
        first, second = one.get(place), other.get(place)
        if first is not None and second is not None and first[1] == second[1]:
            same += 1
            continue
        parted += 1
        if len(found) < MOST:
            step, run, spot, task = place
            sides = (None if side is None else side[0] for side in (first, second))
            found.append(
                TaskDifference(
                    step=step,
                    run=run,
                    task=task,
                    place=spot,
                    within=place_of(step, f"0.{spot}"),
                    left=next(sides),
                    right=next(sides),
                )
            )
    return Differences(left=left, right=right, same=same, parted=parted, differences=found)


def in_order(places: list[Place]) -> list[Place]:
    """Runs of steps as they began, and iterations by their number: a parallel loop ends anyhow."""
    begun = {run: number for number, run in enumerate(dict.fromkeys(p[:2] for p in places))}

    def key(place: Place) -> tuple[int, list[tuple[int, str]]]:
        numbers = [(int(one.partition("r")[0]), one) for one in place[2].split(".")]
        return begun[place[:2]], numbers

    return sorted(dict.fromkeys(places), key=key)


class Runs:
    """Which run of its step is it? Ids differ between logs; the order of runs does not."""

    def __init__(self) -> None:
        self.numbers: dict[str, tuple[str, int]] = {}
        self._counts: dict[str, int] = {}

    def see(self, event: e.Event) -> None:
        if isinstance(event, e.StepScheduled):
            self._counts[event.step] = self._counts.get(event.step, 0) + 1
            self.numbers[event.step_run_id] = (event.step, self._counts[event.step])

    def after(self, events: Iterator[e.Event]) -> "Runs":
        """Those of a restart: what goes on there is known under a new id."""
        later = Runs()
        later._counts = self._counts
        for event in events:
            if isinstance(event, e.StepRestored) and event.origin_run_id in self.numbers:
                later.numbers[event.step_run_id] = self.numbers[event.origin_run_id]
        return later


async def tasks_of(execution_id: str, read: Read) -> dict[Place, Told]:
    """Every task with its last attempt, in order; a restart's begin with what it took over."""
    tasks: dict[Place, Told] = {}
    runs = Runs()
    for name, chosen in await chain_of(execution_id, read):
        history = await read(name)
        runs = runs.after(one.event for one in history.events)
        events = iter(history.events)
        if chosen is not None:
            events = kept_of(history, choose(history, map(wanted, chosen)))
        for _, _, event in events:
            runs.see(event)
            if isinstance(event, e.TaskDone) and event.step_run_id in runs.numbers:
                step, number = runs.numbers[event.step_run_id]
                spot = event.task_run_id.partition(".")[2]
                tasks[step, number, spot, event.task] = side_of(name, event)
    return tasks


async def chain_of(execution_id: str, read: Read) -> list[tuple[str, list[str] | None]]:
    """
    The executions that led to one, the first of all first, each with what the restart of it ran
    again. Their logs are not kept: there may be thousands of restarts in a row.
    """
    chain: list[tuple[str, list[str] | None]] = [(execution_id, None)]
    while True:
        requested = (await read(chain[-1][0])).events[0].event
        if not isinstance(requested, e.ExecutionRequested) or not requested.origin_execution_id:
            return chain[::-1]
        chain.append((requested.origin_execution_id, requested.chosen))


def side_of(execution_id: str, event: e.TaskDone) -> Told:
    outcome = event.outcome
    result, error = outcome.get("result"), event.error or outcome.get("error")
    side = TaskSide(
        execution_id=execution_id,
        status="failed" if event.do == "fail" else outcome["status"],
        attempts=event.attempt,
        result=None if result is None else encode_shown(result).decode()[:SHOWN],
        error=error,
    )
    return side, (outcome["status"], event.do, plain(result), error)


def plain(value: Any) -> Any:
    """Equal for equal bodies, wherever they lie."""
    if isinstance(value, Reference):
        return value.checksum or value.key
    if isinstance(value, dict):
        return {key: plain(below) for key, below in value.items()}
    return [plain(below) for below in value] if isinstance(value, list) else value
