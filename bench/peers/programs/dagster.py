"""Dagster in one process with an instance on SQLite: each event is a row."""

import os

from dagster import DagsterInstance, GraphDefinition, In, JobDefinition, Nothing, op

from bench.peers.programs.telling import Order, asked, fibonacci, main

ORDER = asked()
os.environ["DAGSTER_HOME"] = str(ORDER.folder)


@op(ins={"after": In(Nothing)})
def nothing() -> None:
    ORDER.one()


@op(ins={"after": In(Nothing)})
def fib() -> int:
    ORDER.one()
    return fibonacci(10)


def chained(what, count: int) -> JobDefinition:  # type: ignore[no-untyped-def]
    """Steps in a row; the first has nothing before it."""
    from dagster import DependencyDefinition, NodeInvocation

    links = {
        NodeInvocation(what.name, alias=f"s{n}"): (
            {"after": DependencyDefinition(f"s{n - 1}")} if n else {}
        )
        for n in range(count)
    }
    graph = GraphDefinition("bench", node_defs=[what], dependencies=links)
    return graph.to_job()


def spread(count: int) -> JobDefinition:
    """Steps side by side and one after all of them."""
    from dagster import DependencyDefinition, MultiDependencyDefinition, NodeInvocation

    names = [f"s{n}" for n in range(count)]
    links: dict[object, object] = {NodeInvocation("nothing", alias=name): {} for name in names}
    last = {"after": MultiDependencyDefinition([DependencyDefinition(name) for name in names])}
    links[NodeInvocation("nothing", alias="join")] = last
    return GraphDefinition("bench", node_defs=[nothing], dependencies=links).to_job()


def run(job: JobDefinition, instance: DagsterInstance) -> None:
    assert job.execute_in_process(instance=instance).success


def timed(job: JobDefinition, order: Order, repeats: int = 1) -> None:
    with DagsterInstance.get() as instance:
        run(chained(nothing, 1), instance)
        order.begin()
        for _ in range(repeats):
            run(job, instance)
        order.end()


def first(order: Order) -> None:
    with DagsterInstance.get() as instance:
        run(chained(nothing, 1), instance)
    order.end()


if __name__ == "__main__":
    main(
        {
            "W1": lambda order: timed(chained(nothing, order.count), order),
            "W2": lambda order: timed(spread(order.count), order),
            "W3": lambda order: timed(chained(nothing, 5), order, order.count),
            "W4": lambda order: timed(chained(fib, order.count), order),
            "W5": first,
            "W7": lambda order: timed(chained(nothing, order.count), order),
        },
        ORDER,
    )
