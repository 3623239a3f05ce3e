"""Servers and workers on PostgreSQL and NATS beside the raw limits, and beside DBOS on the same."""

import asyncio
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import nats, postgres
from tests.support.fleet import Fleet, free_port, sailing

from bench.distributed import history, texts
from bench.distributed.load import (
    Idle,
    executions_rate,
    get_times,
    requests_rate,
)
from bench.distributed.raw import measured
from bench.figure import Figure
from bench.size import SMALL, sized
from noetl.client.client import Client

DBOS = "dbos==3.3.*"
REPEATS = sized(3, small=1)
EXECUTIONS = sized(1_000, small=40)
REQUESTS = sized(3_000, small=64)
LONG = sized(1_000_000, small=2_000)
GETS = sized(200)
DURABLE = ("fsync=on", "synchronous_commit=on", "full_page_writes=on", "max_wal_size=4GB")


def figures() -> Iterator[Figure]:
    with postgres.running(*DURABLE) as server, nats.running() as queue:
        with (
            server.fresh_database() as database,
            folder() as place,
            sailing(place, database, queue.url, NOETL_LEASE_TTL="15") as fleet,
        ):
            fleet.server()
            fleet.worker()
            fleet.ready()
            register(fleet)
            yield chain_figure(fleet, database, queue)
            peer = commits(database, queue) if SMALL else dbos(server)
            yield steps_figure(fleet, peer["steps"])
            yield loop_figure(fleet, peer["tasks"])
            yield scaling(fleet)
            yield api_figure(fleet, database)
        yield from page_figures(server, queue)


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="noetl-bench-") as name:
        yield Path(name)


def urls(fleet: Fleet) -> list[str]:
    return [server.url for server in fleet.servers if server.url is not None]


def register(fleet: Fleet) -> None:
    for text in (texts.chain(), texts.five(), texts.many(), texts.empty()):
        with Client(urls(fleet)[0]) as client:
            client.register(text)


def chain_figure(fleet: Fleet, database: postgres.Database, queue: nats.NatsServer) -> Figure:
    """A step that a worker runs, against one round trip and one commit."""
    ours, floor = [], []
    client = Client(urls(fleet)[0])
    for _ in range(REPEATS + 2):
        commit, trip = measured(database.url, queue.url)
        made = client.execute("bench/chain")
        summary = client.summary(made.execution_id, wait=120.0)
        assert summary.status == "completed", summary.error
        ours.append(summary.duration_ms / 1000 / texts.CHAIN)
        floor.append(commit + trip)
    client.close()
    return Figure.of("chain step / (round trip + commit)", ours[1:], floor[1:], 2.0, "s")


def commits(database: postgres.Database, queue: nats.NatsServer) -> dict[str, float]:
    """In place of a peer, whose installation takes longer than all the rest of a small run."""
    commit, _ = measured(database.url, queue.url)
    return {"steps": 1 / commit, "tasks": 1 / commit}


def dbos(server: postgres.PostgresServer) -> dict[str, float]:
    """Installed into an environment of its own; on a database of the same cluster."""
    with folder() as place, server.fresh_database() as database:
        python = place / "env" / "bin" / "python"
        uv = Path(sys.executable).with_name("uv")
        subprocess.run([uv, "venv", "-q", "--python", sys.executable, place / "env"], check=True)
        subprocess.run([uv, "pip", "install", "-q", "--python", python, DBOS], check=True)
        script = Path(__file__).with_name("peer_dbos.py")
        command = [str(python), str(script), database.url, "300", "1000"]
        told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return dict(json.loads(told.stdout.strip().splitlines()[-1]))


def steps_figure(fleet: Fleet, steps: float) -> Figure:
    ours = [5 * executions_rate(urls(fleet), "bench/five", EXECUTIONS) for _ in range(REPEATS)]
    return Figure.of("1,000 x 5 steps / DBOS", ours, [steps], 60, "1/s", at_most=False)


def loop_figure(fleet: Fleet, tasks: float) -> Figure:
    client = Client(urls(fleet)[0])
    ours = []
    for _ in range(REPEATS):
        made = client.execute("bench/many")
        summary = client.summary(made.execution_id, wait=120.0)
        assert summary.status == "completed", summary.error
        ours.append(texts.ITERATIONS / (summary.duration_ms / 1000))
    client.close()
    return Figure.of("loop of 10,000 / DBOS tasks", ours, [tasks], 60, "1/s", at_most=False)


def scaling(fleet: Fleet) -> Figure:
    """A second server and worker; on a machine without cores to spare, what is lost by them."""
    idle = Idle()
    alone = [executions_rate(urls(fleet), "bench/five", EXECUTIONS) for _ in range(REPEATS)]
    left_alone = idle.share()
    fleet.server()
    fleet.worker()
    fleet.ready()
    idle = Idle()
    both = [executions_rate(urls(fleet), "bench/five", EXECUTIONS) for _ in range(REPEATS)]
    left = idle.share()
    print(f"  idle: {left_alone:.0%} with one server and worker, {left:.0%} with two of each")
    target = 0.9 if left < 0.15 else 1.5
    return Figure.of("2 + 2 / 1 + 1 processes", both, alone, target, "1/s", at_most=False)


def api_figure(fleet: Fleet, database: postgres.Database) -> Figure:
    port = free_port()
    script = Path(__file__).with_name("bare_api.py")
    command = [sys.executable, str(script), database.url, str(port)]
    bare_url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command) as bare:
        try:
            wait_for(port)
            ours, reference = [], []
            for _ in range(REPEATS + 1):
                body = {"path": "bench/one", "payload": {}}
                ours.append(requests_rate(urls(fleet)[:1], "/api/executions", body, REQUESTS))
                reference.append(requests_rate([bare_url], "/commit", body, REQUESTS))
        finally:
            bare.kill()
    name = "POST executions / bare commit"
    return Figure.of(name, ours[1:], reference[1:], 0.5, "1/s", at_most=False)


def wait_for(port: int) -> None:
    until = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > until:
                raise
        else:
            return


def page_figures(server: postgres.PostgresServer, queue: nats.NatsServer) -> Iterator[Figure]:
    """Pages of lists and events, with a short and with a long history."""
    times: dict[str, dict[str, list[float]]] = {}
    for name, events in (("short", 1_000), ("long", LONG)):
        with (
            server.fresh_database() as database,
            folder() as place,
            sailing(place, database, queue.url) as fleet,
        ):
            fleet.server()
            fleet.ready()
            execution_id = asyncio.run(history.write(database.url, events))
            base = urls(fleet)[0]
            routes = {
                "list": f"{base}/api/executions?limit=50",
                "events": f"{base}/api/executions/{execution_id}/events?after={events - 500}",
            }
            times[name] = {what: p95s(url) for what, url in routes.items()}
    for what in ("list", "events"):
        label = f"{what} page p95, 1M / 1k events"
        yield Figure.of(label, times["long"][what], times["short"][what], 1.5, "s")


def p95s(url: str) -> list[float]:
    get_times(url, sized(50, small=2))
    return [statistics.quantiles(get_times(url, GETS), n=20)[18] for _ in range(REPEATS)]
