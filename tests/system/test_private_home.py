"""Whatever NoETL keeps is its owner's alone, whichever command made it and whatever the umask."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.system.program import HELLO
from tests.system.servers import Node, node

from noetl.cli.doctor import home as look_at_home
from noetl.settings import Settings


@pytest.fixture
def careless() -> Iterator[None]:
    """A umask that takes nothing away: what a program asks for is what it gets."""
    before = os.umask(0)
    yield
    os.umask(before)


def seen_by_others(home: Path) -> list[str]:
    """Everything in a home that somebody else may read, write or pass through."""
    every = [home, *home.rglob("*")]
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in every if not path.is_symlink()}
    return [f"{mode:o} {path.relative_to(home)}" for path, mode in modes.items() if mode & 0o077]


def of_a_run(home: Node) -> None:
    assert home.here("run", HELLO).code == 0


def of_a_server(home: Node) -> None:
    with node(home.home, workers=1) as up:
        assert up.here("register", HELLO, NOETL_SERVER=up.url).code == 0
        assert up.here("execute", "examples/hello", "--wait", NOETL_SERVER=up.url).code == 0
        assert seen_by_others(home.home) == []


def of_a_worker(home: Node) -> None:
    nobody = "http://127.0.0.1:1"
    home.here("worker", "start", "--server", nobody, "--timeout", "1")
    home.here("worker", "stop")


def of_a_context(home: Node) -> None:
    given = ("context", "add", "there", "--server", "http://127.0.0.1:1", "--token-stdin")
    assert home.here(*given, stdin=b"noetl_secret\n").code == 0


def of_a_credential(home: Node) -> None:
    given = ("credential", "add", "db", "--kind", "bearer", "--field", "token=hunter22")
    assert home.here(*given).code == 0


def of_a_registration(home: Node) -> None:
    assert home.here("register", HELLO).code == 0


MAKERS = (of_a_run, of_a_server, of_a_worker, of_a_context, of_a_credential, of_a_registration)


@pytest.mark.usefixtures("careless")
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_nothing_in_a_home_is_for_others(tmp_path: Path, make: Callable[[Node], None]) -> None:
    home = tmp_path / "deep" / "home"
    make(Node(home))
    assert home.is_dir()
    assert seen_by_others(home) == []


@pytest.mark.usefixtures("careless")
def test_a_home_that_was_open_is_told_of_and_closed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "run").mkdir(parents=True)
    (home / "noetl.db").touch()
    told = look_at_home(Settings(home=home))
    assert told.state == "failed"
    assert f"others may read {home}, {home / 'noetl.db'}, {home / 'run'}; run `chmod" in told.says
    with node(home, workers=0) as up:
        assert "could be read by others; it is closed now" in up.here("server", "logs").out
    assert seen_by_others(home) == []
    assert Node(home).here("doctor").code == 0


@pytest.mark.parametrize("mode", [0o1777, 0o755], ids=["as /tmp", "a project"])
def test_a_folder_that_is_shared_stays_as_it_is(tmp_path: Path, mode: int) -> None:
    """Whoever names such a folder as a home has what is in it for himself, and nothing more."""
    home = tmp_path / "shared"
    home.mkdir()
    (home / "theirs.txt").touch()
    home.chmod(mode)
    for _ in range(2):
        of_a_registration(Node(home))
    assert stat.S_IMODE(home.stat().st_mode) == mode
    assert seen_by_others(home) == [f"{mode:o} .", "644 theirs.txt"]
