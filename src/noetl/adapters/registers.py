"""What the catalogs and registers of all adapters have in common."""

import time
from abc import ABC, abstractmethod
from typing import Any

import msgspec

from noetl.ports.catalog import CatalogEntry, Registration, id_of, parts_of
from noetl.ports.tokens import TokenRow


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class CatalogReads(ABC):
    """What every catalog answers from its entries and texts."""

    @abstractmethod
    async def find(self, path: str, version: int | None = None) -> CatalogEntry | None:
        """The newest version, or the one asked for."""

    @abstractmethod
    async def _text(self, digest: str) -> str | None:
        """What is kept under a digest."""

    async def by_id(self, playbook_id: str) -> CatalogEntry | None:
        parts = parts_of(playbook_id)
        return None if parts is None else await self.find(*parts)

    async def original(self, playbook_id: str) -> str | None:
        entry = await self.by_id(playbook_id)
        if entry is None or entry.original_digest is None:
            return None
        return await self._text(entry.original_digest)


def columns_of(asked: Registration, version: int) -> tuple[Any, ...]:
    """What is registered now, as a row."""
    labels = msgspec.json.encode(asked.labels).decode()
    about = (now_ms(), asked.name, asked.description, labels, asked.original_digest)
    return (asked.path, version, asked.digest, *about, asked.version_label)


def texts_of(asked: Registration) -> list[tuple[str, str]]:
    """All that must be kept, by digest."""
    kept = [(asked.digest, asked.text), (asked.original_digest, asked.original)]
    return [(digest, text) for digest, text in kept if digest is not None and text is not None]


def entry_of(columns: tuple[Any, ...]) -> CatalogEntry:
    """An entry from its row."""
    path, version, digest, registered_at, name, description, labels, original, label = columns
    return CatalogEntry(
        playbook_id=id_of(path, version),
        path=path,
        version=version,
        digest=digest,
        registered_at=registered_at,
        name=name,
        description=description,
        labels=msgspec.json.decode(labels),
        original_digest=original,
        version_label=label,
    )


def check_added(row: TokenRow, found: TokenRow | None) -> None:
    """That the token under this digest is this one, and not another that was there before."""
    if found is None or msgspec.structs.replace(found, revoked_at=row.revoked_at) != row:
        raise ValueError(f"the token {row.token_id!r} cannot be added: its id or digest is taken")
