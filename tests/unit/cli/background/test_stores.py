"""The NATS of `noetl up` is for whoever may read the home."""

import json
import socket
import stat
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from noetl.cli.background import stores


def greeted(port: int | None, **user: str | None) -> bool:
    """Whether whoever comes so is let in; in the words of NATS itself."""
    with socket.create_connection(("127.0.0.1", port or 0), 10.0) as peer, peer.makefile() as told:
        assert told.readline().startswith("INFO")
        peer.sendall(f"CONNECT {json.dumps({'verbose': False, **user})}\r\nPING\r\n".encode())
        answer = told.readline()
    assert answer.startswith(("PONG", "-ERR 'Authorization Violation'")), answer
    return answer.startswith("PONG")


def test_it_has_a_password_of_its_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    kept = []
    for _ in range(2):
        with stores.nats(tmp_path, said.append) as url:
            parts = urlsplit(url)
            kept.append(parts.password)
            assert greeted(parts.port, **{"user": parts.username, "pass": parts.password})
            assert not greeted(parts.port)
            assert not greeted(parts.port, **{"user": parts.username, "pass": "wrong"})
            words = Path(f"/proc/{child_of(parts.port)}/cmdline").read_bytes()
            assert (parts.password or "?").encode() not in words
    assert kept[0] is not None
    assert kept[0] == kept[1], "it stays"
    assert kept[0] not in "".join([*said, *capfd.readouterr()])
    for file in (tmp_path / "nats" / "password", tmp_path / "nats" / "server.conf"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def child_of(port: int | None) -> int:
    """The process that was started with this port."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"nats-server") and str(port).encode() in words:
            return int(folder.name)
    raise AssertionError(f"nobody has port {port}")


def test_postgres_says_how_to_get_in(tmp_path: Path) -> None:
    assert stores.way_in(5433, tmp_path) == (
        "PostgreSQL runs at 127.0.0.1:5433, user 'noetl', database 'postgres'; its password is in "
        f"{tmp_path / 'password'}"
    )
