"""
The image: every instruction is known, nothing runs as root, and podman builds it.

No base image can be fetched where tests run, so podman builds from a stand-in whose programs do
nothing: that proves the instructions and what the image says of itself, not what is installed.
"""

import json
import re
import tarfile
import tomllib
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.house.tree import ROOT
from tests.support.podman import Podman, archive

FILE = ROOT / "deploy" / "Containerfile"
KNOWN = {
    *("ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK"),
    *("LABEL", "RUN", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"),
}
BASE = "localhost/python:3.11.14-slim-bookworm"
STAND_INS = ("pip", "uv", "python", "groupadd", "useradd", "install")
PROGRAM = "#!/bin/sh\nexec busybox mkdir -p /opt/noetl /var/lib/noetl\n"


class Instruction(NamedTuple):
    """A word, and what follows it."""

    word: str
    rest: str


def instructions(text: str) -> list[Instruction]:
    """Comments left out, lines that go on joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    whole = re.sub(r"\\\n\s*", "", "\n".join(lines))
    parts = [line.split(maxsplit=1) for line in whole.splitlines() if line.strip()]
    return [Instruction(word, "".join(rest)) for word, *rest in parts]


FOUND = instructions(FILE.read_text("utf-8"))


def all_of(word: str) -> list[str]:
    return [found.rest for found in FOUND if found.word == word]


def test_every_instruction_is_known() -> None:
    assert {found.word for found in FOUND} - KNOWN == set()
    assert [found.word for found in FOUND[:2]] == ["ARG", "FROM"]


def test_images_have_a_tag_and_no_registry() -> None:
    """No digest: none can be asked for where tests run. A build may give one (BASE)."""
    assert {rest.split()[0] for rest in all_of("FROM")} == {"${BASE}"}
    assert f"BASE={BASE.removeprefix('localhost/')}" in all_of("ARG")
    assert re.search(r":\d+\.\d+\.\d+-", BASE), "a whole version"


def test_what_is_installed_by_pip_is_pinned() -> None:
    installed = [run for run in all_of("RUN") if "pip install" in run]
    assert all("==" in run or "-c requirements.lock" in run for run in installed)


def test_the_last_user_is_a_number_that_is_not_root() -> None:
    last_image = max(place for place, found in enumerate(FOUND) if found.word == "FROM")
    users = [found.rest for found in FOUND[last_image:] if found.word == "USER"]
    assert users == ["10001:10001"]


def test_what_is_copied_is_there() -> None:
    own = [rest.split()[:-1] for rest in all_of("COPY") if not rest.startswith("--from")]
    assert [name for names in own for name in names if not (ROOT / name).exists()] == []


def test_the_extras_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    [extras] = [rest[7:] for rest in all_of("ARG") if rest.startswith("EXTRAS=")]
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert "nats" in extras


def test_the_pinned_versions_are_used() -> None:
    assert [run for run in all_of("RUN") if "-c requirements.lock" in run] != []


@pytest.fixture(scope="module")
def built(podman: Podman) -> dict[str, Any]:
    """What the image says of itself, built by podman from the stand-in."""
    podman.ask("import", "-", BASE, stdin=stand_in())
    podman.ask(
        *("build", "--quiet", "--format", "docker", "--isolation", "chroot", "--network", "host"),
        *("--pull=never", "--file", str(FILE), "--tag", "localhost/noetl:tested", str(ROOT)),
    )
    [told] = json.loads(podman.ask("image", "inspect", "localhost/noetl:tested"))
    return dict(told)


def stand_in() -> bytes:
    """The busybox of the tests, with programs of the base image's names that do nothing."""
    whole = BytesIO(archive())
    with tarfile.open(fileobj=whole, mode="a") as files:
        for name in STAND_INS:
            entry = tarfile.TarInfo(f"bin/{name}")
            entry.mode, entry.size = 0o755, len(PROGRAM)
            files.addfile(entry, BytesIO(PROGRAM.encode()))
    return whole.getvalue()


def test_podman_builds_it(built: dict[str, Any]) -> None:
    told = built["Config"]
    assert built["User"] == "10001:10001"
    assert told["Entrypoint"] == ["noetl"]
    assert told["Cmd"] == ["server", "start", "--foreground"]
    assert told["StopSignal"] == "SIGTERM"
    assert list(told["ExposedPorts"]) == ["8765/tcp"]


def test_its_health_is_asked_for(built: dict[str, Any]) -> None:
    how, *words = built["Healthcheck"]["Test"]
    assert how == "CMD"
    assert "/healthz" in words[-1]
    compile(words[-1], "healthcheck", "exec")


def test_it_listens_elsewhere_with_auth_alone(built: dict[str, Any]) -> None:
    told = dict(pair.split("=", 1) for pair in built["Config"]["Env"])
    assert told["NOETL_HOST"] == "0.0.0.0"
    assert told["NOETL_AUTH"] == "1"
    assert Path(told["NOETL_HOME"]) == Path(built["Config"]["WorkingDir"])
