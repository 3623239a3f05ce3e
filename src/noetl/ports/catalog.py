"""Where registered playbooks are kept, each version under a number of its own (SRV-1)."""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec


class CatalogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a registered playbook; its text is kept under its digest."""

    playbook_id: str
    """`<path>:<version>`: it never means another text."""
    path: str
    version: int
    """Counts from 1 for each path."""
    digest: str
    registered_at: int
    """Milliseconds since 1970."""
    name: str
    description: str | None = None
    labels: dict[str, Any] = {}
    original_digest: str | None = None
    """The text before it was migrated, where it was."""
    version_label: str | None = None
    """`metadata.version` as text: what the author calls this version."""


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """A playbook on its way into the catalog."""

    path: str
    text: str
    digest: str
    name: str
    description: str | None = None
    labels: dict[str, Any] = {}
    version_label: str | None = None
    original: str | None = None
    """The text before it was migrated, where it was."""
    original_digest: str | None = None


class Catalog(Protocol):
    """
    Contract, checked for every adapter by tests/contracts/test_catalog.py:
    - `register` makes the next version of the path, durable when it returns, and says True; if the
      newest version has the same digest, that entry comes back instead, and False. However many
      register at once, versions have no gaps and none is given twice;
    - the text is kept as `Playbooks.keep` would, in the same commit; `original` is the text before
      migration, None where there was none, or no such entry;
    - `find` is the newest version, or the one asked for; None where there is none;
    - `labelled` is every version of the path with this label, newest first;
    - `page` is the newest version of every path, in the order of paths (by code point); `after` is
      the path that ended the page before;
    - `versions` is newest first; `before` is the version that ended the page before;
    - `remove` takes a version away: nobody finds it any more, its number is given to no other, and
      the text stays with what ran it. Removing what is not there is nothing.
    """

    async def register(self, asked: Registration) -> tuple[CatalogEntry, bool]: ...

    async def find(self, path: str, version: int | None = None) -> CatalogEntry | None: ...

    async def labelled(self, path: str, label: str) -> Sequence[CatalogEntry]: ...

    async def by_id(self, playbook_id: str) -> CatalogEntry | None: ...

    async def page(
        self, *, after: str | None = None, limit: int = 50
    ) -> Sequence[CatalogEntry]: ...

    async def versions(
        self, path: str, *, before: int | None = None, limit: int = 50
    ) -> Sequence[CatalogEntry]: ...

    async def original(self, playbook_id: str) -> str | None: ...

    async def remove(self, path: str, version: int) -> None: ...


def id_of(path: str, version: int) -> str:
    """The id of an entry."""
    return f"{path}:{version}"


def parts_of(playbook_id: str) -> tuple[str, int] | None:
    """Path and version in an id; None where it is none."""
    path, _, version = playbook_id.rpartition(":")
    number = number_in(version)
    return None if number is None or ":" not in playbook_id else (path, number)


def number_in(version: str) -> int | None:
    """The number of a version; None where it is none that the catalog gives."""
    known = version.isascii() and version.isdecimal() and len(version) < 10
    return int(version) if known and not version.startswith("0") else None
