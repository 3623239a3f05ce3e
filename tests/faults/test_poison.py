"""A task that kills whoever runs it fails alone; work that progresses is not given up (T26)."""

import random
import signal
from pathlib import Path
from threading import Event, Thread

import pytest
from tests.support.fleet import Member
from tests.support.nats import NatsServer
from tests.support.oracle import end_of, judge, logs_in
from tests.support.postgres import Database
from tests.support.processes import Home, Running
from tests.support.steps import arc, loop, playbook, step, task
from tests.support.trial import Trial, lasting, trial, written

KILLS = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)"
"""Its parent is the worker where children have no namespaces."""
OPEN = {"NOETL_NAMESPACES": "off"}
POISONED, INNOCENT = 3, 17
FEW = 6
"""Times that anybody would resume before he looks for the cause."""

POISON = written("poison", step("start", task("kills", "python", code=KILLS)))
HARMLESS = written(
    "harmless",
    step("start", lasting("first", 1), arcs=[arc("end")]),
    step("end", lasting("second", 1)),
)


class Nurse(Thread):
    """Starts whoever has died again, until told to stop."""

    def __init__(self, members: list[Member]) -> None:
        super().__init__(daemon=True)
        self._members = members
        self._over = Event()
        self.deaths = 0

    def run(self) -> None:
        while not self._over.wait(0.1):
            for member in self._members:
                if not member.running.process.is_alive():
                    self.deaths += 1
                    member.again()

    def __enter__(self) -> "Nurse":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


@pytest.mark.fault("T11", "T26")
def test_only_the_poisoned_fail(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    with trial(tmp_path, database, nats_server.url, **OPEN) as fleet:
        fleet.crew(1, 2)
        fleet.register(POISON, HARMLESS)
        names = ["poison"] * POISONED + ["harmless"] * INNOCENT
        random.Random(7).shuffle(names)
        with Nurse(fleet.fleet.workers) as nurse:
            begun = [(name, one) for name in names for one in fleet.start(name, {})]
            fleet.all_ended([one for _, one in begun])
        logs = fleet.judged()
        found = sorted((name, *end_of(logs[one])) for name, one in begun)
        print(f"deaths: {nurse.deaths}, effects: {len(fleet.ledger.effects)}")
        assert found == (
            [("harmless", "completed", None)] * INNOCENT
            + [("poison", "failed", "worker_lost")] * POISONED
        )


@pytest.mark.fault("T26")
def test_a_loop_that_progresses_outlives_the_deaths_of_its_workers(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    """Killed at 80, 160 and 240 of 400: each death is a new one, since something was done."""
    many = loop("{{ range(400) | list }}")
    text = written("long", step("start", lasting("one", 0, value="{{ iter.n }}"), loop=many))
    with trial(tmp_path, database, nats_server.url) as fleet:
        fleet.crew(1, 1)
        fleet.register(text)
        deaths = killed_at(fleet, 80, 160, 240)
        (begun,) = fleet.start("long", {})
        assert fleet.ended(begun).status == "completed"
        fleet.judged()
        assert deaths == [80, 160, 240]
        assert len(set(fleet.ledger.effects)) == 400
        assert len(fleet.ledger.effects) <= 400 + len(deaths)


def killed_at(fleet: Trial, *numbers: int) -> list[int]:
    """The worker dies in the midst of these effects, and another one comes; those that were."""
    (worker,) = fleet.fleet.workers
    done: list[int] = []

    def kill(number: int) -> None:
        if number in numbers:
            done.append(number)
            worker.again()

    fleet.ledger.came = kill
    return done


def test_a_task_that_kills_its_own_program_is_given_up_after_a_few_resumes(
    tmp_path: Path,
) -> None:
    (tmp_path / "playbook.yaml").write_text(
        playbook(step("start", task("kills", "python", code=KILLS)))
    )
    home = Home(tmp_path / "home")
    running = Running(home.folder, "run", tmp_path / "playbook.yaml", **OPEN)
    assert running.ended() == -signal.SIGKILL
    (name,) = home.roots()
    codes: list[int] = []
    while not codes or (codes[-1] < 0 and len(codes) < FEW):
        codes.append(Running(home.folder, "resume", name, name="resumed", **OPEN).ended())
    print(f"resumed: {codes}")
    assert codes[-1] == 1
    logs = logs_in(home.folder, [name])
    judge(logs)
    assert end_of(logs[name]) == ("failed", "worker_lost")
