"""Bodies as objects: large ones, places that refuse or are away, and settings that cannot be."""

import asyncio
import subprocess
import sys

import pytest
from tests.support.gcs import GcsPlace
from tests.support.nats import running
from tests.support.s3 import S3Place
from tests.unit.adapters.objects.places import PLACES, Openings

from noetl.adapters.nats import object_store as nats_objects
from noetl.adapters.nats.library import Client
from noetl.adapters.nats.object_store import NatsObjectStore
from noetl.adapters.objects.opening import open_object_results
from noetl.errors import BodyLost, ResultsUnavailable, SettingRefused
from noetl.extras import command_for
from noetl.ports.result_store import ResultStore

NOBODY = "127.0.0.1:9"


@pytest.fixture(params=PLACES)
def opening(request: pytest.FixtureRequest) -> Openings:
    return Openings(PLACES[request.param](request))


@pytest.fixture(params=["s3", "gcs"])
def bucket(request: pytest.FixtureRequest) -> tuple[Openings, S3Place | GcsPlace]:
    opening = Openings(PLACES[request.param](request))
    return opening, request.getfixturevalue(f"{request.param}_server")


@pytest.mark.rule("RES-1")
async def test_a_large_body_goes_in_and_out_in_pieces(opening: Openings) -> None:
    """More than one part of an upload, more than is kept in memory."""
    store = opening()
    writer = store.open("e1")
    number, size = 0, 0
    writer.write(b"[0")
    while size < 20_000_000:
        number += 1
        piece = b",%d" % number * 20_000
        writer.write(piece)
        size += len(piece)
    writer.write(b"]")
    reference = await writer.finish()
    assert reference.size == size + 3
    pieces = [len(piece) async for piece in store.pieces(reference)]
    assert (sum(pieces), max(pieces) <= 262_144) == (reference.size, True)


async def test_another_process_finds_the_body(opening: Openings) -> None:
    reference = await opening().put("e1", b'{"a":1}')
    assert await opening().fetch(reference) == {"a": 1}
    assert await opening().remove("e1") == 1
    assert await opening().remove("e1") == 0


async def test_many_at_once_from_the_first(opening: Openings) -> None:
    store = opening()
    references = await asyncio.gather(*(store.put("e1", b"%d" % n) for n in range(16)))
    assert await asyncio.gather(*map(store.fetch, references)) == list(range(16))


async def test_prefixes_of_ids_do_not_mix(opening: Openings) -> None:
    store = opening()
    await store.put("e1", b"1")
    kept = await store.put("e11", b"1")
    assert await store.remove("e1") == 1
    assert await store.fetch(kept) == 1


async def test_a_body_that_was_removed_may_come_again(opening: Openings) -> None:
    store = opening()
    first = await store.put("e1", b"[1]")
    await store.remove("e1")
    with pytest.raises(BodyLost, match="it is not in "):
        await store.fetch(first)
    assert await store.put("e1", b"[1]") == first
    assert await store.fetch(first) == [1]


@pytest.mark.rule("RES-4")
async def test_what_somebody_changed_is_lost(bucket: tuple[Openings, S3Place | GcsPlace]) -> None:
    opening, place = bucket
    store = opening()
    reference = await store.put("e1", b"[1]")
    assert place.bytes_at(f"a/b/{reference.key}") == b"[1]"
    place.put(f"a/b/{reference.key}", b"[2]")
    with pytest.raises(BodyLost, match="does not match its checksum"):
        await store.fetch(reference)
    place.put(f"a/b/{reference.key}", b"[")
    with pytest.raises(BodyLost, match="has 1 bytes now"):
        await store.fetch(reference)
    await store.put("e1", b"[1]")
    assert await store.fetch(reference) == [1], "a body cut short is written again"
    await opening.close_all()


async def test_a_bucket_that_is_not_there_is_named(
    bucket: tuple[Openings, S3Place | GcsPlace],
) -> None:
    opening, _ = bucket
    store = opening(bucket="nowhere", patience=30.0)
    with pytest.raises(
        ResultsUnavailable, match=r"nowhere/a/b: there is no such bucket; check"
    ) as no:
        await store.put("e1", b"[1]")
    assert no.value.refused
    assert await store.remove("e1") == 0
    await opening.close_all()


@pytest.mark.parametrize(
    ("setting", "variable"),
    [("s3://bucket", "AWS_ENDPOINT_URL"), ("gs://bucket", "STORAGE_EMULATOR_HOST")],
)
async def test_a_place_that_is_away_is_waited_for_and_named(
    monkeypatch: pytest.MonkeyPatch, setting: str, variable: str
) -> None:
    monkeypatch.setenv(variable, f"http://{NOBODY}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden-secret")
    store = open_object_results(setting, patience=0.1)
    with pytest.raises(ResultsUnavailable, match=rf"{setting}: .*could not connect") as away:
        await store.put("e1", b"[1]")
    assert "(away for 0 s)" in str(away.value)
    assert not away.value.refused
    assert "hidden-secret" not in str(away.value)
    await store.close()


@pytest.mark.rule("RES-4")
async def test_nats_may_restart_and_lose_its_store() -> None:
    with running() as server:
        objects = NatsObjectStore(server.url)
        store = ResultStore(objects, patience=30.0)
        reference = await store.put("e1", b"[1]")
        server.stop()
        assert server.start()
        assert await store.fetch(reference) == [1], "it lies on the disk of the server"
        await bucket_deleted(server.url, objects)
        with pytest.raises(BodyLost, match=r"it is not in NATS at 127\.0\.0\.1:\d+, bucket"):
            await store.fetch(reference)
        assert await store.remove("e1") == 0
        assert await store.put("e1", b"[1]") == reference
        assert await store.fetch(reference) == [1]
        await store.close()


async def bucket_deleted(url: str, objects: NatsObjectStore) -> None:
    client = Client()
    await client.connect(url)
    await client.jetstream().delete_object_store(objects._bucket.name)
    await client.close()


async def test_nats_that_is_away_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats_objects, "ANSWER", 0.2)
    store = open_object_results("nats", queue=f"nats://user:hidden@{NOBODY}", patience=0.0)
    with pytest.raises(ResultsUnavailable, match=r"NATS at 127\.0\.0\.1:9, bucket ") as refused:
        await store.put("e1", b"[1]")
    await store.close()
    assert "hidden" not in str(refused.value)


async def test_a_store_that_was_never_used_is_closed() -> None:
    await open_object_results("nats", queue=f"nats://{NOBODY}").close()


@pytest.mark.parametrize(
    ("setting", "queue", "says"),
    [
        ("nats", None, "results=nats needs a queue; set NOETL_QUEUE"),
        ("s3://", None, "expected nats, s3://bucket/prefix or gs://bucket/prefix"),
        ("ftp://x", None, "'ftp://x' is not an object store"),
        ("files", None, "'files' is not an object store"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(setting: str, queue: str | None, says: str) -> None:
    with pytest.raises(SettingRefused, match=says):
        open_object_results(setting, queue=queue)


@pytest.mark.parametrize(
    ("setting", "module", "extra"),
    [
        ("nats", "nats", "nats"),
        ("s3://b", "obstore", "s3"),
        ("gs://b", "google.cloud.storage", "gcs"),
    ],
)
def test_a_missing_extra_names_the_command(setting: str, module: str, extra: str) -> None:
    program = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from noetl.adapters.objects.opening import open_object_results\n"
        "from noetl.errors import SettingRefused\n"
        f"try:\n    open_object_results({setting!r}, queue='nats://x')\n"
        "except SettingRefused as refused:\n    print(refused)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert command_for(extra) in told.stdout, told.stderr


def test_without_an_identity_google_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "nowhere.json")
    with pytest.raises(SettingRefused, match=r"identity at Google: .*nowhere\.json"):
        open_object_results("gs://bucket")


async def test_removing_does_not_read_what_others_keep_in_nats(
    request: pytest.FixtureRequest,
) -> None:
    opening = Openings(PLACES["nats"](request))
    store = opening()
    await asyncio.gather(*(store.put(f"other{n}", b"[1]") for n in range(200)))
    await store.put("e1", b"[1]")
    objects = store.objects
    assert isinstance(objects, NatsObjectStore)
    before = objects._line.client.stats["in_msgs"]
    assert await store.remove("e1") == 1
    assert objects._line.client.stats["in_msgs"] - before < 20
    await opening.close_all()


async def test_objects_of_earlier_releases_are_read_and_removed(
    request: pytest.FixtureRequest,
) -> None:
    """They were written by the library, which names their chunks as it likes."""
    opening = Openings(PLACES["nats"](request))
    store = opening()
    objects = store.objects
    assert isinstance(objects, NatsObjectStore)
    await objects._connected()
    bucket = await objects._line.client.jetstream().create_object_store(objects._bucket.name)
    reference = await store.put("e1", b"[1]")
    await store.put("e2", b"[2]")
    assert await store.remove("e1") == 1
    await bucket.put(reference.key, b"[1]")
    assert await store.fetch(reference) == [1]
    assert (await bucket.get((await store.put("e3", b"[3]")).key)).data == b"[3]", "and the reverse"
    assert await store.remove("e1") == 1
    with pytest.raises(BodyLost):
        await store.fetch(reference)
    await opening.close_all()
