"""Every example and every playbook of the course ends alike in one process and on a fleet."""

import importlib.util
import json
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from tests.house.markdown import Block
from tests.support.fleet import Fleet, sailing
from tests.support.nats import NatsServer
from tests.support.postgres import PostgresServer
from tests.support.processes import Running
from tests.system.test_examples import FOLDERS, run_once
from tests.system.test_fleet_deaths import ended
from tests.system.test_learn import ALONE, name_of_playbook

from noetl.client.client import Client

COMPARED = ("status", "ctx", "result", "error", "steps")
MAY_DIFFER = (
    (r"{execution_id}", "ID", "drawn for each execution; children are named after it"),
    (r"127\.0\.0\.1:\d+", "HOST", "services of a run listen where a port is free"),
    (r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", "TRACE", "each execution is a trace of its own"),
    (r"\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT", "DATE", "a header of every answer"),
)
"""Everything else is the same; the time that it took is not compared."""


SMALLER = {"35-fair-sharing": {"customers": 60, "eager": 20}}
"""Examples that are about many, with fewer: in one process they run as they are written."""

BY_THE_LOG = {"count": ("who",)}
"""Playbooks whose branches append to the same key, in the order in which they are recorded."""


class Shown(NamedTuple):
    """A playbook of the course, and what it is given."""

    folder: Path
    payload: dict[str, Any]

    def services(self) -> AbstractContextManager[dict[str, Any]]:
        """What `serve.py` starts, anew for each run: some of it counts its calls."""
        file = self.folder / "serve.py"
        if not file.exists():
            return nullcontext({})
        spec = importlib.util.spec_from_file_location("serve", file)
        assert spec is not None
        assert spec.loader is not None
        serve = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(serve)
        started: AbstractContextManager[dict[str, Any]] = serve.services()
        return started


@pytest.fixture(scope="module")
def fleet(
    postgres_server: PostgresServer,
    nats_server: NatsServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Fleet]:
    """One server on PostgreSQL and NATS; each playbook brings workers that see its services."""
    with (
        postgres_server.fresh_database() as database,
        sailing(tmp_path_factory.mktemp("fleet"), database, nats_server.url) as fleet,
    ):
        fleet.server()
        fleet.ready()
        yield fleet


@contextmanager
def two_workers(fleet: Fleet, **environment: str) -> Iterator[None]:
    members = [fleet.worker(**environment) for _ in range(2)]
    try:
        yield
    finally:
        for member in members:
            member.kill()
            fleet.workers.remove(member)


def alone(shown: Shown, folder: Path) -> dict[str, Any]:
    """`noetl run`."""
    given = folder / "payload.json"
    with shown.services() as services:
        given.write_text(json.dumps({**services.get("workload", {}), **shown.payload}))
        words = ("run", shown.folder / "playbook.yaml", "--payload", given, "--json")
        answer = Running(folder / "alone", *words, **services.get("environment", {})).answer()
    return compared(answer, answer["execution_id"])


def together(shown: Shown, fleet: Fleet) -> dict[str, Any]:
    """Registered with the playbooks beside it, and executed by whichever worker is free."""
    with shown.services() as services:
        environment = {"NOETL_FILES": str(shown.folder), **services.get("environment", {})}
        payload = {**services.get("workload", {}), **shown.payload}
        with two_workers(fleet, **environment):
            paths = {
                file.stem: fleet.ask(partial(registered, file.read_text("utf-8")))
                for file in shown.folder.glob("*.yaml")
            }
            execution_id = fleet.ask(partial(begun, paths["playbook"], payload))
            return compared(ended(fleet, execution_id), execution_id)


def registered(text: str, client: Client) -> str:
    return client.register(text).entry.path


def begun(path: str, payload: dict[str, Any], client: Client) -> str:
    return client.execute(path, payload=payload).execution_id


def compared(answer: dict[str, Any], execution_id: str) -> dict[str, Any]:
    text = json.dumps({field: answer[field] for field in COMPARED}, sort_keys=True)
    for pattern, word, _ in MAY_DIFFER:
        text = re.sub(pattern.replace("{execution_id}", execution_id), word, text)
    found: dict[str, Any] = msgspec.json.decode(text)
    return found


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_example_ends_alike(
    folder: Path, fleet: Fleet, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    if folder.name in SMALLER:
        shown = Shown(folder, expected.get("payload", {}) | SMALLER[folder.name])
        here = alone(shown, tmp_path)
    else:
        shown = Shown(folder, expected.get("payload", {}))
        _, answer, _ = run_once(folder / "expected.json", tmp_path, tmp_path_factory)
        here = compared(answer, answer["execution_id"])
    found = together(shown, fleet)
    assert found == here
    assert found["status"] == expected["status"]


@pytest.mark.parametrize("block", ALONE, ids=name_of_playbook)
def test_a_playbook_of_the_course_ends_alike(block: Block, fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "playbook.yaml").write_text(block.text)
    shown = Shown(tmp_path, {})
    here, there = alone(shown, tmp_path), together(shown, fleet)
    for told in (here, there):
        for key in BY_THE_LOG.get(name_of_playbook(block), ()):
            told["ctx"][key].sort()
    assert there == here
