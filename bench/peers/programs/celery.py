"""Celery on Redis: messages and results are kept there; two worker processes run the tasks."""

import os
import subprocess
import sys

from celery import Celery, chain, chord

from bench.peers.programs.telling import Order, asked, fibonacci, main

URL = os.environ["BENCH_REDIS"]
"""The worker reads this module, too, and has arguments of its own."""
app = Celery("bench", broker=URL, backend=URL)
app.conf.update(task_track_started=False, worker_prefetch_multiplier=4)
PATIENCE = 120


@app.task(name="nothing")
def nothing() -> int:
    return 1


@app.task(name="fib")
def fib() -> int:
    return fibonacci(10)


@app.task(name="join")
def join(results: list[int]) -> int:
    return len(results)


def working() -> None:
    module = "bench.peers.programs.celery"
    command = [sys.executable, "-m", "celery", "-A", module, "worker", "--concurrency", "2"]
    subprocess.Popen([*command, "--loglevel", "CRITICAL"], stdout=subprocess.DEVNULL)
    nothing.delay().get(timeout=PATIENCE)


def timed(order: Order, what: str) -> None:
    working()
    order.begin()
    steps = [app.signature(what, immutable=True) for _ in range(order.count)]
    chain(*steps).apply_async().get(timeout=PATIENCE)
    order.end()


def spread(order: Order) -> None:
    working()
    order.begin()
    steps = [nothing.si() for _ in range(order.count)]
    assert chord(steps)(join.s()).get(timeout=PATIENCE) == order.count
    order.end()


def many(order: Order) -> None:
    working()
    order.begin()
    lines = [chain(*(nothing.si() for _ in range(5))) for _ in range(order.count)]
    for one in [line.apply_async() for line in lines]:
        one.get(timeout=PATIENCE)
        order.done += 5
    order.end()


def first(order: Order) -> None:
    working()
    order.end()


if __name__ == "__main__":
    main(
        {
            "W1": lambda order: timed(order, "nothing"),
            "W2": spread,
            "W3": many,
            "W4": lambda order: timed(order, "fib"),
            "W5": first,
            "W7": lambda order: timed(order, "nothing"),
        },
        asked(),
    )
