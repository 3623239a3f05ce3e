"""A module is found and read as Python finds and reads it, only in fewer steps."""

import os
import py_compile
import sys
import zipfile
import zipimport
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

import pytest

from noetl import module_files
from noetl.module_files import FreshLoader, find_source, names_in, others_in

MODULE = "package.part"


@pytest.fixture(autouse=True)
def _unlisted() -> None:
    forget()


def forget() -> None:
    names_in.cache_clear()
    others_in.cache_clear()


def write(folder: Path, name: str, text: str = "value = 1\n") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def compiled(folder: Path, name: str, text: str = "value = 1\n") -> Path:
    return Path(py_compile.compile(str(write(folder, name, text)), doraise=True) or "")


def found(folder: Path, name: str = MODULE) -> ModuleSpec | None:
    return find_source(name, [str(folder)])


def value_in(spec: ModuleSpec | None) -> object:
    assert spec is not None
    assert isinstance(spec.loader, FreshLoader)
    code = spec.loader.get_code(spec.name)
    assert code is not None
    names: dict[str, object] = {}
    exec(code, names)
    return names["value"]


@pytest.mark.parametrize("file", ["part.py", "part/__init__.py"])
def test_what_is_found_is_what_python_finds(file: str, tmp_path: Path) -> None:
    write(tmp_path, file)
    ours, pythons = found(tmp_path), PathFinder.find_spec(MODULE, [str(tmp_path)])
    assert ours is not None
    assert pythons is not None
    for field in ("name", "origin", "cached", "has_location", "submodule_search_locations"):
        assert getattr(ours, field) == getattr(pythons, field), field
    assert value_in(ours) == 1


@pytest.mark.parametrize(
    "files",
    [
        (),
        ("part/other.py",),
        ("part.cpython-311-x86_64-linux-gnu.so", "part.py"),
        ("part.abi3.so", "part.py"),
        ("part.pyc",),
        ("part/__init__.pyc",),
    ],
    ids=lambda files: " and ".join(files) or "nothing",
)
def test_what_is_not_plain_source_is_left_to_python(files: tuple[str, ...], tmp_path: Path) -> None:
    for file in files:
        write(tmp_path, file)
    assert found(tmp_path) is None


def test_of_several_folders_the_first_with_the_name_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "first", "another.py")
    write(tmp_path / "second", "part.py")
    write(tmp_path / "third", "part/__init__.py")
    folders = [str(tmp_path / name) for name in ("first", "second", "third")]
    monkeypatch.setattr(sys, "path", folders)
    for spec in (find_source("part", None), find_source(MODULE, folders)):
        assert spec is not None
        assert spec.origin == str(tmp_path / "second" / "part.py")
    write(tmp_path / "first", "part.pyc")
    forget()
    assert find_source("part", None) is None


def test_folders_in_which_python_does_not_look_itself_are_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, away = str(tmp_path), "/nowhere.zip"
    write(tmp_path, "part.py")
    monkeypatch.setitem(sys.path_importer_cache, away, None)
    assert find_source("part", [away, here]) is not None
    for other in ("", "relative", "/a path that only a hook knows"):
        assert find_source("part", [other, here]) is None
    forget()
    monkeypatch.setitem(sys.path_importer_cache, here, zipimporter_of(tmp_path))
    assert find_source("part", [here]) is None


def zipimporter_of(folder: Path) -> zipimport.zipimporter:
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        archive.writestr("other.py", "")
    return zipimport.zipimporter(str(folder / "all.zip"))


def test_a_module_in_an_archive_is_left_to_python(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("package/part.py", "value = 1\n")
    assert found(tmp_path / "all.zip" / "package") is None


def test_what_is_compiled_and_fresh_is_read_and_the_source_is_not(tmp_path: Path) -> None:
    compiled(tmp_path, "part.py", "value = 1\n")
    source = tmp_path / "part.py"
    when = source.stat()
    source.write_text("value = 2\n")
    os.utime(source, ns=(when.st_atime_ns, when.st_mtime_ns))
    assert value_in(found(tmp_path)) == 1


def changed(source: Path, _cached: Path) -> None:
    source.write_text("value = 'new'\n")


def touched(source: Path, _cached: Path) -> None:
    """Another time of the source, which is as long as before."""
    source.write_text("value = 2\n")
    os.utime(source, (1, 1))


def of_another_python(_source: Path, cached: Path) -> None:
    cached.write_bytes(b"\0\0\r\n" + cached.read_bytes()[4:])


def by_its_hash(source: Path, _cached: Path) -> None:
    py_compile.compile(
        str(source), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH
    )


def empty(_source: Path, cached: Path) -> None:
    cached.write_bytes(b"")


def missing(_source: Path, cached: Path) -> None:
    cached.unlink()


@pytest.mark.parametrize(
    ("spoil", "value"),
    [
        (changed, "new"),
        (touched, 2),
        (of_another_python, 1),
        (by_its_hash, 1),
        (empty, 1),
        (missing, 1),
    ],
)
def test_what_is_not_fresh_is_python_s_to_read(
    spoil: Callable[[Path, Path], None], value: object, tmp_path: Path
) -> None:
    cached = compiled(tmp_path, "part.py")
    spoil(tmp_path / "part.py", cached)
    assert module_files.fresh_code(str(tmp_path / "part.py")) is None
    assert value_in(found(tmp_path)) == value


def test_what_was_compiled_elsewhere_names_the_file_where_it_is(tmp_path: Path) -> None:
    """Else a traceback would show lines of another file, or none."""
    compiled(tmp_path / "old", "part.py")
    (tmp_path / "old").rename(tmp_path / "new")
    spec = found(tmp_path / "new")
    assert spec is not None
    assert isinstance(spec.loader, FreshLoader)
    code = spec.loader.get_code(MODULE)
    assert code is not None
    assert code.co_filename == str(tmp_path / "new" / "part.py")


@pytest.mark.parametrize("usual", [True, False])
def test_a_python_that_keeps_what_is_compiled_elsewhere_is_not_disturbed(
    usual: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module_files, "AS_USUAL", usual)
    write(tmp_path, "part.py")
    assert (found(tmp_path) is not None) is usual
    assert sys.flags.optimize == 0
