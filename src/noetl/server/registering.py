"""How a text becomes a version in the catalog (SRV-1)."""

from noetl.playbook.load import load_valid
from noetl.playbook.plan import digest_of
from noetl.ports.catalog import Catalog, CatalogEntry, Registration
from noetl.ports.large import read_off_loop
from noetl.tools.plugins import KnownKinds


async def registered(
    catalog: Catalog, text: str, *, original: str | None = None
) -> tuple[CatalogEntry, bool]:
    """
    A new version of a playbook, unless the newest is this text; raises PlaybookRejected.

    `original` is the text before it was migrated, where it was.
    """
    playbook = await read_off_loop(len(text), load_valid, text, KnownKinds())
    about = playbook.metadata
    labels, description = about.get("labels"), about.get("description")
    version = about.get("version")
    return await catalog.register(
        Registration(
            path=playbook.path,
            text=text,
            digest=digest_of(text),
            name=playbook.name,
            description=None if description is None else str(description),
            labels=labels if isinstance(labels, dict) else {},
            version_label=None if version is None else str(version),
            original=original,
            original_digest=None if original is None else digest_of(original),
        )
    )
