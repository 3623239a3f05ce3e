"""What a bucket can do, whoever keeps it."""

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec


class StoredObject(msgspec.Struct, frozen=True, kw_only=True):
    """What a store says about one object; None where it does not say."""

    key: str
    size: int | None = None
    etag: str | None = None
    last_modified: datetime | None = None
    content_type: str | None = None

    def fields(self) -> dict[str, Any]:
        """As it stands in results."""
        moment = self.last_modified and self.last_modified.isoformat()
        return {
            "key": self.key,
            "size": self.size,
            "etag": self.etag,
            "last_modified": moment,
            "content_type": self.content_type,
        }


Payload = bytes | Path | AsyncIterator[bytes]
"""What is written: at hand, in a file, or in parts whose end nobody knows yet."""


class Bucket(Protocol):
    """
    Contract: a method either does the whole or raises what `failure_of` of its kind can name;
    cancelling it closes the request; nothing of a `write` is visible before its end.
    """

    async def head(self, key: str) -> StoredObject: ...

    async def read(self, key: str) -> tuple[StoredObject, AsyncIterator[bytes]]: ...

    async def write(self, key: str, payload: Payload, content_type: str) -> StoredObject: ...

    def listed(self, prefix: str | None) -> AsyncIterator[StoredObject]: ...

    async def copy(self, source: str, key: str) -> StoredObject: ...

    async def remove(self, key: str) -> None: ...
