"""`noetl catalog remove` as a program: on a home, and at a server (SRV-1)."""

from pathlib import Path

import pytest
from tests.system.servers import BLOCKED, FAILING, Node, node


@pytest.mark.rule("SRV-1")
def test_a_home_forgets_a_playbook_when_it_is_told_to(tmp_path: Path) -> None:
    home = Node(tmp_path)
    for text in (FAILING, FAILING.replace(b"exit 3", b"exit 4")):
        assert home.here("register", "-", stdin=text).code == 0
    unasked = home.here("catalog", "remove", "tests/failing")
    assert (unasked.code, "give --yes" in unasked.err) == (3, True)
    gone = home.here("catalog", "remove", "tests/failing", "--version", "2", "--yes")
    assert gone.out == "tests/failing: removed version 2 from the catalog\n"
    assert "version 1" in home.here("catalog").out
    assert home.here("catalog", "remove", "tests/failing", "--yes", "--json").objects() == [
        {"path": "tests/failing", "version": None, "removed": True}
    ]
    again = home.here("catalog", "remove", "tests/failing", "--yes")
    assert (again.code, "no playbook 'tests/failing'" in again.err) == (3, True)
    twice = home.here("catalog", "a", "b")
    assert (twice.code, "expected one PATH" in twice.err) == (3, True)


@pytest.mark.rule("SRV-1")
def test_a_server_keeps_what_runs_and_says_so(tmp_path: Path) -> None:
    with node(tmp_path / "home") as up:
        up.there("register", "-", stdin=BLOCKED)
        [begun] = up.there("execute", "tests/blocked", "--json").objects()
        kept = up.there("catalog", "remove", "tests/blocked", "--yes")
        assert kept.code == 3
        assert begun["execution_id"] in kept.err
        assert up.there("cancel", begun["execution_id"]).code == 0
        assert up.there("catalog", "remove", "tests/blocked", "--yes").code == 0
        assert up.there("catalog", "tests/blocked").code == 3
