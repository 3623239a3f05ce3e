"""dramatiq on Redis: messages and results are kept there, and workers are threads."""

import dramatiq
from dramatiq import Worker, group, pipeline
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from bench.peers.programs.telling import Order, asked, fibonacci, main

ORDER = asked()
PATIENCE = 120_000
BROKER = RedisBroker(url=ORDER.url)
BROKER.add_middleware(Results(backend=RedisBackend(url=ORDER.url)))
dramatiq.set_broker(BROKER)


@dramatiq.actor(store_results=True)
def nothing(*_: object) -> int:
    ORDER.one()
    return 1


@dramatiq.actor(store_results=True)
def fib(*_: object) -> int:
    ORDER.one()
    return fibonacci(10)


def chain(what: dramatiq.Actor, count: int) -> None:
    pipeline([what.message() for _ in range(count)]).run().get_result(block=True, timeout=PATIENCE)


def working() -> None:
    Worker(BROKER, worker_threads=8).start()


def timed(order: Order, what: dramatiq.Actor) -> None:
    working()
    chain(nothing, 1)
    order.begin()
    chain(what, order.count)
    order.end()


def spread(order: Order) -> None:
    working()
    chain(nothing, 1)
    order.begin()
    together = group([nothing.message() for _ in range(order.count)]).run()
    assert sum(together.get_results(block=True, timeout=PATIENCE)) == order.count
    order.end()


def many(order: Order) -> None:
    working()
    chain(nothing, 1)
    order.begin()
    begun = [pipeline([nothing.message() for _ in range(5)]).run() for _ in range(order.count)]
    for one in begun:
        one.get_result(block=True, timeout=PATIENCE)
    order.end()


def first(order: Order) -> None:
    working()
    chain(nothing, 1)
    order.end()


if __name__ == "__main__":
    main(
        {
            "W1": lambda order: timed(order, nothing),
            "W2": spread,
            "W3": many,
            "W4": lambda order: timed(order, fib),
            "W5": first,
            "W7": lambda order: timed(order, nothing),
        },
        ORDER,
    )
