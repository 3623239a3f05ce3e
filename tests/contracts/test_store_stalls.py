"""A store that is away stops nobody else: the event loop goes on."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec
import pytest
from tests.contracts.stores import OpenedStore, s3_settings
from tests.support.stalls import no_stall

from noetl.adapters.http.object_store import HttpObjectStore
from noetl.adapters.nats.object_store import NatsObjectStore
from noetl.adapters.objects.gcs import GcsObjectStore
from noetl.adapters.objects.s3 import S3ObjectStore
from noetl.adapters.postgres.object_store import PostgresObjectStore
from noetl.errors import ResultsUnavailable
from noetl.messages.reference import Reference
from noetl.ports.large import encoded
from noetl.ports.object_store import ObjectStore

PATIENCE = 1.5


@pytest.fixture
def silent() -> Iterator[str]:
    """An address that takes every connection and never answers."""
    listening = socket.create_server(("127.0.0.1", 0))
    taken: list[socket.socket] = []

    def accept() -> None:
        with suppress(OSError):
            while True:
                taken.append(listening.accept()[0])

    threading.Thread(target=accept, daemon=True).start()
    yield f"127.0.0.1:{listening.getsockname()[1]}"
    listening.shutdown(socket.SHUT_RDWR)
    for one in (listening, *taken):
        one.close()


def at_s3(request: pytest.FixtureRequest, place: str) -> ObjectStore:
    s3_settings(request, f"http://{place}")
    return S3ObjectStore("bucket")


def at_gcs(request: pytest.FixtureRequest, place: str) -> ObjectStore:
    request.getfixturevalue("monkeypatch").setenv("STORAGE_EMULATOR_HOST", f"http://{place}")
    return GcsObjectStore("bucket")


AWAY: dict[str, Callable[[pytest.FixtureRequest, str], ObjectStore]] = {
    "postgres": lambda _, place: PostgresObjectStore(f"postgresql://user:hidden@{place}/db"),
    "http": lambda _, place: HttpObjectStore([f"http://{place}"], None, name="memory"),
    "nats": lambda _, place: NatsObjectStore(f"nats://{place}"),
    "s3": at_s3,
    "gcs": at_gcs,
}


@pytest.mark.parametrize("name", AWAY)
async def test_a_store_that_never_answers_stalls_nobody(
    request: pytest.FixtureRequest, silent: str, name: str
) -> None:
    store = OpenedStore(AWAY[name](request, silent), patience=PATIENCE)
    missing = Reference(store.name, "e1/" + "0" * 64, 2_000_000, "0" * 64)
    body = b'"' + b"x" * 2_000_000 + b'"'
    async with no_stall():
        with pytest.raises(ResultsUnavailable, match=r"\(away for \d s\)") as away:
            await store.put("e1", body)
        assert not away.value.refused
        with pytest.raises(ResultsUnavailable, match=r"\(away for \d s\)"):
            await store.fetch(missing)
    await store.close()


def rows_of(size: int) -> list[dict[str, object]]:
    row = {"name": "x" * 500, "value": 1.5, "tags": ["a", "b"]}
    return [{"id": n, **row} for n in range(size // 560)]


@pytest.mark.parametrize("size", [2_000_000, 20_000_000])
async def test_a_large_body_stalls_nobody(store: OpenedStore, size: int) -> None:
    rows = rows_of(size)
    async with no_stall():
        body = await encoded({"rows": rows})
        reference = await store.put("e1", body)
        value = await store.fetch(reference)
    assert len(body) > size * 0.9
    assert value == {"rows": rows}
    assert body == msgspec.json.encode(value)
