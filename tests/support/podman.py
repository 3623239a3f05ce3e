"""A real podman with a storage of its own, and one small image made of a static busybox."""

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import msgspec

IMAGE = "localhost/noetl-busybox:1"
APPLETS = (
    *("sh", "cat", "echo", "sleep", "env", "ls", "pwd", "true"),
    *("head", "yes", "printf", "wc", "touch"),
)
WITHOUT = "install podman, runc and busybox-static (as root: sh tests/support/install.sh)"
STORAGE = '[storage]\ndriver = "vfs"\ngraphroot = "{0}/graph"\nrunroot = "{0}/run"\n'
# What works in a sandbox, too: no systemd, no journal, few files and processes.
SETTINGS = """[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "runc"
"""


class Podman(msgspec.Struct, frozen=True):
    """How to call it; `environment` leads to its storage."""

    environment: dict[str, str]
    image: str = IMAGE

    def ask(self, *words: str, stdin: bytes = b"") -> str:
        done = subprocess.run(
            ["podman", *words],
            input=stdin,
            capture_output=True,
            check=False,
            env=self.environment,
            timeout=600,
        )
        assert done.returncode == 0, f"podman {words[0]}: {done.stderr.decode()}"
        return done.stdout.decode()

    def containers(self) -> list[str]:
        """The names of all that there are, running or not."""
        listed = json.loads(self.ask("ps", "--all", "--format", "json"))
        return sorted(name for one in listed for name in one["Names"])


@contextmanager
def running() -> Iterator[Podman]:
    """Gone with the `with`, its containers and images too."""
    missing = [name for name in ("podman", "runc", "busybox") if shutil.which(name) is None]
    assert not missing, f"not installed: {', '.join(missing)}; {WITHOUT}"
    folder = Path(tempfile.mkdtemp(prefix="noetl-podman-"))
    (folder / "storage.conf").write_text(STORAGE.format(folder))
    (folder / "containers.conf").write_text(SETTINGS)
    named = {
        "CONTAINERS_CONF": str(folder / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
    }
    podman = Podman({**os.environ, **named})
    try:
        podman.ask("import", "--change", 'CMD ["echo", "by itself"]', "-", IMAGE, stdin=archive())
        yield podman
    finally:
        podman.ask("rm", "--all", "--force")
        podman.ask("rmi", "--all", "--force")
        shutil.rmtree(folder, ignore_errors=True)


def archive() -> bytes:
    """The files of the image."""
    busybox = shutil.which("busybox")
    assert busybox is not None, WITHOUT
    whole = BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        archive.add(Path(busybox).resolve(), "bin/busybox")
        for applet in APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
        for name in ("tmp", "etc", "work"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o777
            archive.addfile(folder)
    return whole.getvalue()
