"""What a task of the installed program can reach of the process that runs it (trust model)."""

import base64
import json
import shutil
import tarfile
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.system.program import ROOT, noetl

PACKAGE = ROOT / "src" / "noetl"
KEY = base64.b64encode(b"planted-master-key-of-32-bytes!!").decode()
QUEUE = "nats://worker:planted-queue-word@127.0.0.1:1"
PLANTED = {"NOETL_KEY": KEY, "NOETL_QUEUE": QUEUE, "NOETL_TOKEN": "planted-token-of-a-worker"}
ORDINARY = ("setpriv", "--bounding-set", "-all", "--inh-caps", "-all")
"""Root without the powers of root: what other users are to their own processes."""
USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
"""A user who may make namespaces."""

PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: reach, path: tests/reach}}
keychain:
  - {{name: queue, kind: generic, provider: environment, key: NOETL_QUEUE}}
  - {{name: key, kind: generic, provider: file, key: {home}/key}}
workflow:
  - step: start
    tool:
      - look: {look}
"""
ENVIRONMENTS = r"""
import os
result = {"read": 0, "found": []}
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "mem"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                found = file.read(1 << 20) if name == "environ" else b""
                result["read"] += int(pid) == os.getppid()
        except OSError:
            continue
        if b"planted" in found:
            result["found"].append(pid)
"""
"""Of every process that is seen; the parent is the worker where there are no namespaces."""


def asked(
    folder: Path, look: object, before: Sequence[str] = ORDINARY, **environment: str
) -> dict[str, Any]:
    home, file = folder / "home", folder / "books" / "playbook.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(PLAYBOOK.format(home=home, look=json.dumps(look)))
    given = {"NOETL_HOME": str(home), **PLANTED, **environment}
    words = ("env", *(f"{name}={value}" for name, value in given.items()))
    (answer,) = noetl("run", file, "--json", before=(*before, *words)).objects()
    assert "planted" not in json.dumps(answer)
    return answer


@pytest.mark.parametrize("namespaces", ["off", "auto"])
def test_no_task_reads_the_environment_or_memory_of_its_worker(
    tmp_path: Path, namespaces: str
) -> None:
    look = {"kind": "python", "code": ENVIRONMENTS}
    answer = asked(tmp_path, look, NOETL_NAMESPACES=namespaces)
    assert answer["result"] == {"read": 0, "found": []}, answer


@pytest.mark.parametrize("command", ["execute", "restart", "resume"])
def test_nor_where_another_command_runs_it(tmp_path: Path, command: str) -> None:
    """Tasks run in the process of the command: what it was started with is out of their reach."""
    marker = tmp_path / "again"
    code = f"{ENVIRONMENTS}\nif not os.path.exists('{marker}'): os.kill(os.getppid(), 9)"
    look = {"kind": "python", "code": code}
    home, file = tmp_path / "home", tmp_path / "playbook.yaml"
    file.write_text(PLAYBOOK.format(home=home, look=json.dumps(look)))
    given = {"NOETL_HOME": str(home), "NOETL_NAMESPACES": "off", **PLANTED}
    before = (*ORDINARY, "env", *(f"{name}={value}" for name, value in given.items()))
    if command == "execute":
        assert noetl("register", file, before=before).code == 0
        named = "tests/reach"
    else:
        noetl("run", file, before=before)
        named = noetl("list", "--json", before=before).objects()[0]["execution_id"]
        if command == "restart":
            assert noetl("cancel", named, before=before).code == 0
    marker.touch()
    (answer,) = noetl(command, named, "--json", before=before).objects()
    assert answer["result"] == {"read": 0, "found": []}, answer


@pytest.mark.parametrize("auth", ["queue", "key"])
def test_no_keychain_entry_leads_to_settings_or_files_of_noetl(tmp_path: Path, auth: str) -> None:
    look = {"kind": "http", "url": "http://127.0.0.1:1/", "auth": auth}
    answer = asked(tmp_path, look)
    assert "of NoETL itself" in str(answer["error"]), answer


@pytest.mark.parametrize("path", ["/etc/passwd", "../../../../../../../../etc/passwd"])
def test_a_child_playbook_shows_no_file_of_the_machine(tmp_path: Path, path: str) -> None:
    answer = asked(tmp_path, {"kind": "playbook", "path": path})
    assert "leaves the playbook's folder" in str(answer["error"]), answer
    assert "root:" not in str(answer)


def test_what_a_task_says_of_our_own_secrets_is_masked(tmp_path: Path) -> None:
    """However it got hold of them."""
    look = {"kind": "python", "code": f"result = ['{KEY}', 'planted-queue-word', '{QUEUE}']"}
    answer = asked(tmp_path, look)
    assert answer["status"] == "completed", answer


CHANGES = """
import os
result = {}
for name in ("namespaces.py", "changed.py"):
    try:
        open(os.path.join(inside, name), "a").write("# changed")
        result[name] = "written"
    except OSError as fault:
        result[name] = fault.strerror
try:
    os.rename(around, around + "-moved")
    result["moved"] = True
except OSError as fault:
    result["moved"] = False
"""
COPY = "copy (select '# changed') to '{inside}/changed.py' (header false)"


@pytest.mark.parametrize("kind", ["python", "shell", "duckdb"])
def test_no_task_changes_the_program(tmp_path: Path, kind: str) -> None:
    """What it wrote there would run in the next process of NoETL, before that one is confined."""
    around = tmp_path / "installed"
    shutil.copytree(PACKAGE, around / "noetl", ignore=shutil.ignore_patterns("ui"))
    inside = around / "noetl" / "tools" / "process" / "inside"
    before = {file.name: file.read_bytes() for file in inside.glob("*.py")}
    given = {"inside": str(inside), "around": str(around)}
    command = f"echo '# changed' >> {inside}/namespaces.py; mv {around} {around}-moved; true"
    look = {
        "python": {"kind": "python", "code": CHANGES, "args": given},
        "shell": {"kind": "shell", "command": command},
        "duckdb": {"kind": "duckdb", "command": COPY.format(inside=inside)},
    }[kind]
    answer = asked(tmp_path, look, USER, PYTHONPATH=str(around), NOETL_NAMESPACES="demand")
    assert {file.name: file.read_bytes() for file in inside.glob("*.py")} == before, answer
    if kind == "python":
        refused = "Read-only file system"
        told = {"namespaces.py": refused, "changed.py": refused, "moved": False}
        assert answer["result"] == told, answer


FILES = """
result = {}
for path in paths:
    try:
        with open(path, "rb") as file:
            result[path] = file.read().decode("latin-1")
    except OSError as fault:
        result[path] = fault.strerror
"""
UNDO = "umount $H; unshare -Ur umount $H; unshare -Urm umount $H"
"""What root could do, and nobody else."""
HIDDEN = {"No such file or directory", "Permission denied", ""}
"""By namespaces, by Landlock; a file of its own is empty."""


@pytest.mark.parametrize("before", [(), USER, ORDINARY], ids=["root", "user", "landlock"])
@pytest.mark.parametrize("kind", ["python", "shell", "duckdb"])
def test_no_task_sees_files_of_noetl(tmp_path: Path, kind: str, before: Sequence[str]) -> None:
    """Without powers root gets no namespaces: Landlock bounds its tasks then."""
    home, key, free = tmp_path / "home", tmp_path / "master.key", tmp_path / "free"
    home.mkdir(mode=0o700)
    for path in (home / "key", home / "contexts.toml", key):
        path.write_text(KEY)
        path.chmod(0o600)
    free.write_text("free to all")
    paths = [str(path) for path in (home / "key", home / "noetl.db", home / "contexts.toml", key)]
    show = f"cat {' '.join(paths)} {free}; ls -R {home}"
    sql = f"select content from read_text(['{home}/*', '{key}*', '{free}'])"
    look = {
        "python": {"kind": "python", "code": FILES, "args": {"paths": [*paths, str(free)]}},
        "shell": {"kind": "shell", "command": f"H={home}\n{UNDO if before else ''}\n{show}; true"},
        "duckdb": {"kind": "duckdb", "command": sql},
    }[kind]
    given = {"NOETL_KEY": "", "NOETL_KEY_FILE": str(key), "NOETL_NAMESPACES": "demand"}
    answer = asked(tmp_path, look, before, **given)
    assert KEY[:20] not in json.dumps(answer)
    assert "SQLite" not in json.dumps(answer)
    if kind == "python":
        assert answer["result"].pop(str(free)) == "free to all"
        assert set(answer["result"].values()) <= HIDDEN
    elif kind == "shell":
        assert answer["result"]["stdout"].startswith("free to all")
        assert "noetl.db" not in answer["result"]["stdout"]
    else:
        assert "free to all" in str(answer["result"]) or "Permission" in str(answer["error"])


@pytest.mark.parametrize("before", [USER, ORDINARY], ids=["user", "landlock"])
def test_no_task_moves_the_folder_around_the_home_away(
    tmp_path: Path, before: Sequence[str]
) -> None:
    """A child that starts after that would have nothing to hide."""
    home = tmp_path / "around" / "home"
    home.mkdir(parents=True, mode=0o700)
    (home / "key").write_text(KEY)
    (home / "key").chmod(0o600)
    look = {"kind": "shell", "command": f"mv {tmp_path}/around {tmp_path}/moved; echo tried"}
    answer = asked(tmp_path, look, before, NOETL_HOME=str(home), NOETL_NAMESPACES="demand")
    assert answer["result"]["stdout"] == "tried\n", answer
    assert not (tmp_path / "moved").exists()


PLANT = """
import os
result = []
for path in (libs + "/planted.py", libs + "/others/planted.py", libs + "/others/there.py"):
    try:
        with open(path, "a") as file:
            file.write("evil")
        result.append(path)
    except OSError:
        pass
for act in (lambda: os.mkdir(libs + "/made"), lambda: os.rename(libs + "/others", libs + "/o")):
    try:
        act()
        result.append("made")
    except OSError:
        pass
seen = open(libs + "/others/there.py").read()
result.append(seen)
"""


@pytest.mark.parametrize("before", [USER, ORDINARY], ids=["user", "landlock"])
def test_no_task_changes_packages_that_other_tasks_use(
    tmp_path: Path, before: Sequence[str]
) -> None:
    """They are read by whichever task comes later, of whichever playbook."""
    libs = tmp_path / "home" / "libs"
    (libs / "others").mkdir(parents=True, mode=0o700)
    (libs / "others" / "there.py").write_text("good")
    look = {"kind": "python", "code": PLANT, "args": {"libs": str(libs)}}
    answer = asked(tmp_path, look, before, NOETL_NAMESPACES="demand")
    assert answer["result"] == ["good"], answer
    assert [path.name for path in libs.rglob("*")] == ["others", "there.py"]


BACKEND = """
import os, zipfile
def build_wheel(folder, settings=None, metadata=None):
    seen = []
    for path in [f"/proc/{pid}/environ" for pid in os.listdir("/proc") if pid.isdigit()] + [KEY]:
        try:
            seen.append(open(path, "rb").read().decode("latin-1"))
        except OSError:
            pass
    for path in (f"{LIBS}/planted", f"{LIBS}/others/planted"):
        try:
            open(path, "w").close()  # it may reach one that nobody else sees
        except OSError:
            pass
    name = "spy-1.0-py3-none-any.whl"
    parts = {
        "spy.py": f"value = {[text for text in seen if 'planted' in text or 'cGxh' in text]!r}",
        "spy-1.0.dist-info/METADATA": "Metadata-Version: 2.1\\nName: spy\\nVersion: 1.0\\n",
        "spy-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\n"
        "Tag: py3-none-any\\n",
    }
    parts["spy-1.0.dist-info/RECORD"] = "".join(f"{one},,\\n" for one in parts)
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        for one, text in parts.items():
            wheel.writestr(one, text)
    return name
"""


def source(folder: Path) -> str:
    """A requirement that must be built, by code of its own."""
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\n'
        'backend-path = ["."]\n[project]\nname = "spy"\nversion = "1.0"\n',
        "backend.py": f"KEY = {str(folder / 'home' / 'key')!r}\n"
        f"LIBS = {str(folder / 'home' / 'libs')!r}\n{BACKEND}",
        "PKG-INFO": "Metadata-Version: 2.1\nName: spy\nVersion: 1.0\n",
    }
    path = folder / "spy-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(f"spy-1.0/{name}")
            info.size = len(text)
            archive.addfile(info, BytesIO(text.encode()))
    return f"spy @ {path.as_uri()}"


@pytest.mark.parametrize("before", [(), ORDINARY], ids=["namespaces", "landlock"])
def test_a_package_that_is_built_reaches_no_more_than_a_task(
    tmp_path: Path, before: Sequence[str]
) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home" / "key").write_text(KEY)
    (tmp_path / "home" / "key").chmod(0o600)
    (tmp_path / "home" / "libs" / "others").mkdir(parents=True)
    look = {"kind": "python", "code": "import spy\nresult = spy.value", "libs": [source(tmp_path)]}
    built = asked(tmp_path, look, before, NOETL_LIBS_BUILD="1", NOETL_NAMESPACES="demand")
    assert built["result"] == [], built
    assert list((tmp_path / "home" / "libs").rglob("planted")) == []


def test_nothing_is_built_unless_the_worker_is_told_to(tmp_path: Path) -> None:
    look = {"kind": "python", "code": "import spy\nresult = spy.value", "libs": [source(tmp_path)]}
    answer = asked(tmp_path, look)
    assert answer["status"] == "failed"
    assert "the worker installs wheels only" in str(answer["error"]), answer


class Listening(BaseHTTPRequestHandler):
    """Answers everything, and remembers who was said to ask."""

    heard: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.heard.append(self.headers.get("Authorization"))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None:
        """Nothing."""


LOGIN = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: logins, path: tests/logins}}
keychain:
  - {{name: login, kind: vault, address: "{url}", token: none-of-yours}}
  - {{name: api, kind: bearer, provider: vault, key: secret/app, auth: login}}
workflow:
  - step: start
    tool:
      - bucket:
          kind: gcs
          operation: head
          bucket: bucket
          key: key
          endpoint: "{url}"
          spec: {{policy: {{rules: [{{else: {{then: {{do: continue}}}}}}]}}}}
      - asked: {{kind: http, url: "{url}", auth: api}}
"""


def test_no_server_is_shown_a_password_of_the_user(tmp_path: Path) -> None:
    """Clients of HTTP read them from .netrc by themselves, one for hosts that it does not name."""
    (tmp_path / ".netrc").write_text("default login planted password planted-of-the-user\n")
    (tmp_path / ".netrc").chmod(0o600)
    Listening.heard.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Listening) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        file = tmp_path / "playbook.yaml"
        file.write_text(LOGIN.format(url=f"http://127.0.0.1:{server.server_port}"))
        given = {"HOME": str(tmp_path), "NOETL_HOME": str(tmp_path / "home")}
        words = ("env", *(f"{name}={value}" for name, value in given.items()))
        noetl("run", file, "--json", before=words)
        server.shutdown()
    assert len(Listening.heard) >= 2
    assert set(Listening.heard) == {None}
