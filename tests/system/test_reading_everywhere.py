"""Every command that reads says the same of a home, of a database without a server, at a server."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
from tests.support.postgres import PostgresServer
from tests.system.program import HELLO, Answer
from tests.system.servers import FAILING, Node, node

Asking = Callable[..., Answer]
READING = [
    ["list", "--json"],
    ["list", "--status", "failed", "--path", "tests/*", "--json"],
    ["status", "ID", "--json"],
    ["explain", "ID", "--json"],
    ["events", "ID", "--json"],
    ["events", "ID", "--follow", "--name", "task.*", "--json"],
    ["logs", "ID", "--json"],
    ["replay", "ID", "--verify", "--json"],
    ["export", "--all", "--format", "jsonl"],
    ["export", "ID", "--after", "3", "--format", "otlp"],
    ["export", "--since", "1h", "--format", "clickhouse"],
    ["catalog", "--json"],
    ["catalog", "tests/failing", "--json"],
    ["catalog", "tests/failing", "--versions", "--json"],
    ["credential", "list", "--json"],
    ["server", "token", "list", "--json"],
    ["status", "nobody", "--json"],
    ["export", "nobody", "--format", "jsonl"],
    ["catalog", "no/such", "--json"],
]


class Place(msgspec.Struct, frozen=True):
    """One log, asked without a server and at one."""

    execution_id: str
    near: Asking
    far: Asking

    def asked(self, words: list[str]) -> tuple[Answer, Answer]:
        given = [self.execution_id if word == "ID" else word for word in words]
        return self.near(*given), self.far(*given)


def worked(up: Node) -> str:
    """Something of everything that can be read."""
    assert up.there("register", "-", stdin=FAILING).code == 0
    secret = up.there("credential", "add", "api", "--kind", "bearer", "--stdin", stdin=b"s3cr3t-9")
    assert secret.code == 0
    assert up.there("server", "token", "add", "ada", "--role", "viewer").code == 0
    ended = up.there("execute", "tests/failing", "--wait", "--json")
    assert ended.code == 1
    return str(ended.objects()[0]["execution_id"])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """SQLite."""
    with node(tmp_path_factory.mktemp("home")) as up:
        yield Place(worked(up), up.here, up.there)


@pytest.fixture(scope="module")
def database(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[Place]:
    """PostgreSQL; whoever asks without a server has a home in which nothing has run."""
    with postgres_server.fresh_database() as fresh:
        asking = Node(tmp_path_factory.mktemp("none") / "home")
        near = partial(asking.here, NOETL_DB=fresh.url)
        with node(tmp_path_factory.mktemp("node"), "--db", fresh.url) as up:
            yield Place(worked(up), near, up.there)


def shape(value: Any) -> Any:
    """
    What is the same for two executions of one playbook: names, and types of values.

    Where large results lie is said where it is not the usual place.
    """
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items() if key != "store"}
    if isinstance(value, list):
        return [shape(one) for one in value]
    return type(value).__name__


@pytest.mark.rule("CLI-1")
@pytest.mark.rule("EVT-6")
@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_each_place_answers_the_same(home: Place, database: Place, words: list[str]) -> None:
    here, at_its_server = home.asked(words)
    assert (here.code, here.out) == (at_its_server.code, at_its_server.out)
    there, at_its_server = database.asked(words)
    assert (there.code, there.out) == (at_its_server.code, at_its_server.out)
    assert here.code == there.code
    assert shape(here.objects()) == shape(there.objects())
    assert here.out or here.code, "there is something to read"


def test_a_database_without_a_log_is_told_and_left_alone(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    with postgres_server.fresh_database() as fresh:
        asked = Node(tmp_path / "home").here("list", NOETL_DB=fresh.url)
        assert (asked.code, asked.out) == (3, "")
        assert "yet; `noetl server start` makes it ready" in asked.err
        with psycopg.connect(fresh.url) as connection:
            found = connection.execute("select 1 from pg_namespace where nspname = 'noetl'")
            assert found.fetchall() == []


def test_what_ran_in_the_home_is_found_beside_a_database(database: Place) -> None:
    """`noetl run` keeps to the home, whatever servers use."""
    ran = database.near("run", HELLO, "--json")
    execution_id = str(ran.objects()[0]["execution_id"])
    assert database.near("status", execution_id, "--json").objects()[0]["status"] == "completed"
    listed = database.near("list", "--json").objects()
    assert execution_id not in [one["execution_id"] for one in listed]
    [one] = database.near("list", "--context", "local", "--json").objects()
    assert one["execution_id"] == execution_id
