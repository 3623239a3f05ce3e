"""Routes of the catalog (register, list, read, check: SRV-1) and of outcomes that were kept."""

from pathlib import Path
from typing import Annotated, Any, Literal

from litestar import Response
from litestar.params import FromPath, JSONBody, QueryParameter

from noetl.api import types as t
from noetl.api.answers import answered, answered_aside
from noetl.api.context import USUAL, ApiContext, Asking, Cursor, Limit, tell_about
from noetl.api.questions import missing
from noetl.api.refusals import told_of
from noetl.api.rows import entry_of
from noetl.api.texts import refuse_large, text_in
from noetl.errors import PlaybookRejected
from noetl.playbook.dialects.migrate import migrate as migrated_from
from noetl.playbook.finding import Finding
from noetl.playbook.schema import json_schema, trigger_schema
from noetl.ports.cache import CacheFilter
from noetl.ports.large import DRAFTS, read_off_loop
from noetl.server.finding import find_entry
from noetl.server.registering import examined
from noetl.server.views.outline import Outline, outline_of
from noetl.tools.plugins import KnownKinds

Migrate = Annotated[
    bool, QueryParameter(name="migrate", description="Translate an older dialect first.")
]
Version = Annotated[
    str | None,
    QueryParameter(max_length=500, description="A number, or what `metadata.version` says."),
]

Documents = Annotated[
    Literal["playbook", "trigger"] | None,
    QueryParameter(description="Playbooks or triggers alone; a page may then be short."),
]
Named = Annotated[str | None, QueryParameter(max_length=1000)]
Kind = Annotated[Literal["playbook", "trigger"], QueryParameter(description="Of which document.")]


class CatalogRoutes:
    """Answers for the catalog."""

    def __init__(self, context: ApiContext) -> None:
        self._plane = context.plane
        self._questions = context.questions
        self._schema: dict[str, Any] | None = None

    async def register(self, request: Asking, older: Migrate = False) -> Response[t.RegisterAnswer]:
        """Register a playbook: the next version of its path, unless its text is the newest."""
        asked = await text_in(request, t.RegisterRequest, migrate=older)
        given = refuse_large(asked.text)
        text, original, findings = await self._ready(given, migrate=asked.migrate)
        entry, fresh = await self._plane.register(text, original=original)
        tell_about(entry.playbook_id)
        shown, more = told_of(findings)
        told = t.RegisterAnswer(entry=entry_of(entry), fresh=fresh, findings=shown, more=more)
        return answered(told, status=201 if fresh else 200)

    async def _ready(self, text: str, *, migrate: bool) -> tuple[str, str | None, list[Finding]]:
        """The text to register, the one it was made of, and its warnings."""
        if migrate:
            made = await read_off_loop(len(text), migrated_from, text, KnownKinds())
            if not made.complete:
                raise PlaybookRejected(made.findings)
            return made.text, text if made.changed else None, list(made.findings)
        found = await examined(self._plane.storage, text)
        if found.playbook is None and found.trigger is None:
            raise PlaybookRejected(found.findings)
        return text, None, list(found.findings)

    async def page(
        self, kind: Documents = None, cursor: Cursor = None, limit: Limit = USUAL
    ) -> Response[t.EntryPage]:
        """The newest version of every playbook and trigger, by path."""
        return await answered_aside(
            await self._questions.catalog(kind=kind, cursor=cursor, limit=limit)
        )

    async def versions(
        self, path: FromPath[Path], cursor: Cursor = None, limit: Limit = USUAL
    ) -> Response[t.EntryPage]:
        """Every version of one playbook, the newest first."""
        name = path_in(path)
        return await answered_aside(
            await self._questions.versions(name, cursor=cursor, limit=limit)
        )

    async def entry(self, path: FromPath[Path], version: Version = None) -> Response[t.EntryText]:
        """One version of a playbook with its text; without `version` the newest."""
        return await answered_aside(await self._questions.playbook(path_in(path), version=version))

    async def remove(self, path: FromPath[Path], version: Version = None) -> None:
        """Take a version out of the catalog, or all; 409 while something needs it."""
        await self._plane.playbooks.remove(path_in(path), version)

    async def outline(self, path: FromPath[Path], version: Version = None) -> Response[Outline]:
        """The steps and arcs of one version, as they are drawn, and its workload."""
        found = await find_entry(self._plane.storage.catalog, path_in(path), version)
        if found is None:
            raise missing(path_in(path), version)
        return await answered_aside(await outline_of(self._plane.storage, found.digest))

    async def validate(self, request: Asking) -> Response[t.Validated]:
        """All findings of a playbook; nothing is registered."""
        asked = await text_in(request, t.ValidateRequest)
        text = refuse_large(asked.text)
        findings = (await examined(self._plane.storage, text, DRAFTS.read)).findings
        valid = all(finding.severity != "error" for finding in findings)
        shown, more = told_of(findings)
        return await answered_aside(t.Validated(valid=valid, findings=shown, more=more))

    async def schema(self, kind: Kind = "playbook") -> Response[dict[str, Any]]:
        """The JSON Schema of playbooks or triggers, for editors (VAL-4)."""
        if kind == "trigger":
            return answered(trigger_schema(), fixed=True)
        if self._schema is None:
            usable = {name: kind for name, kind in KnownKinds().items() if kind.fault is None}
            self._schema = json_schema(usable)
        return answered(self._schema, fixed=True)


class CacheRoutes:
    """Answers for outcomes that tasks of playbooks have kept (CACHE-1)."""

    def __init__(self, context: ApiContext) -> None:
        self._entries = context.plane.storage.cache
        self._questions = context.questions

    async def page(
        self, path: Named = None, task: Named = None, key: Named = None, limit: Limit = USUAL
    ) -> Response[t.CachePage]:
        """Outcomes that are kept, the latest first, without the outcomes themselves."""
        return await answered_aside(
            await self._questions.cache(path=path, task=task, key=key, limit=limit)
        )

    async def clear(self, data: JSONBody[t.CacheClearRequest]) -> Response[t.CacheCleared]:
        """Remove kept outcomes: the tasks run again."""
        wanted = CacheFilter(path=data.path, task=data.task, key=data.key)
        tell_about(" ".join(filter(None, (data.path, data.task, data.key))) or "all")
        return await answered_aside(t.CacheCleared(removed=await self._entries.clear(wanted)))


def path_in(path: Path) -> str:
    """The path of a playbook as the catalog has it: the router puts a slash in front."""
    return str(path).lstrip("/")
