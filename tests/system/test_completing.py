"""A shell completes the ids of executions and the paths of playbooks."""

from pathlib import Path

import pytest
from tests.system.program import HELLO, noetl


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("home")
    assert noetl("register", HELLO, NOETL_HOME=str(made)).code == 0
    assert noetl("run", HELLO, NOETL_HOME=str(made)).code == 0
    return made


def completed(home: Path, *words: str) -> list[tuple[str, str]]:
    """What fish is told: each value, and what is said about it."""
    answer = noetl(
        NOETL_HOME=str(home),
        _NOETL_COMPLETE="fish_complete",
        COMP_WORDS=" ".join(["noetl", *words[:-1]]),
        COMP_CWORD=words[-1],
    )
    assert (answer.code, answer.err) == (0, "")
    told = [line.removeprefix("plain,").partition("\t") for line in answer.out.split("\n") if line]
    return [(value, about) for value, _, about in told]


@pytest.mark.parametrize("command", ["status", "explain", "events", "logs", "replay", "cancel"])
def test_ids_of_executions(home: Path, command: str) -> None:
    [listed] = noetl("list", "--json", NOETL_HOME=str(home)).objects()
    whole = listed["execution_id"]
    expected = [(whole, "examples/hello, completed")]
    assert completed(home, command, "") == expected
    assert completed(home, command, whole[:5]) == expected
    assert completed(home, command, "zz") == []


@pytest.mark.parametrize("command", ["execute", "catalog"])
def test_paths_of_playbooks(home: Path, command: str) -> None:
    about = "A greeting that takes one of two branches."
    assert completed(home, command, "exa") == [("examples/hello", about)]


def test_nobody_who_answers_is_no_error(tmp_path: Path) -> None:
    assert completed(tmp_path / "no-home", "status", "") == []
    assert completed(tmp_path, "status", "--server", "http://127.0.0.1:9", "") == []
