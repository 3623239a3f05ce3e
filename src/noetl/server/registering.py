"""How a text becomes a version in the catalog (SRV-1), and a trigger one that starts (START-1)."""

from collections.abc import Awaitable, Callable
from typing import Any

from noetl.errors import PlaybookRejected, ServerRefused
from noetl.playbook.check_brought import called
from noetl.playbook.declared import DeclaredInputs
from noetl.playbook.load import Loaded, is_trigger, load_document
from noetl.playbook.neighbours import Neighbours
from noetl.playbook.plan import digest_of
from noetl.ports.catalog import CatalogEntry, Registration
from noetl.ports.large import read_off_loop
from noetl.ports.storage import Storage
from noetl.server.finding import known_paths
from noetl.server.library import beside, inputs_from
from noetl.tools.plugins import KnownKinds

ReadText = Callable[..., Awaitable[Any]]
"""Where a text is read: `read_off_loop`, or `DRAFTS.read`."""
MOST_CALLED = 50
"""Other playbooks that are looked at for one text."""


async def examined(storage: Storage, text: str, read: ReadText = read_off_loop) -> Loaded:
    """All that is wrong with a text, also beside the playbooks of the catalog that it names."""
    loaded: Loaded = await read(len(text), load_document, text, KnownKinds())
    wanted = [] if loaded.trigger is None else [loaded.trigger.playbook]
    if loaded.playbook is not None:
        wanted = list(dict.fromkeys(called(loaded.playbook)))[:MOST_CALLED]
    if not wanted:
        return loaded
    parent = "" if loaded.playbook is None else loaded.playbook.path
    found: dict[str, DeclaredInputs] = {}
    for path in wanted:
        for name in dict.fromkeys((path, beside(parent, path))):
            entry = await storage.catalog.find(name)
            kept = None if entry is None else await storage.playbooks.text(entry.digest)
            if kept is not None and not await read(len(kept[0]), is_trigger, kept[0]):
                found.setdefault(path, await read(len(kept[0]), inputs_from, kept[0]))
    paths = [] if len(found) == len(wanted) else await known_paths(storage.catalog)
    around = Neighbours(playbook=found.get, paths=lambda: paths)
    beside_others: Loaded = await read(len(text), load_document, text, KnownKinds(), around)
    return beside_others


async def registered(
    storage: Storage, text: str, *, original: str | None = None
) -> tuple[CatalogEntry, bool]:
    """
    A new version of a playbook or a trigger, unless the newest is this text; raises
    PlaybookRejected.

    `original` is the text before it was migrated, where it was.
    """
    loaded = await read_off_loop(len(text), load_document, text, KnownKinds())
    document = loaded.playbook or loaded.trigger
    if document is None:
        raise PlaybookRejected(loaded.findings)
    refuse_leaving(document.path)
    await refuse_taken(storage, document.path, trigger=loaded.trigger is not None)
    about = document.metadata
    entry, fresh = await storage.catalog.register(
        Registration(
            path=document.path,
            text=text,
            digest=digest_of(text),
            name=document.name,
            description=_text(about.get("description")),
            labels=about["labels"] if isinstance(about.get("labels"), dict) else {},
            version_label=_text(about.get("version")),
            original=original,
            original_digest=None if original is None else digest_of(original),
        )
    )
    if loaded.trigger is not None:
        from noetl.server.triggering import enter

        await enter(storage, loaded.trigger, entry.version)
    return entry, fresh


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def refuse_leaving(path: str) -> None:
    """
    It stands in addresses, and browsers and proxies resolve these words: whoever looks at
    `../../tokens/x`, or removes it, would ask for something else with his own rights.
    """
    if not {".", ".."}.isdisjoint(path.split("/")):
        raise ServerRefused(
            f"the path '{path[:100]}' leaves its folder: remove the segments '.' and '..'",
            code="invalid",
            status=422,
        )


async def refuse_taken(storage: Storage, path: str, *, trigger: bool) -> None:
    """A path means a playbook or a trigger, never now the one and now the other."""
    newest = await storage.catalog.find(path)
    if newest is None:
        return
    kept = await storage.playbooks.text(newest.digest)
    was_trigger = kept is not None and await read_off_loop(len(kept[0]), is_trigger, kept[0])
    if was_trigger != trigger:
        kind, other = ("trigger", "playbook") if trigger else ("playbook", "trigger")
        raise ServerRefused(
            f"'{path}' is the path of a {other}; give the {kind} another one",
            code="path_taken",
            status=409,
        )
