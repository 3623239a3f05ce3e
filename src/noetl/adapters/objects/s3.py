"""Objects in a bucket of S3, or of what speaks its protocol; keys and endpoint from AWS_*."""

from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

from noetl.errors import SettingRefused
from noetl.extras import needs
from noetl.messages.outcome import Outcome
from noetl.ports.object_store import PIECE, Spool, StoreAway, StoreRefused
from noetl.tools.storage.s3 import failure_of

PART = 8 * 1024 * 1024
ANSWER = timedelta(seconds=60)

T = TypeVar("T")


class S3ObjectStore:
    """See `ObjectStore`."""

    name = "s3"

    def __init__(self, bucket: str, prefix: str = "") -> None:
        try:
            import obstore
            from obstore.store import S3Store
        except ImportError:
            raise SettingRefused(needs("NOETL_RESULTS=s3://…", "s3")) from None
        self._api = obstore
        self.place = f"s3://{bucket}/{prefix}".rstrip("/")
        self._store = S3Store(
            bucket,
            prefix=prefix or None,
            client_options={"allow_http": True, "timeout": ANSWER},
            retry_config={"max_retries": 0},  # patience is the caller's
        )

    async def put(self, key: str, body: Spool) -> None:
        with suppress(FileNotFoundError):
            if await self._size(key) == body.size:
                return
        small = body.size < PART
        sent = b"".join([piece async for piece in body.pieces()]) if small else body.pieces()
        putting = self._api.put_async(
            self._store,
            key,
            sent,
            use_multipart=not small,
            chunk_size=PART,
            max_concurrency=2,
        )
        try:
            await self._asked(putting)
        except FileNotFoundError:  # what is written needs nothing but a bucket
            raise StoreRefused("there is no such bucket") from None

    async def get(self, key: str, start: int = 0) -> AsyncIterator[bytes]:
        if start and await self._size(key) <= start:
            return  # nothing is no range
        options: Any = {"range": {"offset": start}} if start else {}
        answer = await self._asked(self._api.get_async(self._store, key, options=options))
        pieces = answer.stream(min_chunk_size=PIECE)
        while (part := await self._asked(anext(pieces, None))) is not None:
            whole = bytes(part)
            for at in range(0, len(whole), PIECE):
                yield whole[at : at + PIECE]

    async def keys(self, prefix: str) -> list[str]:
        pages = aiter(self._api.list(self._store, prefix=prefix.rstrip("/")))
        found: list[str] = []
        with suppress(FileNotFoundError):  # no bucket, nothing in it
            while (page := await self._asked(anext(pages, None))) is not None:
                found += [one["path"] for one in page if one["path"].startswith(prefix)]
        return found

    async def remove(self, keys: Sequence[str]) -> int:
        gone = 0
        for key in keys:
            with suppress(FileNotFoundError):
                await self._asked(self._api.delete_async(self._store, key))
                gone += 1
        return gone

    async def close(self) -> None:
        """The library keeps its connections by itself."""

    async def _size(self, key: str) -> int:
        return int((await self._asked(self._api.head_async(self._store, key)))["size"])

    async def _asked(self, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except FileNotFoundError:
            raise
        except Exception as fault:
            if "NoSuchBucket" in str(fault):  # a list says it otherwise than a write
                raise FileNotFoundError(self.place) from None
            raise told(failure_of(fault, "s3"), fault) from None


def told(outcome: Outcome | None, fault: Exception) -> Exception:
    """What the tools know about this fault: whether it may pass."""
    if outcome is None or outcome.error is None:
        return StoreRefused(" ".join(str(fault).split())[:300] or type(fault).__name__)
    kind = StoreAway if outcome.error["retryable"] else StoreRefused
    return kind(outcome.error["message"])
