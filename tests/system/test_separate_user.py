"""Whose rights the code of playbooks has: those of whoever started the worker (trust model)."""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.system.program import NOETL, ROOT
from tests.system.servers import NEUTRAL, Node, node

from noetl.cli.background.serving import AS_ROOT

KEY = base64.b64encode(b"planted-master-key-of-32-bytes!!").decode()
OTHER = 65534
"""A user who owns nothing here."""
PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: whose, path: tests/whose}
workload: {paths: [], pid: 0}
workflow:
  - step: start
    tool:
      - look:
          kind: python
          args: {paths: "{{ workload.paths }}", pid: "{{ workload.pid }}"}
          code: |
            import os
            result = {"user": os.getuid(), "reached": []}
            for path in paths:
                try:
                    (os.listdir if os.path.isdir(path) else open)(path)
                    result["reached"].append(path)
                except OSError:
                    pass
            try:
                os.kill(pid, 0)
                result["reached"].append(pid)
            except OSError:
                pass
"""
OPENED = """
set -e
while [ "$1" != -- ]; do
    hold=$(mktemp -d)
    mount --bind "$2" "$hold"
    mount -t tmpfs -o mode=755 tmpfs "$1"
    mkdir -p "$2"
    mount --move "$hold" "$2"
    shift 2
done
shift
exec "$@"
"""
"""Pairs of a folder that others cannot enter, and what of it they are to see; then a command."""


@contextmanager
def open_folder() -> Iterator[Path]:
    """One that every user can enter: what is private in it is so by itself."""
    folder = Path(tempfile.mkdtemp(prefix="noetl-users-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def as_other(*words: str) -> list[str]:
    """The command that runs these words as that user, who finds Python and this repository."""
    shown: list[str] = []
    for needed in (Path(sys.base_prefix).resolve(), ROOT):
        closed = [one for one in reversed(needed.parents) if not one.stat().st_mode & 0o001]
        shown += [str(closed[0]), str(needed)] if closed else []
    user = ("--reuid", str(OTHER), "--regid", str(OTHER), "--clear-groups")
    opened = ("unshare", "--mount", "--propagation", "private", "sh", "-c", OPENED, "opened")
    return [*opened, *shown, "--", "setpriv", *user, *words]


def asked(up: Node, folder: Path, **paths: Any) -> dict[str, Any]:
    """What a task finds of the server and its home."""
    (folder / "whose.yaml").write_text(PLAYBOOK)
    (folder / "payload.json").write_text(json.dumps(paths))
    assert up.there("register", folder / "whose.yaml").code == 0
    given = ("--payload", str(folder / "payload.json"), "--wait", "--json")
    answer = up.there("execute", "tests/whose", *given)
    assert answer.code == 0, answer
    found: dict[str, Any] = answer.objects()[-1]["result"]
    return found


@contextmanager
def worker_of_another(up: Node, home: Path) -> Iterator[int]:
    """A worker with a user, a home and a token of its own; its process."""
    token = up.here("server", "token", "add", "apart", "--role", "worker").out.strip()
    home.mkdir()
    os.chown(home, OTHER, OTHER)
    given = {"NOETL_HOME": str(home), "NOETL_TOKEN": token, "NOETL_NAMESPACES": "off"}
    words = as_other(NOETL, "worker", "start", "--foreground", "--server", up.url)
    with (home.parent / "worker.log").open("wb") as said:
        worker = subprocess.Popen(
            words, env={**os.environ, **NEUTRAL, **given}, stdout=said, stderr=said, cwd=home
        )
    try:
        yield worker.pid
    finally:
        worker.terminate()
        worker.wait(600)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A server with a worker, and its key in the environment."""
    folder = tmp_path_factory.mktemp("served")
    with ExitStack() as running:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NOETL_KEY", KEY)
            up = running.enter_context(node(folder / "home", workers=1))
        yield up


@pytest.mark.rule("CLI-2")
def test_workers_of_a_server_have_its_user_and_root_is_told(served: Node, tmp_path: Path) -> None:
    assert asked(served, tmp_path)["user"] == os.geteuid()
    said = (served.home / "run" / "server.log").read_text()
    assert (AS_ROOT in said) == (os.geteuid() == 0)


def family_of(pid: int) -> list[int]:
    """A process and those that it began."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in family_of(int(child)))]


@pytest.mark.rule("KEY-2")
def test_keys_are_in_no_environment_and_no_dump(served: Node) -> None:
    """Of a server and its workers, whoever asks: root can read what nobody else can."""
    family = family_of(served.status()["pid"])
    assert len(family) >= 2
    for pid in family:
        assert "Max core file size        0 " in Path(f"/proc/{pid}/limits").read_text()
        try:
            found = Path(f"/proc/{pid}/environ").read_bytes()
        except PermissionError:
            assert os.geteuid() != 0
        else:
            assert KEY.encode() not in found
            assert b"NOETL_TOKEN=noetl" not in found


@pytest.mark.rule("CLI-2", "WRK-1")
def test_a_worker_of_another_user_keeps_its_tasks_from_the_server() -> None:
    """As docs/operate/trust-model.md says to start it; without any isolation but the user's."""
    with open_folder() as folder, node(folder / "home", workers=0) as up:
        up.here("credential", "add", "c", "--kind", "generic", "--stdin", stdin=b'{"value": "x"}')
        server = up.status()["pid"]
        private = [folder / "home" / name for name in ("", "key", "token", "noetl.db", "run")]
        assert all(path.exists() for path in private)
        paths = [*map(str, private), f"/proc/{server}/environ", f"/proc/{server}/mem"]
        with worker_of_another(up, folder / "worker") as pid:
            found = asked(up, folder, paths=paths, pid=server)
            assert found == {"user": OTHER, "reached": []}
            assert Path(f"/proc/{pid}").stat().st_uid == OTHER
