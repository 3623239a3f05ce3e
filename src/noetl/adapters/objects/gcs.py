"""Objects in a bucket of Google Cloud Storage, with the identity that the machine has there."""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from noetl.adapters.objects.s3 import PART, told
from noetl.adapters.threads import Threads
from noetl.errors import SettingRefused
from noetl.extras import needs
from noetl.ports.object_store import PIECE, Spool, StoreRefused
from noetl.tools.storage.gcs import failure_of

OPTIONS: dict[str, Any] = {"timeout": 20.0, "retry": None}
EMULATOR = "STORAGE_EMULATOR_HOST"
"""The library's own variable: where it is set, nobody has to say who he is."""

T = TypeVar("T")


class GcsObjectStore:
    """See `ObjectStore`. The library waits inside: each call of it has a thread."""

    name = "gcs"

    def __init__(self, bucket: str, prefix: str = "") -> None:
        self._client = _client()
        self._bucket = self._client.bucket(bucket)
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._threads = Threads("noetl-gcs")
        self.place = f"gs://{bucket}/{prefix}".rstrip("/")

    async def put(self, key: str, body: Spool) -> None:
        blob = self._bucket.blob(self._prefix + key, chunk_size=PART)

        def send() -> None:
            body.file.seek(0)
            blob.upload_from_file(
                body.file, size=body.size, content_type="application/json", **OPTIONS
            )

        with suppress(FileNotFoundError):
            await self._asked(lambda: blob.reload(**OPTIONS))
            if blob.size == body.size:
                return
        try:
            await self._asked(send)
        except FileNotFoundError:  # what is written needs nothing but a bucket
            raise StoreRefused("there is no such bucket") from None

    async def get(self, key: str, start: int = 0) -> AsyncIterator[bytes]:
        blob = self._bucket.blob(self._prefix + key)
        await self._asked(lambda: blob.reload(**OPTIONS))
        while start < blob.size:
            end = min(start + PART, blob.size) - 1  # the library counts the last byte in
            part: bytes = await self._asked(
                partial(blob.download_as_bytes, start=start, end=end, **OPTIONS)
            )
            for at in range(0, len(part), PIECE):
                yield part[at : at + PIECE]
            start = end + 1

    async def keys(self, prefix: str) -> list[str]:
        def listed() -> list[str]:
            blobs = self._client.list_blobs(self._bucket, prefix=self._prefix + prefix, **OPTIONS)
            return [blob.name[len(self._prefix) :] for blob in blobs]

        try:
            return await self._asked(listed)
        except FileNotFoundError:  # no bucket, nothing in it
            return []

    async def remove(self, keys: Sequence[str]) -> int:
        gone = 0
        for key in keys:
            with suppress(FileNotFoundError):
                blob = self._bucket.blob(self._prefix + key)
                await self._asked(partial(blob.delete, **OPTIONS))
                gone += 1
        return gone

    async def close(self) -> None:
        self._threads.close()
        self._client.close()

    async def _asked(self, act: Callable[[], T]) -> T:
        from google.api_core.exceptions import NotFound

        try:
            return await self._threads.run(act)
        except NotFound as missing:
            raise FileNotFoundError(str(missing)) from None
        except Exception as fault:
            raise told(failure_of(fault, "gcs"), fault) from None


def _client() -> Any:
    try:
        from google.auth.exceptions import GoogleAuthError
        from google.cloud.storage import Client
    except ImportError:
        raise SettingRefused(needs("NOETL_RESULTS=gs://…", "gcs")) from None
    if os.environ.get(EMULATOR):
        return Client.create_anonymous_client()
    try:
        return Client()
    except (GoogleAuthError, OSError) as fault:
        raise SettingRefused(
            f"results in gs:// need an identity at Google: {fault}; name the file with a service "
            "account's key in GOOGLE_APPLICATION_CREDENTIALS"
        ) from None
