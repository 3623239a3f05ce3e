"""START on real processes: servers race and are killed; every planned time starts once."""

import itertools
import json
import time
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.asking import asking
from tests.support.fleet import PATIENCE, Fleet, sailing
from tests.support.nats import NatsServer
from tests.support.postgres import Database
from tests.support.steps import noop, playbook, step
from tests.support.triggers import trigger
from tests.system.program import ROOT, Answer, noetl
from tests.system.servers import FAILING, node

from noetl.client.client import Client

WANTED = 12
QUICK = playbook(step("one", noop("t")))
EVERY_SECOND = trigger(
    {"schedule": {"every": 1, "catch_up": "all", "limit": 1000}}, path="tests/every-second"
)


def payloads(client: Client) -> list[dict[str, Any]]:
    found = []
    for row in client.executions(path="tests/scenario", limit=200).executions:
        (first, *_) = client.events(row.execution_id, limit=1).events
        found.append(first.data)
    return found


def begun(fleet: Fleet, count: int) -> list[dict[str, Any]]:
    """What the log says of all starts, once there are so many."""
    until = time.monotonic() + PATIENCE
    while len(found := fleet.ask(payloads)) < count:
        assert time.monotonic() < until, fleet.told()
    return found


@pytest.mark.rule("START-2", "START-3")
def test_servers_that_die_neither_lose_nor_double_a_planned_time(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    with sailing(tmp_path, database, nats_server.url) as fleet:
        servers = [fleet.server() for _ in range(2)]
        fleet.worker()
        fleet.ready()
        fleet.ask(lambda client: client.register(QUICK))
        fleet.ask(lambda client: client.register(EVERY_SECOND))
        for number in range(1, 4):
            begun(fleet, number * 3)
            servers[number % 2].again()
        found = begun(fleet, WANTED)
        keys = Counter(one["trigger"] for one in found)
        assert set(keys.values()) == {1}
        times = sorted(datetime.fromisoformat(one["payload"]["trigger"]["at"]) for one in found)
        gaps = {later - earlier for earlier, later in itertools.pairwise(times)}
        assert gaps == {timedelta(seconds=1)}, "none is left out"
        fleet.ask(lambda client: client.pause_trigger("tests/every-second"))


@pytest.mark.rule("START-1", "START-6", "CLI-1")
def test_the_commands_say_the_same_of_a_home_and_of_a_server(tmp_path: Path) -> None:
    alarm = QUICK.replace("tests/scenario", "tests/alarm")
    on_failure = trigger(
        {"execution": {"path": "tests/fail*", "status": "failed"}},
        path="tests/on-failure",
        playbook="tests/alarm",
    )
    with node(tmp_path / "node", workers=1) as up:
        for text in (alarm, on_failure, FAILING.decode()):
            assert up.there("register", "-", stdin=text.encode()).code == 0
        words = ("--playbook", "tests/alarm", "--cron", "0 3 * * *", "--set", "n=1")
        added = up.there("schedule", "add", "tests/nightly", *words)
        assert (added.code, "registered, version 1; next: " in added.out) == (0, True)
        for command in (
            ("trigger", "list"),
            ("schedule", "list", "--json"),
            ("trigger", "show", "tests/nightly"),
            ("schedule", "next", "tests/nightly", "-n", "3"),
            (
                "schedule",
                "backfill",
                "tests/nightly",
                "--from",
                "2026-03-01",
                "--to",
                "2026-03-03T09:00:00Z",
                "--dry-run",
            ),
            ("trigger", "show", "tests/none"),
        ):
            near, there = up.here(*command), up.there(*command)
            assert (near.code, near.out) == (there.code, there.out), command
        assert len(near.err) > 0
        tried = up.there(
            "trigger", "test", "tests/nightly", "--at", "2026-03-29T01:00:00Z", "--json"
        )
        [told] = tried.objects()
        assert told["playbook_id"] == "tests/alarm:1"
        assert told["payload"]["trigger"]["at"] == "2026-03-29T01:00:00.000Z"
        started = up.there(
            "schedule", "backfill", "tests/nightly", "--from", "2026-03-01", "--to", "2026-03-03"
        )
        assert (started.code, started.out.count("execution ")) == (0, 2)
        assert "2 planned times from 2026-03-01 to 2026-03-03" in started.err
        fill = ("schedule", "backfill", "tests/nightly", "--from", "2026-03-01", "--to")
        again = up.there(*fill, "2026-03-04")
        assert "; 1 started, 2 had been started before" in again.err
        assert again.out.startswith(started.out.splitlines()[0] + ", started before\n")
        assert up.here(*fill, "2026-03-04", "--dry-run").out.count(", started before\n") == 3
        [at, *_, first] = started.out.splitlines()[0].split()
        assert f", by trigger tests/nightly for {at}" in up.there("status", first).out
        assert up.there("schedule", "pause", "tests/nightly").code == 0
        assert '"paused":true' in up.here("trigger", "show", "tests/nightly", "--json").out
        assert up.there("schedule", "remove", "tests/nightly").code == 0
        assert up.there("trigger", "show", "tests/nightly").code == 3
        assert up.there("execute", "tests/failing", "--wait").code == 1
        for _ in asking():
            if alarms := alarmed(up.there("list", "--path", "tests/alarm", "--json")):
                break
        assert len(alarms) == 1


ALARM = ROOT / "examples" / "31-alarm"


@pytest.mark.rule("START-6", "CLI-1")
def test_the_documented_alarm_that_reaches_nobody_ends_failed_and_tells(tmp_path: Path) -> None:
    """The example as it is, where neither mail nor chat answers: nothing is lost in silence."""
    failing = FAILING.replace(b"tests/failing", b"sales/failing")
    with node(tmp_path / "node", workers=1) as up:
        for file in ("playbook.yaml", "trigger.yaml"):
            assert up.there("register", ALARM / file).code == 0
        assert up.there("register", "-", stdin=failing).code == 0
        assert up.there("execute", "sales/failing", "--wait").code == 1
        words = ("list", "--path", "examples/alarm", "--status", "failed", "--json")
        for _ in asking():
            if alarms := up.there(*words).objects():
                break
        [alarm] = alarms
        [failed] = up.there("list", "--path", "sales/failing", "--json").objects()
        status = up.there("status", alarm["execution_id"]).out
        assert f"by trigger examples/on-failure for {failed['execution_id']}" in status
        why = up.there("explain", alarm["execution_id"]).out
        for place in ("mail.send (python)", "chat.post (http)", "incident.open (http)"):
            assert place in why
        assert "sales/failing failed" in why, "what it could not tell is there to be read"


def alarmed(answer: Answer) -> list[Any]:
    """Of all starts of the alarm those that no backfill made."""
    rows = [json.loads(line) for line in answer.out.splitlines()]
    return rows[3:]


def test_a_schedule_that_never_fires_is_refused(tmp_path: Path) -> None:
    words = ("schedule", "add", "x", "--playbook", "y", "--cron", "0 0 31 2 *")
    answer = noetl(*words, NOETL_HOME=str(tmp_path / "home"))
    assert answer.code == 2
    assert "never fires" in answer.err
