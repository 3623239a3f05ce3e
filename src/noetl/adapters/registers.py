"""What the catalogs and registers of all adapters have in common."""

import time
from collections.abc import Mapping
from typing import Any

import msgspec

from noetl.playbook.plan import digest_of
from noetl.ports.catalog import CatalogEntry, id_of
from noetl.ports.tokens import TokenRow


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """A playbook on its way into the catalog."""

    path: str
    text: str
    digest: str
    name: str
    description: str | None
    labels: dict[str, Any]
    original: str | None
    registered_at: int

    @property
    def original_digest(self) -> str | None:
        return None if self.original is None else digest_of(self.original)

    @property
    def texts(self) -> list[tuple[str, str]]:
        """All that must be kept, by digest."""
        original = self.original
        before = [] if original is None else [(digest_of(original), original)]
        return [(self.digest, self.text), *before]

    def columns(self, version: int) -> tuple[Any, ...]:
        """The entry as a row."""
        return (
            self.path,
            version,
            self.digest,
            self.registered_at,
            self.name,
            self.description,
            msgspec.json.encode(self.labels).decode(),
            self.original_digest,
        )


def registration(
    path: str,
    text: str,
    *,
    digest: str,
    name: str,
    description: str | None,
    labels: Mapping[str, Any] | None,
    original: str | None,
) -> Registration:
    """What was asked for, as of now."""
    return Registration(
        path=path,
        text=text,
        digest=digest,
        name=name,
        description=description,
        labels=dict(labels or {}),
        original=original,
        registered_at=now_ms(),
    )


def entry_of(columns: tuple[Any, ...]) -> CatalogEntry:
    """An entry from its row."""
    path, version, digest, registered_at, name, description, labels, original_digest = columns
    return CatalogEntry(
        playbook_id=id_of(path, version),
        path=path,
        version=version,
        digest=digest,
        registered_at=registered_at,
        name=name,
        description=description,
        labels=msgspec.json.decode(labels),
        original_digest=original_digest,
    )


def check_added(row: TokenRow, found: TokenRow | None) -> None:
    """That the token under this digest is this one, and not another that was there before."""
    if found is None or msgspec.structs.replace(found, revoked_at=row.revoked_at) != row:
        raise ValueError(f"the token {row.token_id!r} cannot be added: its id or digest is taken")
