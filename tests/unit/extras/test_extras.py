"""The command that installs an extra fits where NoETL came from."""

import json
import shutil
import sys
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from noetl import extras
from noetl.extras import DISTRIBUTION, EXTRAS, command_for, is_installed, needs

COMMIT = "0123abcd"


def come_from(monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any] | None) -> None:
    """As pip records it (PEP 610); None: from an index."""

    def read_text(self: Distribution, name: str) -> str | None:
        del self
        assert name == "direct_url.json"
        return None if origin is None else json.dumps(origin)

    monkeypatch.setattr("importlib.metadata.PathDistribution.read_text", read_text)
    monkeypatch.setattr(extras, "_installer", lambda: "pip install")


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'noetl-engine[s3]'"),
        ({"url": "file:///src/a%20b", "dir_info": {}}, "pip install '/src/a b[s3]'"),
        (
            {"url": "file:///src/here", "dir_info": {"editable": True}},
            "pip install -e '/src/here[s3]'",
        ),
        (
            {"url": "file:///tmp/n.whl", "archive_info": {}},
            "pip install 'noetl-engine[s3] @ file:///tmp/n.whl'",
        ),
        (
            {"url": "https://h/r.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            f"pip install 'noetl-engine[s3] @ git+https://h/r.git@{COMMIT}'",
        ),
    ],
)
def test_it_is_installed_from_where_the_core_came(
    monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any] | None, command: str
) -> None:
    come_from(monkeypatch, origin)
    assert command_for("s3") == command
    assert needs("'s3'", "s3") == f"'s3' needs an extra: install it with {command}"


def test_the_folder_that_one_stands_in_is_a_dot(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    come_from(monkeypatch, {"url": tmp_path.as_uri(), "dir_info": {"editable": True}})
    assert command_for("mcp") == "pip install -e '.[mcp]'"


def test_what_was_never_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str) -> Distribution:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", nowhere)
    assert command_for("s3").endswith(f" '{DISTRIBUTION}[s3]'")


@pytest.mark.parametrize("on_path", [True, False])
def test_it_goes_into_the_environment_of_this_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, on_path: bool
) -> None:
    here = Path(sys.executable)
    found = str(here.with_name("pip")) if on_path else "/usr/bin/pip"
    monkeypatch.setattr(shutil, "which", lambda _: found)
    words = "pip install " if on_path else f"{here} -m pip install "
    monkeypatch.chdir("/")
    assert command_for("s3").startswith(words if on_path else f"{here.relative_to('/')} -m pip ")
    monkeypatch.chdir(tmp_path)
    assert command_for("s3").startswith(words)


def test_an_environment_without_pip_is_one_of_uv(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.chdir(tmp_path)
    assert command_for("s3").startswith(f"uv pip install --python {sys.executable} ")


def test_what_is_hidden_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(is_installed(extra) for extra in EXTRAS)
    for module in EXTRAS.values():
        monkeypatch.setitem(sys.modules, module, None)
    assert not any(is_installed(extra) for extra in EXTRAS)
