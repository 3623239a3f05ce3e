"""What may be asked of a control plane: by the routes of a server, and by commands on a home."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import msgspec

from noetl.api import types as t
from noetl.api.paging import cursor_of, page_of, place_in
from noetl.api.registers import RegisterQuestions
from noetl.api.rows import entry_of, view_of
from noetl.api.selecting import PAGE, RowFilter
from noetl.control.approvals import approvals
from noetl.control.forgetting import History
from noetl.errors import NoetlError, PlaybookNotFound, PlaybookRejected
from noetl.messages.codec import recorded_mappings
from noetl.messages.envelope import timestamp
from noetl.messages.events import Event
from noetl.messages.filtering import wanted
from noetl.node.control_plane import ControlPlane
from noetl.node.gathering import Gathered
from noetl.node.trigger_trials import (
    Tried,
    passed,
    planned_in,
    problem_of,
    timezone_of,
    try_out,
    upcoming,
)
from noetl.node.triggers import key_of
from noetl.playbook.triggers import Trigger
from noetl.ports.event_log import ExecutionRow
from noetl.ports.storage import Storage
from noetl.ports.triggers import TriggerRow
from noetl.server.finding import Version, find_entry
from noetl.server.holders import is_left
from noetl.server.labels import PlaybookLabels
from noetl.server.origins import history_of, recorded_in
from noetl.server.replay import enveloped, replay
from noetl.server.triggering import find_row, find_trigger, shown, why_refused
from noetl.server.verify import Verified, verify
from noetl.server.views.differences import Differences, differences_of
from noetl.server.views.explanation import Explanation, explanation_of
from noetl.server.views.standing import (
    Listed,
    Standing,
    line_of,
    listed_of,
    standing_of,
)
from noetl.server.views.state import state_of
from noetl.server.waiting import waits_of

LOOKED = 20
"""Pages that are looked through for what waits for people before an empty answer."""
FARTHEST = 1_000_000
"""Printed lines that can be paged to."""
SCANNED_EVENTS = 5000
"""Events that one page looks at for a glob; a page may be short of its limit for that."""
ROWS = 100
MOST_EXPLAINED = 32
"""Executions that have ended whose explanation is kept: it takes a walk through the log."""


class PlaneLogs:
    """The logs of a plane, as those who compare executions read them."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    async def events(self, execution_id: str) -> AsyncIterator[Event]:
        """See `Logs`; raises ExecutionNotFound, RestartRefused where nothing of it began."""
        await self._plane.row(execution_id)
        log, load = self._plane.storage.log, self._plane.bodies.load
        async for one in recorded_in(log, execution_id, load):
            yield one.event

    async def history(self, execution_id: str) -> History:
        _, plan = await self._plane.state(execution_id)
        log, load = self._plane.storage.log, self._plane.bodies.load
        return await history_of(log, execution_id, plan, load)


class PlaneQuestions(RegisterQuestions):
    """Read alone; `client.asks` has the same questions for a server, with the same answers."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.storage = plane.storage
        self.labels = PlaybookLabels(plane.storage.playbooks)
        # Many pages may follow one execution, and ask after it at the same event.
        self._state = Gathered(plane.state)
        self.standing = Gathered(self._standing)
        self.explanation = Gathered(self._explanation)
        self._explained: dict[str, tuple[int, Explanation]] = {}
        self._comparing = asyncio.Lock()

    # ── executions ───────────────────────────────────────────────────────────────────────────

    async def executions(
        self,
        *,
        status: str | None = None,
        path: str | None = None,
        parent: str | None = None,
        since: int | None = None,
        until: int | None = None,
        prefix: str | None = None,
        key: str | None = None,
        text: str | None = None,
        label: str | None = None,
        cursor: str | None = None,
        limit: int = PAGE,
    ) -> t.ExecutionPage:
        """
        The newest first. `path` may be a glob, `text` a part of path, id or error, and `label` one
        of the playbook (NAME=VALUE); then a page may be short.

        `prefix` is what their ids begin with, `key` what one was started with: each is asked
        alone, and has one page.
        """
        if prefix is not None or key is not None:
            begun = await self._named(prefix, key, limit)
            return t.ExecutionPage(executions=await self.listed(begun), next=None)
        asked: dict[str, Any] = {
            "status": status,
            "parent": parent,
            "since": since,
            "until": until,
        }
        before, wanted = place_in(cursor, str), RowFilter(self.labels, path, text, label)
        if wanted.narrows:
            rows, next = await wanted.page(self.storage.executions, before, limit, asked)
        else:
            page = self.storage.executions.page
            found = await page(path=path, before=before, limit=limit + 1, **asked)
            rows, next = page_of(found, limit, lambda row: row.execution_id)
        return t.ExecutionPage(executions=await self.listed(rows), next=next)

    async def _named(
        self, prefix: str | None, key: str | None, limit: int
    ) -> Sequence[ExecutionRow]:
        if key is None:
            return await self.storage.executions.starting(prefix or "", limit=limit)
        holder = await self.storage.keys.find(key)
        row = None if holder is None else await self.storage.executions.find(holder)
        return [] if row is None else [row]

    async def listed(self, rows: Sequence[ExecutionRow]) -> list[Listed]:
        """Whether one is interrupted is asked once for each owner, not for each execution."""
        alive: dict[str | None, bool] = {}
        listed = []
        for row in rows:
            if row.finished_at is None and row.owner not in alive:
                holder = await self.storage.owners.holder(row.execution_id)
                alive[row.owner] = holder is not None
            interrupted = is_left(row) and not alive[row.owner]
            listed.append(listed_of(row, interrupted=interrupted))
        return listed

    async def _standing(self, execution_id: str) -> Standing:
        row = await self.plane.row(execution_id)
        return await standing_of(self.storage, row, *await self._state(execution_id))

    async def waiting(self, *, cursor: str | None = None, limit: int = PAGE) -> t.WaitingPage:
        """
        WAIT-7: what waits for people, in the next `limit` executions whose row says that they wait
        for some, or behind them where none does any more.
        """
        waiting: list[t.PersonAwaited] = []
        next: str | None = cursor
        for _ in range(LOOKED):
            before = place_in(next, str)
            found = await self.storage.executions.asking(before=before, limit=limit + 1)
            rows, next = page_of(found, limit, lambda row: row.execution_id)
            for row in rows:
                waiting += await awaited_in(self.plane, row)
            if waiting or next is None:
                break
        return t.WaitingPage(waiting=waiting, next=next)

    async def _explanation(self, execution_id: str) -> Explanation:
        row = await self.plane.row(execution_id)
        known = self._explained.get(execution_id)
        if known is not None and known[0] == row.seq:
            return known[1]
        made = await explanation_of(self.storage, row, *await self._state(execution_id))
        if row.finished_at is not None:  # then nothing of it changes any more
            if len(self._explained) >= MOST_EXPLAINED:
                self._explained.pop(next(iter(self._explained)))
            self._explained[execution_id] = (row.seq, made)
        return made

    async def state(self, execution_id: str, *, seq: int | None = None) -> t.ExecutionState:
        """What the log alone comes to, without a snapshot (EVT-5); with `seq`, after that event."""
        _, plan = await self.plane.state(execution_id)
        load = self.plane.bodies.load
        log = self.storage.log
        execution, _ = await replay(log, execution_id, plan, load, from_snapshot=False, until=seq)
        return t.ExecutionState(**state_of(execution))

    async def verified(self, execution_id: str) -> Verified:
        await self.plane.row(execution_id)
        storage = self.storage
        return await verify(storage.log, storage.playbooks, self.plane.results, execution_id)

    async def differences(self, left: str, right: str) -> Differences:
        """Where two executions parted, task by task; one question at a time has them in memory."""
        async with self._comparing:
            return await differences_of(left, right, PlaneLogs(self.plane))

    async def events(
        self,
        execution_id: str,
        *,
        after: int = 0,
        name: str | None = None,
        about: str | None = None,
        limit: int = SCANNED_EVENTS,
    ) -> t.EventPage:
        """Events in order, starting after `after`; `about` is a run, a task run or an iteration."""
        await self.plane.row(execution_id)
        named, concerns = wanted(name), belonging(about)

        def is_wanted(event: dict[str, Any]) -> bool:
            return named(event) and concerns(event)

        trace = await self.trace(execution_id)
        found: list[t.EventView] = []
        seen, end = after, after + SCANNED_EVENTS
        while True:
            rows = await self.storage.log.read(execution_id, after=seen, limit=ROWS)
            for row in rows:
                for event in enveloped(row, execution_id, trace, seen):
                    seen = event["seq"]
                    if is_wanted(event):
                        found.append(t.EventView(**event))
                    if len(found) == limit or seen >= end:
                        more = seen < row.last or row is not rows[-1] or len(rows) == ROWS
                        return t.EventPage(events=found, after=seen, more=more)
            if len(rows) < ROWS:
                return t.EventPage(events=found, after=seen, more=False)

    async def trace(self, execution_id: str) -> str | None:
        """EVT-1: the trace stands in the first event, and in the envelope of all."""
        rows = await self.storage.log.read(execution_id, limit=1)
        first = recorded_mappings(execution_id, 1, rows[0].events)[0] if rows else {}
        trace: str | None = first.get("trace_id")
        return trace

    async def lines(
        self,
        execution_id: str,
        *,
        step: str | None = None,
        cursor: str | None = None,
        limit: int = FARTHEST,
    ) -> t.LinePage:
        """The output of the tasks."""
        await self.plane.row(execution_id)
        first = min(max(place_in(cursor, int) or 0, 0), FARTHEST)
        read, last = self.storage.printed.read, first + limit
        rows = await read(execution_id, step=step, skip=first, limit=limit + 1)
        lines = [line_of(line) for line in rows[:limit]]
        next = cursor_of(last) if len(rows) > limit and last < FARTHEST else None
        return t.LinePage(lines=lines, next=next)

    # ── the catalog ──────────────────────────────────────────────────────────────────────────

    async def catalog(
        self, *, kind: str | None = None, cursor: str | None = None, limit: int = PAGE
    ) -> t.EntryPage:
        """The newest version of every path; of one kind of document, a page may be short."""
        after = place_in(cursor, str)
        rows = await self.storage.catalog.page(after=after, limit=limit + 1)
        entries, next = page_of(rows, limit, lambda entry: entry.path)
        if kind is not None:  # triggers are in the catalog too, by the same order
            among = await self.storage.triggers.page(after=after, limit=limit)
            paths = {row.path for row in among}
            entries = [one for one in entries if (one.path in paths) == (kind == "trigger")]
        return t.EntryPage(entries=[entry_of(one) for one in entries], next=next)

    async def versions(
        self, path: str, *, cursor: str | None = None, limit: int = PAGE
    ) -> t.EntryPage:
        """Every version of one playbook, the newest first."""
        before = place_in(cursor, int)
        rows = await self.storage.catalog.versions(path, before=before, limit=limit + 1)
        if not rows and before is None:
            raise missing(path, None)
        entries, next = page_of(rows, limit, lambda entry: entry.version)
        return t.EntryPage(entries=[entry_of(one) for one in entries], next=next)

    async def playbook(self, path: str, *, version: Version = None) -> t.EntryText:
        """One version of a playbook with its text; without `version` the newest."""
        found = await find_entry(self.storage.catalog, path, version)
        if found is None:
            raise missing(path, version)
        kept = await self.storage.playbooks.text(found.digest)
        if kept is None:
            raise PlaybookNotFound(f"the text of '{found.playbook_id}' is not kept any more")
        original = await self.storage.catalog.original(found.playbook_id)
        migrated = found.original_digest is not None
        return view_of(t.EntryText, found, text=kept[0], original=original, migrated=migrated)

    async def credentials(
        self, *, cursor: str | None = None, limit: int = PAGE
    ) -> t.CredentialPage:
        """Registered credentials by name, without values."""
        after = place_in(cursor, str) or ""
        kept = await self.plane.keychain.opened.store.all()
        rows, next = page_of([row for row in kept if row.name > after], limit, lambda row: row.name)
        return t.CredentialPage(credentials=[view_of(t.Credential, row) for row in rows], next=next)

    # ── triggers ─────────────────────────────────────────────────────────────────────────────

    async def triggers(
        self, *, kind: str | None = None, cursor: str | None = None, limit: int = PAGE
    ) -> t.TriggerPage:
        """All triggers, or those of a kind, by path."""
        after = place_in(cursor, str)
        found = await self.storage.triggers.page(kind=kind, after=after, limit=limit + 1)
        rows, next = page_of(found, limit, lambda row: row.path)
        views = [
            view_of(t.TriggerView, shown(row), timezone=await timezone_in(self.storage, row))
            for row in rows
        ]
        return t.TriggerPage(triggers=views, next=next)

    async def trigger(self, path: str, *, count: int = 5) -> t.TriggerDetail:
        """One trigger with its next planned times."""
        try:
            row, trigger = await find_trigger(self.storage, path)
        except PlaybookRejected as refused:  # by this release; an older one took it
            return view_of(
                t.TriggerDetail,
                shown(await find_row(self.storage, path)),
                name=path,
                playbook="",
                playbook_version=None,
                upcoming=[],
                problem=why_refused(refused),
                unproved=0,
            )
        return view_of(
            t.TriggerDetail,
            row,
            name=trigger.name,
            playbook=trigger.playbook,
            playbook_version=trigger.version,
            timezone=timezone_of(trigger),
            on=msgspec.to_builtins(trigger.on),
            payload=trigger.payload,
            upcoming=upcoming(row, trigger, count),
            problem=await problem_of(self.plane, trigger) or passed(row, trigger),
            unproved=self.plane.unproved[path],
            unproved_why=self.plane.unproved_why.get(path),
        )

    async def trial(
        self,
        path: str,
        *,
        at: str | None = None,
        data: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> t.Trial:
        """What a trigger would start; nothing is."""
        _, trigger = await find_trigger(self.storage, path)
        tried = await try_out(self.plane, trigger, Tried(at, data, dict(headers or {})))
        return view_of(t.Trial, tried)


async def planned_times(
    storage: Storage, trigger: Trigger, begin: str, end: str
) -> list[t.BackfillTime]:
    """The planned times of a range, those that were started before with their execution."""
    found = []
    # In a thread: times that are years apart take half a second to find.
    for at in map(timestamp, await asyncio.to_thread(planned_in, trigger, begin, end)):
        held = await storage.keys.find(key_of(trigger.path, at))
        found.append(t.BackfillTime(at=at, execution_id=held, before=held is not None))
    return found


async def timezone_in(storage: Storage, row: TriggerRow) -> str | None:
    """Of a schedule; one text that cannot be read hides no other (promise 7)."""
    if row.kind != "schedule":
        return None
    try:
        return timezone_of((await find_trigger(storage, row.path))[1])
    except NoetlError:
        return None


def missing(path: str, version: Version) -> PlaybookNotFound:
    which = "" if version is None else f", version {version},"
    return PlaybookNotFound(f"no playbook '{path}'{which} in the catalog")


def belonging(about: str | None) -> Callable[[dict[str, Any]], bool]:
    """Whether an event is about this, or what is below it: `4.1.2` is a task of `4.1` (EVT-0)."""
    if about is None:
        return lambda _: True
    below = (f"{about}.", f"{about}r")  # an iteration that is run again has an `r` and a number

    def belongs(event: dict[str, Any]) -> bool:
        entity = str(event["entity_id"])
        return entity == about or entity.startswith(below)

    return belongs


async def awaited_in(plane: ControlPlane, row: ExecutionRow) -> list[t.PersonAwaited]:
    if not (await plane.library.plan_by(row.digest)).waits:
        return []  # its log need not be read
    execution, plan = await plane.state(row.execution_id)
    if not approvals(execution):
        return []
    return [
        t.PersonAwaited(execution_id=row.execution_id, path=row.path, wait=wait)
        for wait in waits_of(execution, plan)
        if wait.title is not None
    ]
