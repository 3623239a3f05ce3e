"""
DIA: playbooks as they are met in public, written anew, run to the result that they had.

One file of `playbooks/shapes` is one shape: its text, and what it comes to.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.conformance.cases import FOLDER
from tests.conformance.migrations import assert_settled, whole
from tests.support.http_server import HttpServer
from tests.support.one_run import run_file

from noetl.playbook.dialects.migrate import migrate

FILES = sorted((FOLDER / "shapes").glob("*.yaml"))
SERVER = "http://127.0.0.1:8080"
"""Where the texts look for a server; each test has its own."""
LEAST = 150


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text, the result of its run, and the codes of the warnings that its translation gives."""

    text: str
    result: Any
    warned: tuple[str, ...] = ()
    files: dict[str, str] = {}
    """Files beside the playbook."""


def assert_comes_to(shape: Shape, text: str, folder: Path) -> None:
    made = migrate(whole(text.replace("FOLDER", str(folder))), read=shape.files.get)
    assert made.complete, made.findings
    assert {one.code for one in made.findings} <= {*shape.warned, "sql-template", "code-template"}
    assert_settled(made)
    file = folder / "playbook.yaml"
    file.write_text(made.text)
    run, _ = asyncio.run(run_file(file, folder / "home"))
    assert run.status == "completed", (run.error, made.text)
    assert run.result == shape.result, made.text


def shape_in(path: Path) -> Shape:
    return msgspec.yaml.decode(path.read_bytes(), type=Shape)


def asks_a_server(path: Path) -> bool:
    return SERVER in path.read_text()


@pytest.mark.rule("DIA-UP", "DIA-S2", "DIA-S4")
@pytest.mark.parametrize(
    "path", [path for path in FILES if not asks_a_server(path)], ids=lambda path: path.stem
)
def test_a_shape_comes_to_its_result(path: Path, tmp_path: Path) -> None:
    shape = shape_in(path)
    assert_comes_to(shape, shape.text, tmp_path)


@pytest.mark.rule("DIA-UP")
@pytest.mark.parametrize(
    "path", [path for path in FILES if asks_a_server(path)], ids=lambda path: path.stem
)
def test_a_shape_asks_its_server(
    path: Path, tmp_path: Path, http_server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHAPE_TOKEN", json.dumps({"token": "open-sesame", "key": "open-sesame"}))
    shape = shape_in(path)
    assert_comes_to(shape, shape.text.replace(SERVER, http_server.url), tmp_path)


def test_there_are_many_shapes() -> None:
    assert len(FILES) >= LEAST
