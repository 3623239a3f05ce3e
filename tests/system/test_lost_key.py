"""KEY-2: whatever runs after a key was lost makes no other, on SQLite and on PostgreSQL."""

from pathlib import Path

import pytest
from tests.support.leaks import HEAD, register
from tests.support.postgres import Database
from tests.system.servers import Node

pytestmark = pytest.mark.rule("KEY-2")

USES = b"""
workflow:
  - step: start
    tool:
      - use: {kind: secrets, provider: store, name: api}
"""


def started(home: Path, db: str) -> Node:
    made = Node(home)
    answer = made.here("server", "start", "--port", "0", "--worker", "1", "--json", NOETL_DB=db)
    assert answer.code == 0, answer
    made.url = answer.objects()[0]["url"]
    return made


def stop(made: Node) -> None:
    made.here("worker", "stop")
    made.here("server", "stop")


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_lost_key_comes_back_and_all_is_well(
    store: str, log_database: Database, tmp_path: Path
) -> None:
    home, db = tmp_path / "home", log_database.url if store == "postgres" else ""
    key, apart = home / "key", tmp_path / "key"
    playbook = tmp_path / "p.yaml"
    playbook.write_bytes(HEAD.encode() + USES)
    up = started(home, db)
    try:
        added = up.there("credential", "add", "api", "--kind", "bearer", "--stdin", stdin=b"s3cr3t")
        assert added.code == 0, added
        assert up.there("register", playbook).code == 0
        assert up.there("execute", "t", "--wait").code == 0
        if store == "postgres":  # `noetl run` has the home, which the same key serves
            register(home, "api", "bearer", {"token": "s3cr3t"})
    finally:
        stop(up)
    key.rename(apart)

    up = started(home, db)
    try:
        told = [
            up.there("execute", "t", "--wait"),
            up.there("credential", "add", "new", "--kind", "bearer", "--stdin", stdin=b"s3cr3t-2"),
            up.here("run", playbook),
            up.here("credential", "add", "new", "--kind", "bearer", "--stdin", stdin=b"s3cr3t-2"),
            up.here("credential", "show", "api"),
            up.here("credential", "rotate", NOETL_DB=db),
        ]
        for number, answer in enumerate(told):
            assert answer.code != 0, number
            assert "there is no key in " in answer.out + answer.err, number
            assert "internal" not in answer.out, number
        assert not key.exists()
        apart.rename(key)
        assert up.there("execute", "t", "--wait").code == 0
        assert up.here("run", playbook).code == 0
    finally:
        stop(up)


def test_a_rotation_covers_the_home_and_the_database(
    log_database: Database, tmp_path: Path
) -> None:
    home, db = tmp_path / "home", log_database.url
    playbook = tmp_path / "p.yaml"
    playbook.write_bytes(HEAD.encode() + USES)
    register(home, "api", "bearer", {"token": "s3cr3t"})
    up = started(home, db)
    try:
        up.there("credential", "add", "api", "--kind", "bearer", "--stdin", stdin=b"s3cr3t")
        assert up.there("register", playbook).code == 0
        assert up.there("execute", "t", "--wait").code == 0
        alone = up.here("credential", "rotate")
        assert alone.code != 0, "it would drop the key of what is in the database"
        assert "set NOETL_DB as that server has it" in alone.err
        rotated = up.here("credential", "rotate", "--json", NOETL_DB=db)
        assert rotated.code == 0
        assert rotated.objects()[0]["credentials"] == 2
        assert len((home / "key").read_text().split()) == 1
        assert up.there("execute", "t", "--wait").code == 0, "the server learns of it"
        assert up.here("run", playbook).code == 0
    finally:
        stop(up)
