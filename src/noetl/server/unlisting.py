"""How versions leave the catalog, and what keeps them there (SRV-1)."""

from collections.abc import AsyncIterator, Sequence
from itertools import islice
from typing import Final

from noetl.errors import PlaybookNotFound, PlaybookRejected, ServerRefused, TriggerNotFound
from noetl.ports.catalog import CatalogEntry
from noetl.ports.storage import Storage
from noetl.ports.triggers import TriggerRow
from noetl.server.finding import Version, find_entry
from noetl.server.triggering import find_trigger

OPEN: Final = ("running", "paused", "queued")
PAGE: Final = 200
SHOWN: Final = 5
"""Executions that a refusal names."""


async def unlist(storage: Storage, path: str, version: Version = None) -> list[CatalogEntry]:
    """
    Take one version of a path away, or all; what ran them keeps their text.

    Raises PlaybookNotFound, or ServerRefused where an execution that has not ended runs one of
    them, or a trigger would find none to start.
    """
    kept = await all_versions(storage, path)
    entries = kept
    if version is not None:
        found = await find_entry(storage.catalog, path, version)
        entries = [] if found is None else [found]
    if not entries:
        raise PlaybookNotFound(f"no playbook '{path}' in the catalog; `noetl catalog` lists them")
    needs = [
        *await executions_of(storage, path, entries),
        *[one async for one in triggers_of(storage, path, entries, alone=len(kept))],
    ]
    if needs:
        which = path if version is None else f"{path}, version {version},"
        raise ServerRefused(f"'{which}' is needed: {'; '.join(needs)}", code="in_use", status=409)
    for entry in entries:
        await storage.catalog.remove(path, entry.version)
    return entries


async def all_versions(storage: Storage, path: str) -> list[CatalogEntry]:
    found: list[CatalogEntry] = []
    before: int | None = None
    while page := await storage.catalog.versions(path, before=before, limit=PAGE):
        found += page
        before = page[-1].version
    return found


async def executions_of(storage: Storage, path: str, entries: Sequence[CatalogEntry]) -> list[str]:
    """What runs one of them."""
    digests = {entry.digest for entry in entries}
    found = [
        row.execution_id
        for status in OPEN
        for row in await storage.executions.page(status=status, path=path, limit=PAGE)
        if row.digest in digests
    ]
    if not found:
        return []
    more = ", …" if len(found) > SHOWN else ""
    named = ", ".join(islice(found, SHOWN)) + more
    return [f"execution {named} has not ended; wait for the end, or `noetl cancel`"]


async def triggers_of(
    storage: Storage, path: str, entries: Sequence[CatalogEntry], *, alone: int
) -> AsyncIterator[str]:
    """Triggers that would find nothing to start, and the trigger that it is itself."""
    versions = {entry.version for entry in entries}
    own = await storage.triggers.find(path)
    if own is not None and own.version in versions:
        yield f"it is a trigger; `noetl trigger remove {path}` first"
    async for row in all_triggers(storage):
        try:
            _, trigger = await find_trigger(storage, row.path)
        except (TriggerNotFound, PlaybookRejected):  # it starts nothing
            continue
        wanted = trigger.version
        named = {v for entry in entries for v in (entry.version, entry.version_label)}
        starts = len(versions) == alone if wanted is None else wanted in named
        if trigger.playbook == path and starts:
            yield f"trigger '{row.path}' starts it; `noetl trigger remove {row.path}` first"


async def all_triggers(storage: Storage) -> AsyncIterator[TriggerRow]:
    after: str | None = None
    while page := await storage.triggers.page(after=after, limit=PAGE):
        for row in page:
            yield row
        after = page[-1].path
