"""Buckets on loopback, and stores of results in them."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.support.gcs import GcsPlace
from tests.support.nats import NatsServer
from tests.support.s3 import S3Place

from noetl.adapters.nats.shelf import NatsShelf
from noetl.adapters.objects.opening import open_object_results
from noetl.adapters.objects.result_store import ObjectResultStore

Opening = Callable[..., ObjectResultStore]


def s3(request: pytest.FixtureRequest) -> Opening:
    place: S3Place = request.getfixturevalue("s3_server")
    settings: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    for name, value in {
        "AWS_ENDPOINT_URL": place.endpoint,
        "AWS_ACCESS_KEY_ID": "loopback",
        "AWS_SECRET_ACCESS_KEY": "loopback-only",
        "AWS_REGION": "us-east-1",
    }.items():
        settings.setenv(name, value)
    return lambda bucket="bucket", **more: open_object_results(f"s3://{bucket}/a/b", **more)


def gcs(request: pytest.FixtureRequest) -> Opening:
    place: GcsPlace = request.getfixturevalue("gcs_server")
    settings: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    settings.setenv("STORAGE_EMULATOR_HOST", place.endpoint)
    return lambda bucket="bucket", **more: open_object_results(f"gs://{bucket}/a/b", **more)


def nats(request: pytest.FixtureRequest) -> Opening:
    server: NatsServer = request.getfixturevalue("nats_server")
    root = f"t{uuid.uuid4().hex}"
    return lambda **more: ObjectResultStore(NatsShelf(server.url, root=root, **more))


PLACES = {"s3": s3, "gcs": gcs, "nats": nats}


@contextmanager
def closing_all(opening: Opening) -> Iterator[Opening]:
    """What was opened is closed at the end."""
    opened: list[ObjectResultStore] = []

    def open_one(**more: object) -> ObjectResultStore:
        opened.append(opening(**more))
        return opened[-1]

    try:
        yield open_one
    finally:
        for store in opened:
            store.close()
