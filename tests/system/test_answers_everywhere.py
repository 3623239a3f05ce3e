"""
WAIT-5 where people are: a home, a server, and two servers on PostgreSQL and NATS.

Whoever is asked, one that decides or one that does not, refuses an answer that does not fit, says
all that is wrong with it, and takes the one that fits.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from tests.support.asking import asking
from tests.support.fleet import sailing
from tests.support.nats import NatsServer
from tests.support.postgres import Database
from tests.support.steps import playbook, step
from tests.support.waiting import waits
from tests.system.program import noetl
from tests.system.running import running
from tests.system.servers import NEUTRAL, node

from noetl.api.home_token import FILE as TOKEN
from noetl.client.client import Client
from noetl.errors import ServerRefused

FORM = {
    "limit": "number",
    "note": {"type": "string", "required": False},
    "account": {"type": "string", "choices": ["a", "b"], "default": "a"},
}
TEXT = playbook(
    step("start", waits("pay", approval={"title": "Pay?", "form": FORM})),
).replace("tests/scenario", "tests/pay")
REFUSED: list[tuple[str | None, dict[str, Any], str]] = [
    (None, {}, "the field 'limit' (number) is missing; `noetl waiting` shows the whole answer"),
    (
        "start",
        {"limit": "x", "account": "c", "nota": 1},
        "the form has no field 'nota'; did you mean 'note'?; the field 'limit' is 'x', "
        "expected number; the field 'account' is 'c', expected one of: a, b",
    ),
    ("other", {"limit": 1}, "no approval waits at 'other'; waiting for an answer: start"),
]

Answers = Callable[[str | None, dict[str, Any]], str | None]
"""Approves by one of these names, with these fields; why it was refused, or None."""


@contextmanager
def at_home(folder: Path) -> Iterator[Answers]:
    """A run in one process, answered by commands of others."""
    file, home = folder / "pay.yaml", folder / "home"
    file.write_text(TEXT)
    given: Any = {**NEUTRAL, "NOETL_HOME": str(home)}
    with running("run", file, home=home) as run:
        run.wait_for("waits for an answer to 'Pay?'")
        for _ in asking():  # a run shows what it does a moment before the log has it
            if "Pay?" in noetl("waiting", **given).out:
                break

        def approve(named: str | None, fields: dict[str, Any]) -> str | None:
            sets = [word for name in fields for word in ("--set", f"{name}={fields[name]}")]
            said = noetl("approve", run.execution_id, *([named] if named else []), *sets, **given)
            return None if said.code == 0 else said.err

        yield approve
        assert run.end() == 0


def answers(execution_id: str, clients: list[Client]) -> Answers:
    """Asked of all servers by turns: of two, one does not decide."""
    turns = cycle(clients)
    for _ in asking():  # it waits a moment after it has begun
        if next(turns).waiting().waiting:
            break

    def approve(named: str | None, fields: dict[str, Any]) -> str | None:
        try:
            next(turns).answer(execution_id, named, approved=True, fields=fields)
        except ServerRefused as refused:
            return str(refused)
        return None

    return approve


@contextmanager
def at_server(folder: Path) -> Iterator[Answers]:
    with node(folder / "node") as up:
        token = (up.home / TOKEN).read_text().strip()
        with Client(up.url, token=token) as client:
            client.register(TEXT)
            yield answers(client.execute(path="tests/pay").execution_id, [client])


@contextmanager
def at_fleet(folder: Path, database: Database, nats: NatsServer) -> Iterator[Answers]:
    with sailing(folder, database, nats.url) as fleet:
        urls = [str(fleet.server().url) for _ in range(2)]
        fleet.worker()
        fleet.ready()
        with Client(urls[0]) as one, Client(urls[1]) as other:
            one.register(TEXT)
            yield answers(one.execute(path="tests/pay").execution_id, [other, one])


@pytest.fixture(params=["home", "server", "fleet"])
def approve(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Answers]:
    if request.param == "fleet":
        database = request.getfixturevalue("database")
        nats = request.getfixturevalue("nats_server")
        with at_fleet(tmp_path, database, nats) as found:
            yield found
    else:
        with (at_home if request.param == "home" else at_server)(tmp_path) as found:
            yield found


@pytest.mark.rule("WAIT-5", "CLI-1")
def test_an_answer_that_does_not_fit_its_form_is_refused(approve: Answers) -> None:
    for named, fields, said in REFUSED * 2:  # of two servers, each is asked for each
        assert said in (approve(named, fields) or "it was taken"), (named, fields)
    assert approve(None, {"limit": 5, "note": "12"}) is None
    second = approve("start", {"limit": 5})
    assert "no approval waits at 'start': that of 'start' was approved by" in (second or "")
