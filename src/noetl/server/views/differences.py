"""Where did two executions part? Task by task, with what a restart took over (RST)."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, Protocol

import msgspec

from noetl.control.forgetting import History, choose, kept_of, wanted
from noetl.messages import events as e
from noetl.messages.codec import encode_shown
from noetl.messages.places import place_of
from noetl.messages.reference import Reference
from noetl.ports.large import off_loop
from noetl.server.origins import EVENT

MOST = 1000
"""Differences that are told; the rest are counted."""
DIGEST = 32
SHOWN = 200
"""Characters of a result that are shown."""


class Logs(Protocol):
    """The logs of executions. One may have a million events: it is kept only where it must be."""

    def events(self, execution_id: str) -> AsyncIterator[e.Event]:
        """In order."""

    async def history(self, execution_id: str) -> History:
        """All of them at once."""


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


async def differences_of(left: str, right: str, logs: Logs) -> Differences:
    one, other = await tasks_of(left, logs), await tasks_of(right, logs)
    size = EVENT * (len(one) + len(other))
    return await off_loop(size, compared, left, right, one, other)


def compared(
    left: str, right: str, one: dict[Place, Told], other: dict[Place, Told]
) -> Differences:
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
        self._before: dict[str, tuple[str, int]] = {}

    def see(self, event: e.Event) -> None:
        self.restore(event)
        if isinstance(event, e.StepScheduled):
            self._counts[event.step] = self._counts.get(event.step, 0) + 1
            self.numbers[event.step_run_id] = (event.step, self._counts[event.step])

    def restore(self, event: e.Event) -> None:
        if isinstance(event, e.StepRestored) and event.origin_run_id in self._before:
            self.numbers[event.step_run_id] = self._before[event.origin_run_id]

    def after(self) -> "Runs":
        """Those of a restart: what goes on there is known under a new id."""
        later = Runs()
        later._counts, later._before = self._counts, self.numbers
        return later


class Tasks:
    """Every task with its last attempt, in order; a restart's begin with what it took over."""

    def __init__(self) -> None:
        self.told: dict[Place, Told] = {}
        self._runs = Runs()

    def begin(self) -> None:
        """The log of the next restart."""
        self._runs = self._runs.after()

    def see(self, execution_id: str, event: e.Event) -> None:
        runs = self._runs
        runs.see(event)
        if isinstance(event, e.TaskDone) and event.step_run_id in runs.numbers:
            step, number = runs.numbers[event.step_run_id]
            spot = event.task_run_id.partition(".")[2]
            self.told[step, number, spot, event.task] = side_of(execution_id, event)

    def see_kept(self, execution_id: str, history: History, chosen: list[str]) -> None:
        """What a restart that ran so much again took over."""
        for one in history.events:
            self._runs.restore(one.event)
        for one in kept_of(history, choose(history, map(wanted, chosen))):
            self.see(execution_id, one.event)


async def tasks_of(execution_id: str, logs: Logs) -> dict[Place, Told]:
    tasks = Tasks()
    for name, chosen in await chain_of(execution_id, logs):
        tasks.begin()
        if chosen is None:
            async for event in logs.events(name):
                tasks.see(name, event)
        else:
            history = await logs.history(name)
            size = EVENT * len(history.events)
            await off_loop(size, tasks.see_kept, name, history, chosen)
    return tasks.told


async def chain_of(execution_id: str, logs: Logs) -> list[tuple[str, list[str] | None]]:
    """
    The executions that led to one, the first of all first, each with what the restart of it ran
    again. Their logs are not kept: there may be thousands of restarts in a row.
    """
    chain: list[tuple[str, list[str] | None]] = [(execution_id, None)]
    while True:
        async with aclosing(logs.events(chain[-1][0])) as events:  # type: ignore[type-var]
            requested = await anext(events)
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
    return side, (outcome["status"], event.do, told_apart(result), told_apart(error))


def told_apart(value: Any) -> bytes:
    """Equal for equal values. Of a large one its digest: there may be a million of them."""
    text = msgspec.json.encode(plain(value), order="deterministic")
    return text if len(text) <= DIGEST else hashlib.sha256(text).digest()


def plain(value: Any) -> Any:
    """Equal for equal bodies, wherever they lie."""
    if isinstance(value, Reference):
        return value.checksum or value.key
    if isinstance(value, dict):
        return {key: plain(below) for key, below in value.items()}
    return [plain(below) for below in value] if isinstance(value, list) else value
