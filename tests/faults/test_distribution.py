"""The iterations of a distributed loop go to where they can run now."""

from collections import Counter
from pathlib import Path

from tests.support.nats import NatsServer
from tests.support.oracle import Event
from tests.support.postgres import Database
from tests.support.proxy import between
from tests.support.steps import loop, step, task
from tests.support.trial import lasting, sized, trial, written

ITERATIONS, FLIGHT, RUNS = 80, 40, 5
WHERE = "import os, time\ntime.sleep(0.1)\nresult = os.getppid()"
"""Its parent is the worker where children have no namespaces."""

TEXT = written(
    "spread",
    step(
        "start",
        task("where", "python", code=WHERE),
        loop=loop(
            f"{{{{ range({ITERATIONS}) | list }}}}",
            mode="parallel",
            flight=FLIGHT,
            exec="distributed",
        ),
    ),
)


def workers_in(events: list[Event]) -> Counter[int]:
    """The process of a worker → how many iterations it has run."""
    return Counter(
        event["data"]["outcome"]["result"] for event in events if event["name"] == "task.done"
    )


def test_two_idle_workers_share_a_loop(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    with trial(tmp_path, database, nats_server.url, NOETL_NAMESPACES="off") as fleet:
        fleet.crew(1, 2)
        for worker in fleet.fleet.workers:
            fleet.there(worker)
        fleet.register(TEXT)
        shares = []
        for _ in range(RUNS):
            begun = fleet.start("spread", {})
            assert fleet.all_ended(begun) == {"completed": 1}
            shares.append(workers_in(fleet.log(begun[0])))
        fleet.judged()
        print([dict(share) for share in shares])
        assert all(len(share) == 2 for share in shares), shares
        assert all(min(share.values()) >= ITERATIONS // 4 for share in shares), shares


ELEMENTS = sized(1_000, 20_000)
LENGTH = 500
OFTEN = 20
"""How many times the collection may pass, everything else that is said included."""

ROWS = written(
    "rows",
    step(
        "start",
        lasting("one", 0, value="{{ iter.n.number }}"),
        loop=loop("{{ workload.rows }}", mode="parallel", flight=FLIGHT, exec="distributed"),
    ),
    workload={"url": "", "rows": []},
)


def test_what_a_worker_is_given_is_what_it_runs(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    """Not the whole collection with each range of it."""
    with (
        trial(tmp_path, database, nats_server.url) as fleet,
        between(nats_server.port) as line,
    ):
        fleet.fleet.server()
        fleet.fleet.worker(NOETL_QUEUE=f"nats://127.0.0.1:{line.port}")
        fleet.fleet.ready()
        fleet.register(ROWS)
        rows = [{"number": number, "text": "x" * LENGTH} for number in range(ELEMENTS)]
        begun = fleet.start("rows", {"rows": rows})
        assert fleet.all_ended(begun) == {"completed": 1}
        fleet.judged()
        assert fleet.times() == {1: ELEMENTS}
        print(f"{line.answered:,} bytes for {ELEMENTS * LENGTH:,}")
        assert line.answered <= OFTEN * ELEMENTS * LENGTH
