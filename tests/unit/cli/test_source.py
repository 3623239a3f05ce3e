"""Where text comes from, and where products go."""

import io
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from noetl.cli.dev import tests_of as found_beside
from noetl.cli.output import write
from noetl.cli.source import READ_AT_MOST, read_source
from noetl.errors import UnreadableFile, UnwritableFile


def test_a_file_is_read_as_bytes(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xffa: 1\r\n")
    source = read_source(str(file))
    assert (source.name, source.content) == (str(file), b"\xffa: 1\r\n")


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a: 1")))
    source = read_source("-")
    assert (source.name, source.content) == ("<stdin>", b"a: 1")


def test_a_closed_standard_input_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UnreadableFile, match="it is closed"):
        read_source("-")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing.yaml", "there is no such file or directory; check the path"),
        (".", "it is a directory; name a file inside it"),
        ("file/below.yaml", "a part of its path is a file, not a directory; check the path"),
        ("a" * 300, "file name too long"),
        ("nul\0l", "embedded null byte; check the path"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnreadableFile) as refused:
        read_source(name)
    assert str(refused.value) == f"cannot read '{name}': {said}"


def test_an_endless_file_costs_no_more_than_the_longest_playbook() -> None:
    assert len(read_source("/dev/zero").content) == READ_AT_MOST


def test_a_name_that_is_no_utf_8_can_be_shown(tmp_path: Path) -> None:
    name = f"{tmp_path}/\udcff.yaml"
    Path(name).write_text("a: 1")
    assert read_source(name).name == f"{tmp_path}/\ufffd.yaml"


def test_a_product_goes_to_its_file(tmp_path: Path) -> None:
    write("ümlaut\n", str(tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == "ümlaut\n".encode()


def test_without_a_file_it_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    write("one", None)
    write("two\n", "-")
    assert capsys.readouterr().out == "one\ntwo\n"


def test_what_cannot_be_written_is_refused_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(UnwritableFile, match="it is a directory; name a file inside it"):
        write("x", str(tmp_path))


def test_what_lies_beside_is_read_only_where_it_is_a_file(tmp_path: Path) -> None:
    """Who opens a pipe waits for a writer; a device has no end. A foreign project may hold both."""
    os.mkfifo(tmp_path / "pipe.test.yaml")
    (tmp_path / "endless.test.yaml").symlink_to("/dev/zero")
    (tmp_path / "p.yaml").write_text("a: 1")
    source = read_source(str(tmp_path / "p.yaml"))
    assert source.beside("pipe.test.yaml") is None
    assert source.beside("endless.test.yaml") is None
    assert source.beside("p.yaml") == "a: 1"
    assert found_beside(tmp_path / "p.yaml") == []
