"""How a text becomes a version in the catalog (SRV-1), and a trigger one that starts (START-1)."""

from typing import Any

from noetl.errors import PlaybookRejected, ServerRefused
from noetl.playbook.load import is_trigger, load_document
from noetl.playbook.plan import digest_of
from noetl.ports.catalog import CatalogEntry, Registration
from noetl.ports.large import read_off_loop
from noetl.ports.storage import Storage
from noetl.tools.plugins import KnownKinds


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


async def refuse_taken(storage: Storage, path: str, *, trigger: bool) -> None:
    """A path means a playbook or a trigger, never now the one and now the other."""
    newest = await storage.catalog.find(path)
    if newest is None:
        return
    kept = await storage.playbooks.text(newest.digest)
    was_trigger = kept is not None and is_trigger(kept[0])
    if was_trigger != trigger:
        kind, other = ("trigger", "playbook") if trigger else ("playbook", "trigger")
        raise ServerRefused(
            f"'{path}' is the path of a {other}; give the {kind} another one",
            code="path_taken",
            status=409,
        )
