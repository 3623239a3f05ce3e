"""Restarts: new executions that take over the recorded state of an old one (RST)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from noetl.control.answered import Changes, asked_again, has_answers, is_answer
from noetl.control.forgetting import History, RunAgain, choose, described, kept_of, wanted
from noetl.control.restarting import Successor
from noetl.control.restoring import onto_old
from noetl.errors import PlaybookNotFound, RestartRefused
from noetl.messages.codec import recorded_events
from noetl.messages.events import TaskDone
from noetl.node.children import task_of
from noetl.playbook.plan import Plan
from noetl.playbook.yaml_text import read_yaml
from noetl.ports.event_log import ExecutionRow
from noetl.ports.large import read_off_loop
from noetl.server.active import ActiveExecution
from noetl.server.finding import Version
from noetl.server.ids import new_execution_id
from noetl.server.origins import history_of, opened, taken_over
from noetl.server.replay import rows_of

if TYPE_CHECKING:
    from noetl.node.control_plane import ControlPlane


class Followed(msgspec.Struct, frozen=True):
    """The playbook that a restart follows."""

    plan: Plan
    version: str | None
    folder: str | None


class RestartPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a restart would forget and run again, and what it would take over."""

    chosen: list[str]
    """As `noetl restart --from` takes them."""
    steps: list[str]
    """Of which runs, or iterations, are forgotten: what was chosen and what came of it."""
    iterations: int
    """Of loops, among what was chosen."""
    tasks: int
    """Recorded tasks that are forgotten."""
    kept: int
    """Recorded tasks that are taken over and not run again."""


class Restarts:
    """Begins restarts; the old execution stays as it is."""

    def __init__(self, plane: "ControlPlane") -> None:
        self._plane = plane

    async def restart(
        self,
        origin: str,
        *,
        chosen: Sequence[str] = (),
        version: Version = None,
        payload: dict[str, Any] | None = None,
        key: str | None = None,
        sender: str = "",
    ) -> ExecutionRow:
        """
        At a server: the answer comes after the commit; one key restarts once. `chosen` are texts
        as `wanted` reads them, none of them means what failed. Raises RestartRefused.
        """
        plane = self._plane
        followed = await self.followed(origin, version)
        asked = ["restart", origin, sorted(chosen), followed.plan.digest, payload or {}]
        execution_id, found = await plane.playbooks.claimed(asked, key)
        if found is not None:
            return found
        request = await self.request(origin, followed, execution_id, chosen, payload or {})
        request["sender"] = sender
        active = await plane.start(followed.plan, execution_id=execution_id, **request)
        if active is None:
            return await plane.row(execution_id)
        return plane.server.appender.row(active, active.started_at)

    async def plan(self, origin: str, chosen: Sequence[str] = ()) -> RestartPlan:
        """What a restart would do; nothing is begun. Raises RestartRefused."""
        plane = self._plane
        row = await plane.row(origin)
        if row.finished_at is None:
            raise RestartRefused(f"execution {origin} has not ended ({row.status})")
        plan = await plane.library.plan_by((await plane.library.origin(origin)).digest)
        history = await history_of(plane.storage.log, origin, plan, plane.bodies.load)
        choice = choose(history, [wanted(text) for text in chosen])
        return planned(history, choice)

    async def begin(
        self,
        origin: str,
        *,
        chosen: Sequence[str] = (),
        version: Version = None,
        payload: dict[str, Any] | None = None,
        followed: Followed | None = None,
    ) -> ActiveExecution:
        """In this process; `followed` is a file's."""
        followed = followed or await self.followed(origin, version)
        execution_id = new_execution_id()
        request = await self.request(origin, followed, execution_id, chosen, payload or {})
        if followed.plan.limit is not None:
            limited = self._plane.limited
            request |= await limited.asked(followed.plan, execution_id, request)
        return self._plane.begin(followed.plan, execution_id=execution_id, **request)

    async def followed(self, origin: str, version: Version) -> Followed:
        """The text that the old execution began with, or another version of it."""
        plane = self._plane
        row = await plane.row(origin)
        if version is not None:
            entry = await plane.playbooks.entry(None, row.path, version)
            return Followed(await plane.library.plan_by(entry.digest), str(entry.version), None)
        began = await plane.library.origin(origin)
        return Followed(await plane.library.plan_by(began.digest), began.version, began.folder)

    async def request(
        self,
        origin: str,
        followed: Followed,
        execution_id: str,
        chosen: Sequence[str],
        payload: dict[str, Any],
    ) -> dict[str, Any]:
        """What the start of a restart carries; bodies of its own are stored when it returns."""
        plane = self._plane
        row = await plane.row(origin)
        if row.finished_at is None:
            raise RestartRefused(
                f"execution {origin} has not ended ({row.status}); `noetl resume {origin}` goes on "
                f"with one that was paused or interrupted, `noetl cancel {origin}` ends it"
            )
        load = plane.bodies.load
        old = await plane.library.plan_by((await plane.library.origin(origin)).digest)
        history = await history_of(plane.storage.log, origin, old, load)
        choice = choose(history, [wanted(text) for text in chosen])
        workload = await opened(history.workload, payload, load)
        anew = onto_old(workload, payload) != workload
        choice = await self._asked_again(origin, history, choice, followed.plan, anew=anew)
        successor = Successor(execution_id, followed.plan, plane.results.name)
        kept = await taken_over(history, choice, successor, load)
        for body in kept.bodies.values():
            await plane.results.put(execution_id, body)
        await plane.row(origin)  # what was removed while it was read may have been read in part
        return {
            "payload": payload,
            "version": followed.version,
            "folder": followed.folder,
            "origin_execution_id": origin,
            "origin_seq": history.events[-1].seq,
            "chosen": described(history, choice),
            "kept": msgspec.structs.replace(kept.state, workload=workload),
        }

    async def _asked_again(
        self, origin: str, history: History, choice: RunAgain, plan: Plan, *, anew: bool
    ) -> RunAgain:
        """RST-5: the choice, with what was answered to something else than the restart has."""
        below = frozenset(await self._answered_below(origin))
        if not has_answers(history, below):
            return choice
        old, new = [await self._document(one.digest) for one in (history.plan, plan)]
        return asked_again(history, choice, Changes(old, new, workload=anew, below=below))

    async def _document(self, digest: str) -> Mapping[str, Any]:
        """As its author wrote it; empty, and so like no other, where the text is not kept."""
        try:
            text, _ = await self._plane.library.text_of(digest)
        except PlaybookNotFound:
            return {}
        tree = await read_off_loop(len(text), read_yaml, text)
        return cast("Mapping[str, Any]", tree.value(tree.root))

    async def _answered_below(self, execution_id: str) -> set[str]:
        """Task runs of playbooks in which, or below which, somebody answered."""
        found: set[str] = set()
        for child in await self._plane.storage.executions.children(execution_id):
            task = task_of(child.execution_id, execution_id)
            if task is not None and task not in found and await self._answered(child):
                found.add(task)
        return found

    async def _answered(self, row: ExecutionRow) -> bool:
        plane, child = self._plane, row.execution_id
        plan = await plane.library.plan_by(row.digest)
        if plan.waits:
            async for one in rows_of(plane.storage.log, child):
                events = recorded_events(child, one.first, one.events)
                if any(is_answer(event, ()) for event in events):
                    return True
        return bool(await self._answered_below(child))


def planned(history: History, choice: RunAgain) -> RestartPlan:
    kept = {one.seq for one in kept_of(history, choice) if isinstance(one.event, TaskDone)}
    ended = [(one.seq, one.event) for one in history.events if isinstance(one.event, TaskDone)]
    forgotten = [event.step_run_id for seq, event in ended if seq not in kept]
    runs = {**choice.runs, **dict.fromkeys(forgotten)}
    return RestartPlan(
        chosen=[wish_for(history, run, indexes) for run, indexes in choice.runs.items()],
        steps=list(dict.fromkeys(history.runs[run].step for run in sorted(runs, key=begun_as))),
        iterations=sum(len(indexes) for indexes in choice.runs.values() if indexes is not None),
        tasks=len(forgotten),
        kept=len(kept),
    )


def wish_for(history: History, run_id: str, indexes: frozenset[int] | None) -> str:
    """As `wanted` reads it: the last run of a step needs no number."""
    step = history.runs[run_id].step
    last = [run.run_id for run in history.runs.values() if run.step == step][-1]
    run = "" if run_id == last else f"@{begun_as(run_id)}"
    return f"{step}{run}" + ("" if indexes is None else f":{','.join(map(str, sorted(indexes)))}")


def begun_as(run_id: str) -> int:
    """The number of a step run: they are counted as they begin (EVT-0)."""
    return int(run_id.partition(".")[0])
