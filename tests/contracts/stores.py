"""Every adapter of the result store, as the contract suite opens them."""

import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext

import pytest
from tests.contracts.http_lines import over_http

from noetl.adapters.files.result_store import FileResultStore
from noetl.adapters.memory.result_store import MemoryResultStore
from noetl.adapters.nats.shelf import NatsShelf
from noetl.adapters.objects.opening import open_object_results
from noetl.adapters.objects.result_store import ObjectResultStore
from noetl.adapters.postgres.result_store import PostgresResultStore
from noetl.ports.result_store import ResultStore

Opened = AbstractContextManager[ResultStore]


def in_files(request: pytest.FixtureRequest) -> Opened:
    return nullcontext(FileResultStore(request.getfixturevalue("tmp_path") / "results"))


def in_postgres(request: pytest.FixtureRequest) -> Opened:
    return closing(PostgresResultStore(request.getfixturevalue("log_database").url))


def in_nats(request: pytest.FixtureRequest) -> Opened:
    server = request.getfixturevalue("nats_server")
    shelf = NatsShelf(server.url, root=f"t{uuid.uuid4().hex}")
    return closing(ObjectResultStore(shelf))


def in_s3(request: pytest.FixtureRequest) -> Opened:
    place = request.getfixturevalue("s3_server")
    settings = request.getfixturevalue("monkeypatch")
    settings.setenv("AWS_ENDPOINT_URL", place.endpoint)
    settings.setenv("AWS_ACCESS_KEY_ID", "loopback")
    settings.setenv("AWS_SECRET_ACCESS_KEY", "loopback-only")
    settings.setenv("AWS_REGION", "us-east-1")
    return closing(open_object_results("s3://bucket/some/prefix"))


def in_gcs(request: pytest.FixtureRequest) -> Opened:
    place = request.getfixturevalue("gcs_server")
    request.getfixturevalue("monkeypatch").setenv("STORAGE_EMULATOR_HOST", place.endpoint)
    return closing(open_object_results("gs://bucket/some/prefix"))


STORES: dict[str, Callable[[pytest.FixtureRequest], Opened]] = {
    "memory": lambda _: nullcontext(MemoryResultStore()),
    "files": in_files,
    "postgres": in_postgres,
    "http": over_http,
    "nats": in_nats,
    "s3": in_s3,
    "gcs": in_gcs,
}
"""A new result store adds its line here."""
