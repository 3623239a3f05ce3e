"""`noetl cache` and `noetl audit` on a home, as a user calls them."""

import getpass
from pathlib import Path

import pytest
from tests.house.tree import ROOT
from tests.system.program import Answer, noetl

EXAMPLE = str(ROOT / "examples" / "34-cache" / "playbook.yaml")


@pytest.mark.rule("CACHE-1")
def test_kept_outcomes_are_listed_and_cleared(tmp_path: Path) -> None:
    def asked(*words: str) -> Answer:
        return noetl(*words, NOETL_HOME=str(tmp_path / "home"))

    assert "nothing is cached" in asked("cache", "list").err
    assert asked("run", EXAMPLE).code == 0
    again = asked("run", EXAMPLE)
    assert again.code == 0, again.err
    [entry] = asked("cache", "list", "--path", "examples/cache", "--json").objects()
    assert (entry["task"], entry["key"]) == ("start.rate", "NOK 2026-11-16")
    shown = asked("cache", "list")
    assert "examples/cache start.rate" in shown.out
    assert asked("cache", "clear", "--key", "SEK").out == "removed 0 kept outcomes\n"
    assert asked("cache", "clear", "--path", "examples/cache").out == "removed 1 kept outcome\n"
    assert asked("cache", "list", "--json").objects() == []


def test_the_user_of_the_machine_is_noted(tmp_path: Path) -> None:
    def asked(*words: str, stdin: bytes = b"") -> Answer:
        return noetl(*words, stdin=stdin, NOETL_HOME=str(tmp_path / "home"))

    assert "no orders match" in asked("audit").err
    assert asked("run", EXAMPLE).code == 0
    secret = b"never-shown-here"
    assert asked("credential", "add", "api", "--kind", "bearer", "--stdin", stdin=secret).code == 0
    assert asked("server", "token", "add", "ada", "--role", "admin").code == 0
    assert asked("register", EXAMPLE).code == 0
    assert asked("cache", "clear").code == 0
    told = asked("audit", "--json", "--since", "1h")
    rows = [(one["what"], one["who"], one["result"]) for one in told.objects()]
    words = ["cache.clear", "register", "token.add", "credential.put", "start"]
    assert rows == [(word, getpass.getuser(), "done") for word in words]
    assert "never-shown" not in told.out
    [only] = asked("audit", "--what", "credential.put", "--json").objects()
    assert only["about"] == "api bearer"
