"""One execution in this process, from its start to its end, or until somebody interrupts it."""

import asyncio
import gc
import signal
from collections.abc import Awaitable, Callable, Coroutine
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from noetl.cli import exits
from noetl.cli.background.signals import stop_on_signals, unless
from noetl.cli.running.held import HeldBack, held_here
from noetl.cli.running.show import Show
from noetl.errors import LogUnavailable, NoetlError
from noetl.messages.places import place_of
from noetl.node.local import LocalNode
from noetl.server.active import ActiveExecution
from noetl.server.report import ExecutionReport, report_of
from noetl.settings import Settings
from noetl.tools.environment import withdraw

if TYPE_CHECKING:
    from noetl.server.views.explanation import Explanation

T = TypeVar("T")
Begin = Callable[[LocalNode], Awaitable[ActiveExecution]]
GARBAGE = (20_000, 5, 200)
"""
A run makes many small values and hardly a cycle: look for cycles less often, but never through so
many young values at once that everybody waits for it.
"""


READ_AT_ONCE = 20_000
"""Events of a log that are read to say more about a failure; of a longer one `explain` does."""


class Attended(msgspec.Struct, frozen=True):
    """How it went. `report` is None where the execution was interrupted before its end."""

    execution_id: str | None
    """None where it was interrupted before anything was begun, as far as is known."""
    report: ExecutionReport | None
    explanation: "Explanation | None" = None
    """Of one that failed or went on after errors; of a log that is not too long to be read."""


def attend(settings: Settings, begin: Begin, show: Show, *, brief: bool) -> Attended:
    """Open the home, begin, show what happens, wait for the end, leave in good order."""
    settle_garbage()
    # Else asyncio sets a handler of its own, which `_attend` replaces.
    signal.signal(signal.SIGINT, interrupt)
    run = asyncio.run if brief else runner()
    return run(_attend(settings, begin, show))


def interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def runner() -> Callable[[Coroutine[Any, Any, T]], T]:
    """The event loop that is quicker once it is there, where the system has it (decision 0071)."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


def settle_garbage() -> None:
    """What is imported stays; cycles are looked for less often."""
    gc.freeze()
    gc.set_threshold(*GARBAGE)


async def _attend(settings: Settings, begin: Begin, show: Show) -> Attended:
    interrupted = stop_on_signals(code=exits.INTERRUPTED)
    stopping: asyncio.Future[Any] = asyncio.ensure_future(interrupted.wait())
    withdraw(mask_all=True)  # whichever command it is: from here on its process runs tasks
    local = await unless(interrupted, LocalNode.open(settings))
    if local is None:
        return Attended(None, None)
    held = watched(local, show)
    try:
        active = await unless(interrupted, begin(local))
        if active is None:
            return Attended(None, None)
        if not active.finished.done():  # of one that has ended only the result is shown
            show.begin(active.execution)
            if active.plan.limited and active.execution.status == "queued":
                held.look(active.execution_id)  # it was queued before this process took it up
        while going := [one.finished for one in local.server.owned if not one.finished.done()]:
            if interrupted.is_set():
                break
            # Children that nobody waits for are among them (TOOL-1).
            await asyncio.wait((stopping, *going), return_when=asyncio.FIRST_COMPLETED)
        if active.finished.done() and active.finished.exception() is None:
            await local.clean_up(active)
        return await attended(local, active)
    finally:
        held.end()
        show.end()
        await local.close()


def watched(local: LocalNode, show: Show) -> HeldBack:
    """Show what this process decides, what its tasks print, and who holds it back."""
    local.server.watchers.append(lambda active, events: show.take(active.execution, events))
    local.overheard.listeners.append(
        lambda line: show.hear(line.execution_id, place_of(line.step, line.task_run_id), line.text)
    )
    return held_here(local, show)


async def attended(local: LocalNode, active: ActiveExecution) -> Attended:
    execution_id = active.execution.execution_id
    if not active.finished.done():
        return Attended(execution_id, None)
    try:
        active.finished.result()
    except (NoetlError, OSError) as wrong:  # the log or a result could not be written
        on = f"noetl resume {execution_id}"
        said = str(wrong) if on in str(wrong) else f"{wrong}; then continue with: {on}"
        raise LogUnavailable(said) from wrong
    took = max(0, (active.ended_at or active.started_at) - active.started_at)
    report = await report_of(active.execution, local.results, took)
    explained = None
    if (report.status == "failed" or report.errors_passed) and active.execution.seq <= READ_AT_ONCE:
        from noetl.server.views.explanation import explanation_of  # only where something failed

        row = await local.row(execution_id)
        explained = await explanation_of(local.storage, row, active.execution, active.plan)
    return Attended(execution_id, report, explained)
