"""
Starts what is to start when another execution ends (START-6).

OnEnd are read from the table of executions by their time, from a place that is kept in the database
and moves on only behind what was dealt with: a crash loses none. Times of several servers are not
in the order of their commits, so the last SETTLES seconds are read again and again; that an end is
seen twice starts nothing twice, for the key is its execution (START-2).
"""

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from noetl.errors import HomeInUse, LimitReached, NoetlError, VersionConflict
from noetl.messages.envelope import timestamp
from noetl.messages.globs import matches
from noetl.node.triggers import PASSING, TriggerStarts
from noetl.playbook.triggers import OnEnd, Trigger
from noetl.ports.triggers import EndedExecution, Noted, TriggerRow

if TYPE_CHECKING:
    from noetl.node.control_plane import ControlPlane

LOOK: Final = 500
"""Milliseconds between two looks."""
SETTLES: Final = 240_000
"""
Milliseconds after which every end of a time is committed, or will never be: a store and a log that
are away are waited for three minutes in all, and clocks of servers may differ by one.
"""
AGAIN: Final = 10_000
"""Milliseconds between two looks at all of that; in between only at what is new."""
LAG: Final = 2_000
PAGE: Final = 500
PAGES: Final = 20
DEEPEST: Final = 10


class EndWatch:
    """Looks through ended executions for all triggers at once."""

    def __init__(self, plane: "ControlPlane", starts: TriggerStarts) -> None:
        self._plane = plane
        self._table = plane.storage.triggers
        self._starts = starts
        self._seen = self._whole = self.looked = 0
        self._done: dict[tuple[str, str], int] = {}
        """Trigger and execution that were dealt with here → when it ended."""

    async def look(self, row: TriggerRow, now: int) -> None:
        """One turn, by whichever server has taken the row."""
        if now - self.looked < LOOK:  # while very many triggers are due
            await self._table.settle(row, row)
            return
        self.looked = now
        waiting = await self._waiting()
        if not waiting:
            await self._table.settle(row, replace(row, due_at=None))
            return
        assert row.planned_at is not None, "the watch has a place"
        whole = now - self._whole >= AGAIN or self._seen < row.planned_at
        since = row.planned_at if whole else max(row.planned_at, self._seen - LAG)
        until = await self._scan(since, waiting, now)
        self._seen = until
        if whole:
            self._whole = now
        place = max(row.planned_at, min(until, now - SETTLES)) if whole else row.planned_at
        self._done = {one: ended for one, ended in self._done.items() if ended >= place}
        await self._table.settle(row, replace(row, planned_at=place))

    async def _waiting(self) -> list[tuple[TriggerRow, Trigger]]:
        found: list[tuple[TriggerRow, Trigger]] = []
        after: str | None = None
        while rows := await self._table.page(kind="execution", after=after, limit=PAGE):
            for row in rows:
                if not row.paused and (trigger := await self._starts.readable(row)) is not None:
                    found.append((row, trigger))
            after = rows[-1].path
        return found

    async def _scan(self, since: int, waiting: list[tuple[TriggerRow, Trigger]], now: int) -> int:
        """Deal with what ended from a time on; the time up to which all of it was."""
        after = ""
        for _ in range(PAGES):
            page = await self._table.ended(since, after=after, limit=PAGE)
            for ended in page:
                for row, trigger in waiting:
                    if self._matches(row, trigger, ended):
                        await self._start(trigger, ended)
                since, after = ended.finished_at, ended.execution_id
            if len(page) < PAGE:
                return now
        return since

    def _matches(self, row: TriggerRow, trigger: Trigger, ended: EndedExecution) -> bool:
        on = trigger.on
        return (
            isinstance(on, OnEnd)
            and ended.finished_at >= row.since
            and ended.status in on.status
            and matches(ended.path, on.path)
            and (row.path, ended.execution_id) not in self._done
        )

    async def _start(self, trigger: Trigger, ended: EndedExecution) -> None:
        try:
            depth = await self._depth(ended.execution_id) + 1
            if depth > DEEPEST:
                why = f"{ended.execution_id} was the last of {DEEPEST} that ends started in a row"
                noted = Noted(at=ended.finished_at, why=why)
            else:
                begun = await self._starts.start(
                    trigger,
                    ended.execution_id,
                    at=ended.finished_at,
                    data=await self._data(ended),
                    depth=depth,
                )
                noted = Noted(at=ended.finished_at, execution_id=begun.execution_id)
        except PASSING:
            raise
        except LimitReached as full:  # tried again, by any server, until all ends are settled
            noted = Noted(at=ended.finished_at, why=f"{ended.execution_id}: {full}")
            self._starts.note(trigger.path, noted)
            return
        except (VersionConflict, HomeInUse):
            return  # another server had a hand in it: the next look finds what it came to
        except NoetlError as why_not:
            noted = Noted(at=ended.finished_at, why=f"{ended.execution_id}: {why_not}")
        except Exception as fault:  # promise 7: the others are not held up, and it comes again
            why = f"{ended.execution_id}: a bug in NoETL: {type(fault).__name__}: {fault}"
            self._starts.note(trigger.path, Noted(at=ended.finished_at, why=why))
            return
        self._done[trigger.path, ended.execution_id] = ended.finished_at
        self._starts.note(trigger.path, noted)

    async def _depth(self, execution_id: str) -> int:
        """How many ends in a row led to it; a child stands where its parent does."""
        row = await self._plane.row(execution_id)
        while row.parent_execution_id is not None:
            row = await self._plane.row(row.parent_execution_id)
        return (await self._plane.library.origin(row.execution_id)).depth

    async def _data(self, ended: EndedExecution) -> dict[str, object]:
        row = await self._plane.row(ended.execution_id)
        return {
            "execution_id": row.execution_id,
            "path": row.path,
            "version": row.version,
            "status": row.status,
            "error": row.error,
            "started_at": timestamp(row.started_at),
            "finished_at": timestamp(ended.finished_at),
        }
