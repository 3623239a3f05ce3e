"""Routes of triggers: list, look at, try out, pause, backfill (START)."""

from pathlib import Path
from typing import Annotated

from litestar import Response
from litestar.params import FromPath, JSONBody, QueryParameter

from noetl.api import types as t
from noetl.api.answers import answered_aside
from noetl.api.catalog import path_in
from noetl.api.context import USUAL, ApiContext, Cursor, Limit
from noetl.api.questions import planned_times, timezone_in
from noetl.api.rows import view_of
from noetl.node.trigger_trials import backfill, moment_in, timezone_of
from noetl.playbook.triggers import Trigger
from noetl.ports.triggers import TriggerRow
from noetl.server.triggering import find_trigger, pause, remove, resume

Count = Annotated[int, QueryParameter(ge=0, le=100, description="Planned times to show.")]
Kind = Annotated[str | None, QueryParameter(max_length=20)]


class TriggersRoutes:
    """Answers for triggers."""

    def __init__(self, context: ApiContext) -> None:
        self._plane = context.plane
        self._questions = context.questions

    async def page(
        self, kind: Kind = None, cursor: Cursor = None, limit: Limit = USUAL
    ) -> Response[t.TriggerPage]:
        """All triggers by path, with their state."""
        return await answered_aside(
            await self._questions.triggers(kind=kind, cursor=cursor, limit=limit)
        )

    async def detail(self, path: FromPath[Path], count: Count = 5) -> Response[t.TriggerDetail]:
        """One trigger with its next planned times."""
        return await answered_aside(await self._questions.trigger(path_in(path), count=count))

    async def trial(
        self, path: FromPath[Path], data: JSONBody[t.TrialRequest | None] = None
    ) -> Response[t.Trial]:
        """What it would start, with which payload; nothing is started."""
        given = data or t.TrialRequest()
        tried = self._questions.trial(
            path_in(path), at=given.at, data=given.data, headers=given.headers
        )
        return await answered_aside(await tried)

    async def pause(self, path: FromPath[Path]) -> Response[t.TriggerView]:
        """Let it start nothing until it is resumed."""
        return await self._shown(await pause(self._plane.storage, path_in(path)))

    async def resume(self, path: FromPath[Path]) -> Response[t.TriggerView]:
        """Let it start again, from now on."""
        return await self._shown(await resume(self._plane.storage, path_in(path)))

    async def _shown(self, row: TriggerRow) -> Response[t.TriggerView]:
        timezone = await timezone_in(self._plane.storage, row)
        return await answered_aside(view_of(t.TriggerView, row, timezone=timezone))

    async def remove(self, path: FromPath[Path]) -> None:
        """Let it start nothing any more; the catalog keeps its text."""
        await remove(self._plane.storage, path_in(path))

    async def backfill(
        self, path: FromPath[Path], data: JSONBody[t.BackfillRequest]
    ) -> Response[t.Backfill]:
        """The planned times of a range; each is started once, unless it is a dry run."""
        _, trigger = await find_trigger(self._plane.storage, path_in(path))
        found = await planned_times(self._plane.storage, trigger, data.begin, data.end)
        if not data.dry_run:
            found = [one if one.before else await self._filled(trigger, one) for one in found]
        return await answered_aside(
            t.Backfill(times=found, dry_run=data.dry_run, timezone=timezone_of(trigger))
        )

    async def _filled(self, trigger: Trigger, one: t.BackfillTime) -> t.BackfillTime:
        started, error = await backfill(self._plane.starts, trigger, moment_in(one.at))
        return t.BackfillTime(at=one.at, execution_id=started, error=error or None)
