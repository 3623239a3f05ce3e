"""Prefect 3 with a server on SQLite: states of tasks are sent to it as they change."""

from concurrent.futures import ThreadPoolExecutor

from prefect import flow, task
from prefect.task_runners import ThreadPoolTaskRunner

from bench.peers.programs.telling import Order, asked, fibonacci, main

AT_ONCE = 100
ORDER = asked()


@task
def nothing() -> None:
    ORDER.one()


@task
def fib() -> int:
    ORDER.one()
    return fibonacci(10)


@flow
def chain(count: int) -> None:
    for _ in range(count):
        nothing()


@flow
def fibonaccis(count: int) -> None:
    for _ in range(count):
        fib()


@flow(task_runner=ThreadPoolTaskRunner(max_workers=AT_ONCE))
def spread(count: int) -> None:
    for future in [nothing.submit() for _ in range(count)]:
        future.result()


def one_chain(order: Order) -> None:
    chain(1)
    order.begin()
    chain(order.count)
    order.end()


def fibonacci_chain(order: Order) -> None:
    chain(1)
    order.begin()
    fibonaccis(order.count)
    order.end()


def parallel(order: Order) -> None:
    chain(1)
    order.begin()
    spread(order.count)
    order.end()


def many(order: Order) -> None:
    chain(1)
    order.begin()
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(lambda _: chain(5), range(order.count)))
    order.end()


def first(order: Order) -> None:
    chain(1)
    order.end()


if __name__ == "__main__":
    works = {"W1": one_chain, "W2": parallel, "W3": many, "W4": fibonacci_chain, "W5": first}
    main({**works, "W7": one_chain}, ORDER)
