"""What no playbook writes to: the files of the program, whose code runs without bounds."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.workplace import call_of

from noetl.kinds.code import ContainerInputs
from noetl.tools.container import orders
from noetl.tools.container.orders import order_of
from noetl.tools.paths import whole_file
from noetl.tools.process.inside.program_files import program_folders
from noetl.tools.refusal import Refusal
from noetl.tools.storage.tool import ending


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the program installed in it, as many have it."""
    folder = tmp_path / ".venv"
    (folder / "lib").mkdir(parents=True)
    monkeypatch.setattr("noetl.tools.paths.program_folders", lambda: [str(folder)])
    monkeypatch.setattr(orders, "program_folders", lambda: [str(folder)])
    return folder


def test_no_download_is_written_there(program: Path) -> None:
    planted = whole_file(program / "lib" / "planted.pth")
    with pytest.raises(Refusal, match="files of the program itself"), planted:
        pytest.fail("it was opened")
    assert list((program / "lib").iterdir()) == []
    with whole_file(program.parent / "data") as file:
        file.write(b"free")


@pytest.mark.parametrize("source", [".", ".venv", ".venv/lib"])
@pytest.mark.parametrize("read_only", [True, False])
def test_no_container_writes_there(program: Path, source: str, read_only: bool) -> None:
    mount = {"source": source, "target": "/data", "read_only": read_only}
    inputs = ContainerInputs(image="alpine:3", mounts=[mount])
    call = call_of(inputs, folder=str(program.parent))
    if read_only:
        assert order_of(call).binds[0].read_only
        return
    with pytest.raises(Refusal, match="files of the program itself"):
        order_of(call)


def test_the_folders_of_the_program_are_known() -> None:
    """Those that this user can write to; none lies in another."""
    found = program_folders()
    for folder in found:
        assert Path(folder).is_dir()
        assert not any(Path(folder).is_relative_to(one) for one in found if one != folder)


def test_an_object_without_an_end_has_one() -> None:
    async def sent() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1000

    async def read() -> int:
        return sum([len(piece) async for piece in ending(sent(), 10_500)])

    with pytest.raises(Refusal, match="longer than the 10500 bytes"):
        asyncio.run(read())
