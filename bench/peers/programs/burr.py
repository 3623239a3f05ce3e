"""Burr on SQLite: the whole state is written after each step."""

from collections.abc import Callable

from burr.core import ApplicationBuilder, State, action, when
from burr.core.persistence import SQLitePersister

from bench.peers.programs.telling import Order, asked, fibonacci, main

ORDER = asked()


def built(app_id: str, persister: SQLitePersister, length: int, work: Callable[[], object]):  # type: ignore[no-untyped-def]
    """A state machine of one action that comes back to itself."""

    @action(reads=["n"], writes=["n"])
    def turn(state: State) -> State:
        work()
        ORDER.one()
        return state.update(n=state["n"] + 1)

    @action(reads=["n"], writes=["done"])
    def over(state: State) -> State:
        return state.update(done=True)

    return (
        ApplicationBuilder()
        .with_actions(turn=turn, over=over)
        .with_transitions(("turn", "over", when(n=length)), ("turn", "turn"))
        .with_state(n=0)
        .with_entrypoint("turn")
        .with_identifiers(app_id=app_id)
        .with_state_persister(persister)
        .build()
    )


def opened(order: Order) -> SQLitePersister:
    persister = SQLitePersister(str(order.folder / "burr.sqlite"), table_name="bench")
    persister.initialize()
    return persister


def run(app_id: str, persister: SQLitePersister, length: int, work: Callable[[], object]) -> None:
    app = built(app_id, persister, length, work)
    for _ in range(length):
        app.step()


def nothing() -> None:
    return None


def chain(order: Order) -> None:
    persister = opened(order)
    run("warm", persister, 1, nothing)
    order.begin()
    run("chain", persister, order.count, nothing)
    order.end()


def fibonaccis(order: Order) -> None:
    persister = opened(order)
    run("warm", persister, 1, nothing)
    order.begin()
    run("fib", persister, order.count, lambda: fibonacci(10))
    order.end()


def separate(length: int) -> Callable[[Order], None]:
    """Applications one after the other: the persister is one connection of one thread."""

    def many(order: Order) -> None:
        persister = opened(order)
        run("warm", persister, 1, nothing)
        order.begin()
        for number in range(order.count):
            run(f"a{number}", persister, length, nothing)
        order.end()

    return many


def first(order: Order) -> None:
    run("first", opened(order), 1, nothing)
    order.end()


if __name__ == "__main__":
    works = {"W1": chain, "W2": separate(1), "W3": separate(5), "W4": fibonaccis, "W5": first}
    main({**works, "W7": chain}, ORDER)
