"""Bodies as objects: large ones, places that refuse or are away, and settings that cannot be."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.support.gcs import GcsPlace
from tests.support.nats import running
from tests.support.s3 import S3Place
from tests.unit.adapters.objects.places import PLACES, Opening, closing_all

from noetl.adapters.nats import shelf as shelf_module
from noetl.adapters.nats.library import Client
from noetl.adapters.nats.shelf import NatsShelf
from noetl.adapters.objects.opening import open_object_results
from noetl.adapters.objects.result_store import ObjectResultStore
from noetl.adapters.objects.shelf import Away, Refused, tried
from noetl.errors import BodyLost, LogUnavailable, SettingRefused

NOBODY = "127.0.0.1:9"


@pytest.fixture(params=PLACES)
def opening(request: pytest.FixtureRequest) -> Iterator[Opening]:
    with closing_all(PLACES[request.param](request)) as opened:
        yield opened


@pytest.mark.rule("RES-1")
async def test_a_large_body_goes_in_and_out_in_pieces(opening: Opening) -> None:
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
    pieces = [len(piece) for piece in store.pieces(reference)]
    assert (sum(pieces), max(pieces) <= 262_144) == (reference.size, True)


async def test_another_process_finds_the_body(opening: Opening) -> None:
    reference = await opening().put("e1", b'{"a":1}')
    assert await opening().fetch(reference) == {"a": 1}
    assert await opening().remove("e1") == 1
    assert await opening().remove("e1") == 0


async def test_many_at_once_from_the_first(opening: Opening) -> None:
    store = opening()
    references = await asyncio.gather(*(store.put("e1", b"%d" % n) for n in range(16)))
    assert await asyncio.gather(*map(store.fetch, references)) == list(range(16))


async def test_prefixes_of_ids_do_not_mix(opening: Opening) -> None:
    store = opening()
    await store.put("e1", b"1")
    kept = await store.put("e11", b"1")
    assert await store.remove("e1") == 1
    assert await store.fetch(kept) == 1


async def test_a_body_that_was_removed_may_come_again(opening: Opening) -> None:
    store = opening()
    first = await store.put("e1", b"[1]")
    await store.remove("e1")
    with pytest.raises(BodyLost, match="it is not in "):
        await store.fetch(first)
    assert await store.put("e1", b"[1]") == first
    assert await store.fetch(first) == [1]


@pytest.mark.rule("RES-4")
@pytest.mark.parametrize("name", ["s3", "gcs"])
async def test_what_somebody_changed_is_lost(request: pytest.FixtureRequest, name: str) -> None:
    place: S3Place | GcsPlace = request.getfixturevalue(f"{name}_server")
    with closing_all(PLACES[name](request)) as opening:
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


@pytest.mark.parametrize("name", ["s3", "gcs"])
async def test_a_bucket_that_is_not_there_is_named(
    request: pytest.FixtureRequest, name: str
) -> None:
    with closing_all(PLACES[name](request)) as opening:
        store = opening(bucket="nowhere", patience=0.0)
        with pytest.raises(LogUnavailable, match=r"nowhere/a/b: there is no such bucket; check"):
            await store.put("e1", b"[1]")
        assert await store.remove("e1") == 0


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
    with pytest.raises(LogUnavailable, match=rf"{setting}: .*found no connection") as refused:
        await store.put("e1", b"[1]")
    assert "hidden-secret" not in str(refused.value)
    store.close()


@pytest.mark.rule("RES-4")
async def test_nats_may_restart_and_lose_its_store() -> None:
    with running() as server:
        shelf = NatsShelf(server.url, patience=30.0)
        store = ObjectResultStore(shelf)
        reference = await store.put("e1", b"[1]")
        server.stop()
        assert server.start()
        assert await store.fetch(reference) == [1], "it lies on the disk of the server"
        await shelf_stream_deleted(server.url, shelf)
        with pytest.raises(BodyLost, match=r"it is not in NATS at 127\.0\.0\.1:\d+, bucket"):
            await store.fetch(reference)
        assert await store.remove("e1") == 0
        assert await store.put("e1", b"[1]") == reference
        assert await store.fetch(reference) == [1]
        store.close()


async def shelf_stream_deleted(url: str, shelf: NatsShelf) -> None:
    client = Client()
    await client.connect(url)
    await client.jetstream().delete_object_store(shelf._bucket)
    await client.close()


async def test_nats_that_is_away_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf_module, "ANSWER", 0.2)
    store = open_object_results("nats", queue=f"nats://user:hidden@{NOBODY}", patience=0.0)
    with pytest.raises(LogUnavailable, match=r"NATS at 127\.0\.0\.1:9, bucket ") as refused:
        await store.put("e1", b"[1]")
    store.close()
    assert "hidden" not in str(refused.value)


def test_a_store_that_was_never_used_is_closed() -> None:
    open_object_results("nats", queue=f"nats://{NOBODY}").close()


@pytest.mark.parametrize(
    ("setting", "queue", "says"),
    [
        ("nats", None, "results=nats needs a queue; set NOETL_QUEUE"),
        ("s3://", None, "expected nats, s3://bucket/prefix or gs://bucket/prefix"),
        ("ftp://x", None, "'ftp://x' is no store of objects"),
        ("files", None, "'files' is no store of objects"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(setting: str, queue: str | None, says: str) -> None:
    with pytest.raises(SettingRefused, match=says):
        open_object_results(setting, queue=queue)


@pytest.mark.parametrize(
    ("setting", "module", "extra"),
    [
        ("nats", "nats", "noetl[nats]"),
        ("s3://b", "obstore", "noetl[s3]"),
        ("gs://b", "google.cloud.storage", "noetl[gcs]"),
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
    assert f"pip install '{extra}'" in told.stdout, told.stderr


def test_without_an_identity_google_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "nowhere.json")
    with pytest.raises(SettingRefused, match=r"identity at Google: .*nowhere\.json"):
        open_object_results("gs://bucket")


def test_who_is_away_is_tried_again_and_who_refuses_is_not() -> None:
    answers: list[Exception | int] = [Away("later"), Away("later"), 7, Refused("never"), 8]

    def act() -> int:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert tried("there", act, patience=30.0) == 7
    with pytest.raises(LogUnavailable, match="stored in or read from there: never; check"):
        tried("there", act, patience=30.0)
    assert answers == [8]
