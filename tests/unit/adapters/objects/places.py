"""Buckets on loopback, and stores of results in them."""

import uuid
from collections.abc import Callable

import pytest
from tests.support.gcs import GcsPlace
from tests.support.nats import NatsServer
from tests.support.s3 import S3Place

from noetl.adapters.nats.object_store import NatsObjectStore
from noetl.adapters.objects.opening import open_object_results
from noetl.ports.result_store import ResultStore

Opening = Callable[..., ResultStore]


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
    return lambda **more: ResultStore(NatsObjectStore(server.url, root=root), **more)


PLACES = {"s3": s3, "gcs": gcs, "nats": nats}


class Openings:
    """Stores of one place; the test's own event loop closes them."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._opened: list[ResultStore] = []

    def __call__(self, **more: object) -> ResultStore:
        self._opened.append(self._opening(**more))
        return self._opened[-1]

    async def close_all(self) -> None:
        for store in self._opened:
            await store.close()
