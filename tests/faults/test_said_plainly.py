"""What waits or is broken is said, with its true name (promise 6)."""

from pathlib import Path

import apsw
import pytest
from tests.support.nats import NatsServer
from tests.support.postgres import Database
from tests.support.processes import Home, Running
from tests.support.steps import noop, playbook, step
from tests.support.trial import one_task, trial, until

TEXT = playbook(step("start", noop("rest")))


def run(folder: Path, name: str) -> Running:
    (folder / "playbook.yaml").write_text(TEXT)
    return Running(folder / "home", "run", folder / "playbook.yaml", name=name)


def test_a_lock_of_another_program_is_named_while_it_is_waited_for(tmp_path: Path) -> None:
    assert run(tmp_path, "first").ended() == 0
    foreign = apsw.Connection(str(tmp_path / "home" / "noetl.db"))
    foreign.execute("begin exclusive")
    try:
        waiting = run(tmp_path, "second")
        until(lambda: "lock" in waiting.err.lower() or not waiting.process.is_alive())
        said = waiting.err
    finally:
        foreign.execute("rollback")
        foreign.close()
    assert "lock" in said.lower(), said
    assert waiting.ended() == 0, "it goes on when the lock is gone"


@pytest.mark.unproven
def test_a_damaged_row_is_called_one(tmp_path: Path) -> None:
    assert run(tmp_path, "first").ended() == 0
    home = Home(tmp_path / "home")
    (name,) = home.roots()
    damage(home)
    for words in (("replay", name, "--verify"), ("events", name), ("status", name)):
        refused = Running(home.folder, *words, name=words[0])
        assert refused.ended() != 0, words
        said = (refused.out + refused.err).lower()
        assert "damaged" in said, (words, said)
        assert name in said, (words, said)


def damage(home: Home) -> None:
    """Half of a row of the log is gone."""
    connection = apsw.Connection(str(home.folder / "noetl.db"))
    connection.execute("update decision set events = substr(events, 1, length(events) / 2)")
    connection.close()


def test_a_step_that_waits_for_a_worker_names_the_pool(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    executor = {"kind": "local", "spec": {"pool": "nobody-is-here"}}
    with trial(tmp_path, database, nats_server.url) as fleet:
        fleet.crew(1, 1)
        fleet.register(one_task(executor=executor))
        (begun,) = fleet.start("one", {})
        (server,) = fleet.fleet.servers
        assert server.url is not None
        shown = Running(tmp_path / "asks", "status", begun, "--server", server.url, name="status")
        assert shown.ended() == 0
        assert "nobody-is-here" in shown.out, shown.out
        fleet.fleet.worker("--pool", "nobody-is-here")
        assert fleet.all_ended([begun]) == {"completed": 1}
        fleet.judged()
