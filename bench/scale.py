"""
`python -m bench.scale`: what an execution costs each process, and what two servers then bring.

One server is measured under load, process by process. From those costs a simulation predicts the
rate of two shards on this machine; then two shards are measured. Everything shares the same cores:
servers, PostgreSQL, and whoever makes the load.
"""

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import NamedTuple

from tests.support import nats, postgres
from tests.support.fleet import free_port
from tests.support.processes import Running

from bench.distributed import texts
from bench.distributed.figures import DURABLE, wait_for
from bench.distributed.load import executions_rate
from bench.size import sized
from noetl.client.client import Client

EXECUTIONS = sized(4_000)
BATCH = 25
"""Executions of one request: many connections, so that all shards get some."""
REPEATS = sized(3, small=1)
CORES = len(os.sched_getaffinity(0))
TICK = os.sysconf("SC_CLK_TCK")
ROW = "{:<58} {:>12}"


class Costs(NamedTuple):
    """Seconds of a core for one execution."""

    server: float
    database: float
    load: float


class Measured(NamedTuple):
    """A rate, and what it took."""

    rate: float
    costs: Costs


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="noetl-scale-") as folder,
        postgres.running(*DURABLE) as server,
        nats.running() as queue,
    ):
        found = {}
        for shards in (1, 2):
            with (
                server.fresh_database() as database,
                serving(Path(folder) / str(shards), shards, database.url, queue.url) as (url, pid),
            ):
                found[shards] = measured(url, pid, server.pid)
    costs = found[1].costs
    say("server: processor time of an execution of five steps", f"{1e6 * costs.server:.0f} µs")
    say("PostgreSQL: the same", f"{1e6 * costs.database:.0f} µs")
    say("whoever makes the load: the same", f"{1e6 * costs.load:.0f} µs")
    say("cores", str(CORES))
    for shards, one in found.items():
        guess = predicted(costs, shards, CORES)
        off = guess / one.rate - 1
        say(f"{shards} shards: predicted executions a second", f"{guess:.0f}")
        say(f"{shards} shards: measured executions a second", f"{one.rate:.0f} ({off:+.0%})")
    say("two shards / one, measured", f"{found[2].rate / found[1].rate:.2f}")
    alone = predicted(costs, 2, 64) / predicted(costs, 1, 64)
    say("two shards / one, predicted with cores to spare", f"{alone:.2f}")


def say(what: str, value: str) -> None:
    print(ROW.format(what, value), flush=True)


@contextmanager
def serving(home: Path, shards: int, db: str, queue: str) -> Iterator[tuple[str, int]]:
    """Servers as a user starts them; where they answer, and the process that minds them."""
    home.mkdir()
    port = free_port()
    words = ("server", "start", "--foreground", "--shards", str(shards), "--port", str(port))
    server = Running(home, *words, NOETL_DB=db, NOETL_QUEUE=queue, NOETL_AUTH="0")
    try:
        wait_for(port)
        url = f"http://127.0.0.1:{port}"
        with Client(url, pauses=(0.2,) * 100) as client:
            client.register(texts.five())
        yield url, server.pid
    finally:
        server.tell(signal.SIGTERM)
        server.ended()


def measured(url: str, server: int, database: int) -> Measured:
    executions_rate([url], "bench/five", EXECUTIONS // 4, batch=BATCH)  # warms up
    rates, began, own = [], (used(server), used(database)), process_time()
    for _ in range(REPEATS):
        rates.append(executions_rate([url], "bench/five", EXECUTIONS, batch=BATCH))
    spent = (used(server) - began[0], used(database) - began[1], process_time() - own)
    done = EXECUTIONS * REPEATS
    return Measured(sorted(rates)[len(rates) // 2], Costs(*(took / done for took in spent)))


def used(root: int) -> float:
    """Seconds of a core that a process and all below it have taken so far."""
    total, waiting = 0, [root]
    while waiting:
        pid = waiting.pop()
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            continue
        total += sum(int(field) for field in fields[11:15])
        waiting += [int(child) for child in children]
    return total / TICK


# ── the simulation ───────────────────────────────────────────────────────────────────────────


def predicted(costs: Costs, shards: int, cores: int, *, executions: int = 2_000) -> float:
    """
    Executions a second where processes with something to do share the cores evenly.

    The load is one process, each shard is one, and PostgreSQL is one for each shard. Work flows
    from the first to the second to the third; the disk is not waited for, as commits are shared.
    """
    work = [costs.load * executions] + [0.0] * (2 * shards)
    done, now, turn = 0.0, 0.0, costs.server * 5
    while done < executions - 1e-6:
        given = shared_out(work, turn, cores * turn)
        work = [waiting - took for waiting, took in zip(work, given, strict=True)]
        for n in range(1, shards + 1):
            work[n] += given[0] / costs.load / shards * costs.server
            work[shards + n] += given[n] / costs.server * costs.database
            done += given[shards + n] / costs.database
        now += turn
    return executions / now


def shared_out(work: list[float], most: float, total: float) -> list[float]:
    """Time for each process: no more than it needs or than one core has, the rest evenly."""
    given = [0.0] * len(work)
    wanting = {n for n, need in enumerate(work) if need > 0}
    while wanting and total > 1e-12:
        each = total / len(wanting)
        for n in sorted(wanting):
            more = min(each, work[n] - given[n], most - given[n])
            given[n] += more
            total -= more
        wanting = {n for n in wanting if min(work[n], most) - given[n] > 1e-12}
    return given


if __name__ == "__main__":
    main()
