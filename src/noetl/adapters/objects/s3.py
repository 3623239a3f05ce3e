"""Bodies in a bucket of S3, or of what speaks its protocol; keys and endpoint from AWS_*."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import IO, TypeVar

from noetl.adapters.objects.shelf import PATIENCE, Away, Refused, tried
from noetl.errors import SettingRefused
from noetl.messages.outcome import Outcome
from noetl.tools.storage.s3 import failure_of

PART = 8 * 1024 * 1024
ANSWER = timedelta(seconds=60)

T = TypeVar("T")


class S3Shelf:
    """See `Shelf`."""

    name = "s3"

    def __init__(self, bucket: str, prefix: str = "", *, patience: float = PATIENCE) -> None:
        try:
            import obstore
            from obstore.store import S3Store
        except ImportError:
            raise SettingRefused(
                "results in s3:// need an extra: install it with pip install 'noetl[s3]'"
            ) from None
        self._api = obstore
        self._patience = patience
        self.place = f"s3://{bucket}/{prefix}".rstrip("/")
        self._store = S3Store(
            bucket,
            prefix=prefix or None,
            client_options={"allow_http": True, "timeout": ANSWER},
            retry_config={"max_retries": 0},  # the patience is ours
        )

    def size(self, key: str) -> int:
        return int(self._tried(lambda: self._api.head(self._store, key))["size"])

    def write(self, key: str, body: IO[bytes]) -> None:
        def put() -> None:
            body.seek(0)
            pieces = iter(lambda: body.read(PART), b"")
            first = next(pieces, b"")
            if len(first) < PART:
                self._api.put(self._store, key, first, use_multipart=False)
                return
            body.seek(0)
            self._api.put(self._store, key, body, chunk_size=PART, max_concurrency=2)

        self._tried(put)

    def read(self, key: str) -> Iterator[bytes]:
        return ranges(self.size(key), lambda start, end: self._part(key, start, end))

    def keys(self, prefix: str) -> list[str]:
        def listed() -> list[str]:
            pages = self._api.list(self._store, prefix=prefix.rstrip("/"))
            return [one["path"] for page in pages for one in page]

        return [key for key in self._tried(listed) if key.startswith(prefix)]

    def remove(self, key: str) -> None:
        self._tried(lambda: self._api.delete(self._store, key))

    def close(self) -> None:
        """The library keeps its connections by itself."""

    def _part(self, key: str, start: int, end: int) -> bytes:
        found = self._tried(lambda: self._api.get_range(self._store, key, start=start, end=end))
        return bytes(found)

    def _tried(self, act: Callable[[], T]) -> T:
        def once() -> T:
            try:
                return act()
            except FileNotFoundError:
                raise
            except Exception as fault:
                if "NoSuchBucket" in str(fault):  # a list says it otherwise than a write
                    raise FileNotFoundError(self.place) from None
                raise told(failure_of(fault, "s3"), fault) from None

        return tried(self.place, once, patience=self._patience)


def ranges(size: int, part: Callable[[int, int], bytes]) -> Iterator[bytes]:
    """An object part by part, so that a broken connection costs one of them."""
    for start in range(0, size, PART):
        yield part(start, min(start + PART, size))


def told(outcome: Outcome | None, fault: Exception) -> Exception:
    """What the tools know about this fault: whether it may pass."""
    if outcome is None or outcome.error is None:
        return Refused(" ".join(str(fault).split())[:300] or type(fault).__name__)
    kind = Away if outcome.error["retryable"] else Refused
    return kind(outcome.error["message"])
