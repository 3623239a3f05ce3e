"""Every adapter of the object store, as the contract suites open them."""

import uuid
from collections.abc import Callable

import pytest
from tests.contracts.http_lines import over_http

from noetl.adapters.files.object_store import FileObjectStore
from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.nats.object_store import NatsObjectStore
from noetl.adapters.objects.gcs import GcsObjectStore
from noetl.adapters.objects.s3 import S3ObjectStore
from noetl.adapters.postgres.object_store import PostgresObjectStore
from noetl.ports.object_store import ObjectStore
from noetl.ports.result_store import ResultStore


class OpenedStore(ResultStore):
    """A result store that the test's own event loop closes."""

    async def close_all(self) -> None:
        await self.close()


def in_files(request: pytest.FixtureRequest) -> ObjectStore:
    return FileObjectStore(request.getfixturevalue("tmp_path") / "results")


def in_postgres(request: pytest.FixtureRequest) -> ObjectStore:
    return PostgresObjectStore(request.getfixturevalue("log_database").url)


def in_nats(request: pytest.FixtureRequest) -> ObjectStore:
    server = request.getfixturevalue("nats_server")
    return NatsObjectStore(server.url, root=f"t{uuid.uuid4().hex}")


def in_s3(request: pytest.FixtureRequest) -> ObjectStore:
    s3_settings(request, request.getfixturevalue("s3_server").endpoint)
    return S3ObjectStore("bucket", "some/prefix")


def s3_settings(request: pytest.FixtureRequest, endpoint: str) -> None:
    settings = request.getfixturevalue("monkeypatch")
    settings.setenv("AWS_ENDPOINT_URL", endpoint)
    settings.setenv("AWS_ACCESS_KEY_ID", "loopback")
    settings.setenv("AWS_SECRET_ACCESS_KEY", "loopback-only")
    settings.setenv("AWS_REGION", "us-east-1")


def in_gcs(request: pytest.FixtureRequest) -> ObjectStore:
    place = request.getfixturevalue("gcs_server")
    request.getfixturevalue("monkeypatch").setenv("STORAGE_EMULATOR_HOST", place.endpoint)
    return GcsObjectStore("bucket", "some/prefix")


STORES: dict[str, Callable[[pytest.FixtureRequest], ObjectStore]] = {
    "memory": lambda _: MemoryObjectStore(),
    "files": in_files,
    "postgres": in_postgres,
    "http": over_http,
    "nats": in_nats,
    "s3": in_s3,
    "gcs": in_gcs,
}
"""A new object store adds its line here."""
