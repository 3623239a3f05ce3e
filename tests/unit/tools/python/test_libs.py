"""Requirements of a task: installed once, seen by its children alone."""

import asyncio
import os
import shutil
import sys
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from tests.unit.tools.python.bench import Bench

pytestmark = pytest.mark.rule("TOOL-3")

READ = "import tiny\nresult = tiny.value"


@pytest.fixture
def wheel(tmp_path: Path) -> str:
    """A requirement that no index is needed for."""
    return wheel_of(tmp_path, "tiny")


def wheel_of(folder: Path, name: str, needs: str = "") -> str:
    path = folder / f"{name}-1.0-py3-none-any.whl"
    about = f"{name}-1.0.dist-info"
    parts = {
        f"{name}.py": "value = 7\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in parts) + f"{about}/RECORD,,\n"
    with zipfile.ZipFile(path, "w") as archive:
        for part, text in {**parts, f"{about}/RECORD": record}.items():
            archive.writestr(part, text)
    return f"{name} @ {path.as_uri()}"


def folders(home: Path) -> list[str]:
    return [entry.name for entry in (home / "libs").iterdir() if entry.is_dir()]


def test_libs_are_found_by_the_task_that_names_them(bench: Bench, wheel: str) -> None:
    assert bench.result(READ, libs=[wheel]) == 7
    missing = "ModuleNotFoundError: No module named 'tiny'; let the task install it: libs: [tiny]"
    assert bench.error(READ)["message"] == missing
    assert bench.result(READ, libs=[wheel]) == 7


def test_libs_are_installed_once(tmp_path: Path, wheel: str) -> None:
    benches = [Bench(tmp_path), Bench(tmp_path)]
    first = benches[0]

    async def all_at_once() -> list[object]:
        calls = [bench.call(READ, libs=[wheel, f" {wheel}"]) for bench in benches]
        outcomes = [outcome.result for outcome in await asyncio.gather(*calls)]
        await benches[1].tool.close()
        return outcomes

    assert first.wait(all_at_once()) == [7, 7]
    [folder] = folders(tmp_path)
    mark = tmp_path / "libs" / folder / "tiny.py"
    mark.write_text("value = 'once'\n", "utf-8")
    assert first.result(READ, libs=[wheel], execution="e2") == "once"
    for bench in benches:
        bench.close()


def test_without_uv_pip_installs(
    bench: Bench, wheel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("uv") is None
    assert bench.result(READ, libs=[wheel]) == 7


def test_the_installer_sees_no_secret(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    fake = tmp_path / "uv"
    fake.write_text(f"#!/bin/sh\n/usr/bin/env > {seen}\necho ERROR: no >&2\nexit 1\n", "utf-8")
    fake.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("NOETL_KEY", "secret")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    error = bench.error(READ, libs=["tiny"])
    assert error["message"] == "libs cannot be installed (tiny): no"
    assert "https_proxy=http://127.0.0.1:9" in seen.read_text("utf-8")
    assert "secret" not in seen.read_text("utf-8")


@pytest.mark.parametrize(
    ("lib", "kind", "retryable"),
    [
        ("--index-url=http://127.0.0.1:9/", "input", False),
        ("", "input", False),
        ("tiny @ file:///missing/tiny-1.0-py3-none-any.whl", "python", False),
        ("not a requirement!", "python", False),
        ("tiny", "python", True),
    ],
)
def test_what_cannot_be_installed_is_told(
    bench: Bench,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lib: str,
    kind: str,
    retryable: bool,
) -> None:
    # The uv beside this Python, wherever the machine has another one or none.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    error = bench.error(READ, libs=[lib])
    assert (error["kind"], error["retryable"]) == (kind, retryable)
    assert lib in error["message"]
    assert not (tmp_path / "libs").exists() or folders(tmp_path) == []


@pytest.mark.parametrize(
    "lib",
    [
        "x @ https://127.0.0.1:9/x.tar.gz#.whl",
        "x @ https://127.0.0.1:9/x.tar.gz?as=x.whl",
        "x @ https://127.0.0.1:9/x.whl/x.tar.gz",
        "x @ git+https://127.0.0.1:9/x.whl",
        "git+file:///srv/x.git#egg=x.whl",
        "x @ file:///srv/x ; 'a.whl' != 'b'",
        "./x .whl",
        "file:%2Fsrv%2Fx-1.0.tar.gz",
        "git+file:%2Fsrv%2Fx",
        "{folder}",
        "x @ file://{folder}",
    ],
)
def test_what_is_a_wheel_in_words_alone_is_not_installed(
    bench: Bench, tmp_path: Path, lib: str
) -> None:
    """Anything else is built, which runs code of the package."""
    folder = tmp_path / "x.whl"
    folder.mkdir()
    error = bench.error(READ, libs=[lib.format(folder=folder)])
    assert error["kind"] == "input"
    assert "which is not a wheel" in error["message"]


BACKEND = """
import pathlib
def get_requires_for_build_wheel(settings=None):
    pathlib.Path(BUILT).touch()
    return []
def build_wheel(folder, settings=None, metadata=None):
    pathlib.Path(BUILT).touch()
"""


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_nor_is_what_a_wheel_depends_on(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installer: str
) -> None:
    """An address in its metadata says where to find it, and pip would build that."""
    uv = Path(sys.executable).parent
    monkeypatch.setenv("PATH", str(tmp_path if installer == "pip" else uv))
    assert (shutil.which("uv") is None) is (installer == "pip")
    source, built = tmp_path / "spy-1.0.tar.gz", tmp_path / "built"
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\n'
        'backend-path = ["."]\n[project]\nname = "spy"\nversion = "1.0"\n',
        "backend.py": f"BUILT = {str(built)!r}\n{BACKEND}",
        "PKG-INFO": "Metadata-Version: 2.1\nName: spy\nVersion: 1.0\n",
    }
    with tarfile.open(source, "w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(f"spy-1.0/{name}")
            info.size = len(text)
            archive.addfile(info, BytesIO(text.encode()))
    outer = wheel_of(tmp_path, "outer", f"Requires-Dist: spy @ {source.as_uri()}\n")

    error = bench.error("result = 1", libs=[outer])

    assert "the worker installs wheels only" in error["message"]
    assert not built.exists()


CHANGE = """
import pathlib
result = 0
for path in pathlib.Path(user).rglob("*"):
    if path.is_file() and path.suffix in (".py", ".pyc", ".whl", ".body"):
        path.write_text("value = 'evil'")
        result += 1
"""


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_no_task_changes_what_is_installed_for_others_later(
    tmp_path: Path, wheel: str, monkeypatch: pytest.MonkeyPatch, installer: str
) -> None:
    """The usual caches of installers are files of the user, as tasks are processes of his."""
    user = tmp_path / "user"
    user.mkdir()
    monkeypatch.setenv("HOME", str(user))
    for name in ("UV_CACHE_DIR", "PIP_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path if installer == "pip" else Path(sys.executable).parent
    monkeypatch.setenv("PATH", str(path))
    answers = []
    for home in ("one", "two"):
        (tmp_path / home).mkdir()
        bench = Bench(tmp_path / home)
        answers.append(bench.result(READ, libs=[wheel]))
        bench.result(CHANGE, user=str(user))
        assert [entry.suffix for entry in (tmp_path / home / "libs").iterdir()].count("") == 1
        bench.close()
    assert answers == [7, 7]
    assert [path for path in user.rglob("*") if path.is_file()] == []


def test_an_installation_that_takes_too_long_is_ended(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "uv"
    fake.write_text("#!/bin/sh\n/bin/sleep 600\n", "utf-8")
    fake.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    message = "libs were not installed within 0.2 s"
    error = {"kind": "timeout", "message": message, "retryable": True}
    assert bench.error(READ, libs=["tiny"], total=0.2) == error
    assert folders(tmp_path) == []


def test_a_home_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "libs").write_text("in the way", "utf-8")
    bench = Bench(tmp_path)
    error = bench.error(READ, libs=["tiny"])
    bench.close()
    assert error["message"].startswith(f"libs cannot be installed below {tmp_path / 'libs'}: ")
