"""What is particular to results in files: durable, bounded, healed, cleaned up."""

import asyncio
import os
import tempfile
import tracemalloc
from pathlib import Path

import pytest

from noetl.adapters.files.object_store import FileObjectStore
from noetl.errors import BodyLost, ResultsUnavailable
from noetl.ports.result_store import ResultStore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "results"


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


async def test_a_body_is_a_file_named_by_its_checksum(folder: Path) -> None:
    reference = await ResultStore(FileObjectStore(folder)).put("e1", b"[1]")
    assert reference.store == "files"
    assert files_below(folder) == [f"{reference.key}.json"]
    assert (folder / f"{reference.key}.json").read_bytes() == b"[1]"


async def test_the_file_is_durable_before_its_name_and_the_name_before_the_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    sync, rename = os.fsync, Path.rename

    def seen_sync(descriptor: int) -> None:
        named = os.readlink(f"/proc/self/fd/{descriptor}")
        order.append(f"sync {Path(named).suffix or Path(named).name}")
        sync(descriptor)

    def seen_rename(path: Path, target: Path) -> Path:
        order.append("rename")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", seen_sync)
    monkeypatch.setattr(Path, "rename", seen_rename)
    await ResultStore(FileObjectStore(folder)).put("e1", b"[1]")
    assert order == ["sync .part", "rename", "sync e1", "sync results"]


async def test_a_damaged_body_is_lost_until_it_is_stored_again(folder: Path) -> None:
    store = ResultStore(FileObjectStore(folder))
    reference = await store.put("e1", b"[1, 2]")
    path = folder / f"{reference.key}.json"
    for damage in (b"[1, 3]", b"[1, 2", b""):
        path.write_bytes(damage)
        with pytest.raises(BodyLost, match=reference.key):
            await store.fetch(reference)
    await store.put("e1", b"[1, 2]")
    assert await store.fetch(reference) == [1, 2]


async def test_a_body_that_is_no_json_is_named(folder: Path) -> None:
    store = ResultStore(FileObjectStore(folder))
    writer = store.open("e1")
    writer.write(b"nonsense")
    reference = await writer.finish()
    with pytest.raises(BodyLost, match=f"{reference.key} .* is not JSON"):
        await store.fetch(reference)


async def test_nothing_is_left_of_what_was_discarded_or_cut_off(folder: Path) -> None:
    store = ResultStore(FileObjectStore(folder))
    discarded = store.open("e1")
    discarded.write(b"[1")
    await discarded.discard()
    assert files_below(folder) == []
    (folder / "e1").mkdir(parents=True)
    (folder / "e1" / "0123.part").write_bytes(b"[1")  # of a process that died
    assert await store.remove("e1") == 0
    assert not (folder / "e1").exists()


async def test_equal_bodies_are_written_once(folder: Path) -> None:
    store = ResultStore(FileObjectStore(folder))
    references = await asyncio.gather(*(store.put("e1", b"[1]") for _ in range(5)))
    path = folder / f"{references[0].key}.json"
    written = path.stat().st_ino
    await ResultStore(FileObjectStore(folder)).put("e1", b"[1]")
    assert path.stat().st_ino == written
    assert len(files_below(folder)) == 1


async def test_a_long_stream_needs_little_memory(folder: Path) -> None:
    writer = ResultStore(FileObjectStore(folder)).open("e1")
    piece = b" " * 65_536
    writer.write(b"[")
    tracemalloc.start()
    for _ in range(320):
        writer.write(piece)
    writer.write(b"]")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    reference = await writer.finish()
    assert reference.size == 320 * 65_536 + 2
    assert peak < 6_000_000


async def test_a_folder_that_cannot_be_written_is_named(folder: Path) -> None:
    folder.write_text("a file in the way")
    store = ResultStore(FileObjectStore(folder))
    words = f"stored in or read from {folder}: Not a directory; free space or make the folder"
    with pytest.raises(ResultsUnavailable, match=words) as no:
        await store.put("e1", b"1")
    assert no.value.refused
    writer = store.open("e1")
    writer.write(b"1")
    with pytest.raises(ResultsUnavailable, match=words):
        await writer.finish()
    await writer.discard()


async def test_a_folder_for_temporary_files_that_is_full_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    writer = ResultStore(FileObjectStore(folder)).open("e1")
    with pytest.raises(ResultsUnavailable, match="cannot be set aside: No such file"):
        writer.write(b" " * 5_000_000)
    await writer.discard()
