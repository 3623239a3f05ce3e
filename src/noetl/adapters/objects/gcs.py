"""Bodies in a bucket of Google Cloud Storage, with the identity that the machine has there."""

import os
from collections.abc import Callable, Iterator
from typing import IO, Any, TypeVar

from noetl.adapters.objects.s3 import PART, ranges, told
from noetl.adapters.objects.shelf import PATIENCE, tried
from noetl.errors import SettingRefused
from noetl.tools.storage.gcs import failure_of

ANSWER = 60.0
EMULATOR = "STORAGE_EMULATOR_HOST"
"""The library's own variable: where it is set, nobody has to say who he is."""

T = TypeVar("T")


class GcsShelf:
    """See `Shelf`."""

    name = "gcs"

    def __init__(self, bucket: str, prefix: str = "", *, patience: float = PATIENCE) -> None:
        self._client = _client()
        self._bucket = self._client.bucket(bucket)
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._patience = patience
        self.place = f"gs://{bucket}/{prefix}".rstrip("/")

    def size(self, key: str) -> int:
        def ask() -> int:
            blob = self._blob(key)
            blob.reload(timeout=ANSWER, retry=None)
            return int(blob.size)

        return self._tried(ask)

    def write(self, key: str, body: IO[bytes]) -> None:
        def send() -> None:
            body.seek(0, os.SEEK_END)
            size = body.tell()
            body.seek(0)
            self._blob(key).upload_from_file(
                body, size=size, content_type="application/json", timeout=ANSWER, retry=None
            )

        self._tried(send)

    def read(self, key: str) -> Iterator[bytes]:
        return ranges(self.size(key), lambda start, end: self._part(key, start, end))

    def keys(self, prefix: str) -> list[str]:
        def listed() -> list[str]:
            blobs = self._client.list_blobs(
                self._bucket, prefix=self._prefix + prefix, timeout=ANSWER, retry=None
            )
            return [blob.name[len(self._prefix) :] for blob in blobs]

        return self._tried(listed)

    def remove(self, key: str) -> None:
        self._tried(lambda: self._blob(key).delete(timeout=ANSWER, retry=None))

    def close(self) -> None:
        self._client.close()

    def _blob(self, key: str) -> Any:
        return self._bucket.blob(self._prefix + key, chunk_size=PART)

    def _part(self, key: str, start: int, end: int) -> bytes:
        blob = self._bucket.blob(self._prefix + key)
        # The library counts the last byte in.
        return self._tried(
            lambda: bytes(
                blob.download_as_bytes(start=start, end=end - 1, timeout=ANSWER, retry=None)
            )
        )

    def _tried(self, act: Callable[[], T]) -> T:
        from google.api_core.exceptions import NotFound

        def once() -> T:
            try:
                return act()
            except NotFound as missing:
                raise FileNotFoundError(str(missing)) from None
            except Exception as fault:
                raise told(failure_of(fault, "gcs"), fault) from None

        return tried(self.place, once, patience=self._patience)


def _client() -> Any:
    try:
        from google.auth.exceptions import GoogleAuthError
        from google.cloud.storage import Client
    except ImportError:
        raise SettingRefused(
            "results in gs:// need an extra: install it with pip install 'noetl[gcs]'"
        ) from None
    if os.environ.get(EMULATOR):
        return Client.create_anonymous_client()
    try:
        return Client()
    except (GoogleAuthError, OSError) as fault:
        raise SettingRefused(
            f"results in gs:// need an identity at Google: {fault}; name the file with a service "
            "account's key in GOOGLE_APPLICATION_CREDENTIALS"
        ) from None
