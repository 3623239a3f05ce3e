"""Which playbook, and which execution, does a request mean?"""

import asyncio
import hashlib
import time
from typing import TYPE_CHECKING, Any

from noetl.errors import KeyReused, NoetlError, PlaybookNotFound, ServerRefused
from noetl.messages.outcome import make_error
from noetl.playbook import stand_in
from noetl.ports.catalog import CatalogEntry, parts_of
from noetl.ports.event_log import ExecutionRow
from noetl.ports.large import encoded, off_loop
from noetl.server.finding import Version, find_entry, near_path
from noetl.server.ids import new_execution_id

if TYPE_CHECKING:
    from noetl.node.control_plane import ControlPlane
    from noetl.ports.storage import Storage

NEWEST = 0.25
"""Seconds for which a server remembers which version of a playbook is the newest."""

MOST_ENTRIES = 10_000

OF_TRIGGERS = "trigger/"
"""How keys of their starts begin: whoever chose one could keep a start away (START-2)."""

Wanted = tuple[str, Version]


class PlaybookFinder:
    """Registers playbooks and finds them again; many that ask at once ask the database once."""

    def __init__(self, storage: "Storage", *, shared: bool) -> None:
        self._storage = storage
        self._shared = shared
        self._entries: dict[Wanted, tuple[CatalogEntry, float]] = {}
        self._finding: dict[Wanted, tuple[asyncio.Future[CatalogEntry | None], float]] = {}

    async def register(
        self, text: str, *, original: str | None = None
    ) -> tuple[CatalogEntry, bool]:
        """A new version of a playbook, unless the newest is this text; raises PlaybookRejected."""
        from noetl.server.registering import registered

        entry, fresh = await registered(self._storage, text, original=original)
        self._entries.pop((entry.path, None), None)
        if self._shared:
            await asyncio.sleep(NEWEST)  # from now on no server takes an older one for the newest
        return entry, fresh

    async def remove(self, path: str, version: Version = None) -> list[CatalogEntry]:
        """Take a version out of the catalog, or all of a path; see `unlist`."""
        from noetl.server.unlisting import unlist  # with triggers, and all time zones

        gone = await unlist(self._storage, path, version)
        self._entries.clear()
        if self._shared:
            await asyncio.sleep(NEWEST)  # from now on no server starts it
        return gone

    async def entry(
        self, playbook_id: str | None, path: str | None, version: Version
    ) -> CatalogEntry:
        if playbook_id is not None:
            parts = parts_of(playbook_id)
            entry = None if parts is None else await self._found(*parts)
            if entry is not None and entry.playbook_id != playbook_id:
                entry = None  # a text that is called like this number
            wanted = playbook_id
        elif path is not None:
            entry = await self._found(path, version)
            wanted = path if version is None else f"{path}, version {version}"
        else:
            raise ServerRefused("name a playbook by `path` or `playbook_id`", code="invalid")
        if entry is None:
            near = "" if path is None else await near_path(self._storage.catalog, path)
            remedy = near or "; register it with `noetl register FILE`"
            raise PlaybookNotFound(f"the catalog has no playbook '{wanted}'{remedy}")
        return entry

    async def _found(self, path: str, version: Version) -> CatalogEntry | None:
        """What a version is, or which is the newest, is known for a moment."""
        kept = self._entries.get((path, version))
        now = time.monotonic()
        if kept is not None and kept[1] > now:
            return kept[0]
        if (path, version) not in self._finding:  # of many that ask at once one asks the database
            asking = asyncio.ensure_future(find_entry(self._storage.catalog, path, version))
            self._finding[path, version] = (asking, now)
            asking.add_done_callback(lambda _: self._finding.pop((path, version), None))
        finding, began = self._finding[path, version]
        entry = await asyncio.shield(finding)
        if entry is not None:
            if len(self._entries) > MOST_ENTRIES:
                self._entries.clear()
            self._entries[path, version] = (entry, began + NEWEST)
        return entry

    async def claimed(
        self, asked: Any, key: str | None, *, triggered: bool = False
    ) -> tuple[str, ExecutionRow | None]:
        """The id for what is asked, and the execution where its key came before."""
        if key is not None and key.startswith(OF_TRIGGERS) and not triggered:
            raise ServerRefused(
                f"no idempotency key begins with '{OF_TRIGGERS}' but those of triggers",
                code="invalid",
                status=422,
            )
        execution_id = new_execution_id()
        if key is None:
            return execution_id, None
        text = await encoded(asked)
        fingerprint = (await off_loop(len(text), hashlib.sha256, text)).hexdigest()
        holder = await self._storage.keys.claim(key, fingerprint, execution_id)
        if holder.fingerprint != fingerprint:
            raise KeyReused("this idempotency key came before, with another request")
        if holder.fresh:
            return execution_id, None
        found = await self._storage.executions.find(holder.execution_id)
        if found is None and await self._storage.removals.is_removed(holder.execution_id):
            raise ServerRefused(  # else it would be begun again, under its old id (KEEP-1)
                f"the execution of this idempotency key, {holder.execution_id}, was removed",
                code="gone",
                status=410,
            )
        return holder.execution_id, found


async def record_refusal(
    plane: "ControlPlane", path: str, version: str | None, wrong: NoetlError, **request: Any
) -> str:
    """SRV-2: the execution that failed before it began; lists show it with the reason."""
    kind = "not_found" if isinstance(wrong, PlaybookNotFound) else "input"
    execution_id = new_execution_id()
    await plane.start(
        await plane.library.plan_of(stand_in.TEXT, None),
        execution_id=execution_id,
        path=path,
        version=version,
        refused=make_error(kind, f"the request was refused: {wrong}"),
        **request,
    )
    return execution_id
