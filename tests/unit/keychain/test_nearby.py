"""Secrets of this machine: which variables and files a playbook may name, and which are ours."""

import os
from pathlib import Path

import pytest

from noetl.errors import CredentialMissing
from noetl.keychain.providers.nearby import EnvironmentProvider, FileProvider
from noetl.tools.bounds import Bounds


@pytest.mark.parametrize("name", ["NOETL_QUEUE", "NOETL_KEY", "noetl_token", "NOETL_NEW"])
async def test_no_setting_of_noetl_is_read(name: str) -> None:
    with pytest.raises(CredentialMissing, match="a setting of NoETL itself"):
        await EnvironmentProvider({name: "planted", "OTHER": "x"}).fetch(name, None)
    assert await EnvironmentProvider({"OTHER": "x"}).fetch("OTHER", None) == "x"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("home/key", "beside.key", "free", "files/inside"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"content of {name}\n")
    (tmp_path / "link").symlink_to(tmp_path / "home" / "key")
    (tmp_path / "files" / "link").symlink_to(tmp_path / "free")
    return tmp_path / "home"


@pytest.mark.parametrize(
    "path",
    ["home/key", "home/new", "files/../home/key", "link", "beside.key", "/proc/self/environ"],
)
async def test_no_file_of_noetl_is_read(home: Path, path: str) -> None:
    provider = FileProvider(Bounds(private=(str(home), str(home.parent / "beside.key"))))
    with pytest.raises(CredentialMissing, match="files of NoETL itself"):
        await provider.fetch(str(home.parent / path), None)
    assert await provider.fetch(str(home.parent / "free"), None) == "content of free"


@pytest.mark.parametrize("path", ["{0}/free", "../free", "{0}/files/link", "link", "~/x", "a\0b"])
async def test_the_folder_for_files_bounds_the_provider(home: Path, path: str) -> None:
    files = home.parent / "files"
    provider = FileProvider(Bounds(files=str(files)))
    for inside in ("inside", str(files / "inside")):
        assert await provider.fetch(inside, None) == "content of files/inside"
    with pytest.raises(CredentialMissing, match=r"files|read"):
        await provider.fetch(path.format(home.parent), None)


async def test_a_pipe_stops_no_worker(home: Path) -> None:
    os.mkfifo(home.parent / "pipe")
    with pytest.raises(CredentialMissing, match="it is not a file"):
        await FileProvider(Bounds()).fetch(str(home.parent / "pipe"), None)


async def test_a_file_without_an_end_fills_no_worker(home: Path) -> None:
    """Any task can make one, with holes for content; a secret is small."""
    with (home.parent / "holes").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(CredentialMissing, match="more than 1,048,576 bytes"):
        await FileProvider(Bounds()).fetch(str(home.parent / "holes"), None)
