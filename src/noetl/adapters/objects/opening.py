"""The store of results that a setting names, where it keeps bodies as objects."""

from collections.abc import Callable
from urllib.parse import urlsplit

from noetl.errors import SettingRefused
from noetl.ports.result_store import PATIENCE, ResultStore


def open_object_results(
    setting: str,
    *,
    queue: str | None = None,
    says: Callable[[str], None] = lambda _: None,
    patience: float = PATIENCE,
) -> ResultStore:
    """`nats` (in the NATS of `queue`), `s3://bucket/prefix` or `gs://bucket/prefix`."""
    # Imports stand inside: each of them needs an extra that others can do without.
    if setting == "nats":
        if queue is None:
            raise SettingRefused("results=nats needs a queue; set NOETL_QUEUE to nats://host:port")
        from noetl.adapters.nats.object_store import NatsObjectStore

        return ResultStore(NatsObjectStore(queue, says=says), patience=patience)
    parts = urlsplit(setting)
    bucket, prefix = parts.netloc, parts.path.strip("/")
    if parts.scheme == "s3" and bucket:
        from noetl.adapters.objects.s3 import S3ObjectStore

        return ResultStore(S3ObjectStore(bucket, prefix), patience=patience)
    if parts.scheme == "gs" and bucket:
        from noetl.adapters.objects.gcs import GcsObjectStore

        return ResultStore(GcsObjectStore(bucket, prefix), patience=patience)
    raise SettingRefused(
        f"results={setting!r} is not an object store; expected nats, s3://bucket/prefix or "
        "gs://bucket/prefix"
    )
