"""Where the library finds the playbook that a task calls (TOOL-1, decision 0041)."""

import asyncio
from pathlib import Path

import pytest

from noetl.adapters.memory.storage import MemoryStorage
from noetl.errors import PlaybookNotFound, UnreadableFile
from noetl.server.library import Found, Library, beside
from noetl.server.registering import registered
from noetl.tools.bounds import Bounds

TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: child, path: {path}}}
workflow: [{{step: start, tool: [{{one: {{kind: noop}}}}]}}]
"""


@pytest.mark.parametrize(
    ("parent", "path", "meant"),
    [
        ("orders/pack", "ship.yaml", "orders/ship"),
        ("orders/pack", "ship.yml", "orders/ship"),
        ("orders/pack", "ship", "orders/ship"),
        ("orders/pack", "by/sea.yaml", "orders/by/sea"),
        ("orders/pack", "../stock/count.yaml", "stock/count"),
        ("pack", "ship.yaml", "ship"),
    ],
)
def test_a_file_beside_the_parent_has_a_path_in_the_catalog(
    parent: str, path: str, meant: str
) -> None:
    assert beside(parent, path) == meant


def found(
    path: str,
    *,
    version: str | None = None,
    folder: str | None = None,
    bounds: Bounds | None = None,
) -> Found:
    """What a task of `orders/pack` gets, where `orders/ship` and `plain` are registered."""

    async def look() -> Found:
        home = MemoryStorage()
        for one in ("orders/ship", "plain"):
            await registered(home, TEXT.format(path=one))
        return await Library(home, bounds).child(path, version, "orders/pack", folder)

    return asyncio.run(look())


@pytest.mark.parametrize("path", ["orders/ship", "ship.yaml", "ship", "plain"])
def test_a_parent_of_the_catalog_finds_its_child_there(path: str) -> None:
    child = found(path)
    assert (child.folder, child.version) == (None, "1")
    assert f"path: {'plain' if path == 'plain' else 'orders/ship'}}}" in child.text


def test_no_file_is_read_for_a_parent_of_the_catalog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "near.yaml").write_text(TEXT.format(path="near"))
    monkeypatch.chdir(tmp_path)
    for path in ("near.yaml", str(tmp_path / "near.yaml")):
        with pytest.raises(PlaybookNotFound, match="register it with `noetl register FILE`"):
            found(path)
    assert found("near.yaml", folder=str(tmp_path)).folder == str(tmp_path)


def test_a_parent_of_a_file_takes_no_neighbour_of_the_catalog(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="looked in the catalog and in"):
        found("ship.yaml", folder=str(tmp_path))


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("2", "no version of 'orders/ship' is called '2'; there are: 1"),
        ("new", "no version of 'orders/ship' is called 'new'; there are: 1"),
    ],
)
def test_a_version_that_is_not_there_is_told(version: str, says: str) -> None:
    with pytest.raises(PlaybookNotFound, match=says):
        found("ship.yaml", version=version)


@pytest.mark.parametrize("path", ["/etc/passwd", "../other.yaml", "../other", "link.yaml", "a\0b"])
@pytest.mark.parametrize("files", [False, True])
def test_a_child_s_file_lies_where_files_of_a_playbook_may_lie(
    tmp_path: Path, path: str, files: bool
) -> None:
    folder = tmp_path / "files" / "books"
    folder.mkdir(parents=True)
    for name in ("files/other.yaml", "secret.yaml", "files/books/near.yaml"):
        (tmp_path / name).write_text(TEXT.format(path=name))
    (folder / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    bounds = Bounds(files=str(tmp_path / "files") if files else None)
    assert found("near", folder=str(folder), bounds=bounds).folder == str(folder)
    if files and "other" in path:
        assert "other" in found(path, folder=str(folder), bounds=bounds).text
        return
    with pytest.raises(UnreadableFile, match=r"files|folder|read"):
        found(path, folder=str(folder), bounds=bounds)


def test_a_child_is_no_file_of_noetl_itself(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "key").write_text("planted")
    with pytest.raises(UnreadableFile, match="files of NoETL itself"):
        found("home/key", folder=str(tmp_path), bounds=Bounds(private=(str(tmp_path / "home"),)))
