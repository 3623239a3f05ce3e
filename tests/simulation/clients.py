"""Clients: they start executions and give orders, and ask again where nobody answers."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any

from tests.simulation.playbooks import SIGNAL
from tests.simulation.scenario import ORDERS, Happening
from tests.simulation.troubles import one_of

from noetl.errors import (
    HomeInUse,
    LogUnavailable,
    NoetlError,
    OutcomeUnknown,
    VersionConflict,
)
from noetl.messages import requests as r
from noetl.node.server import ServerNode

if TYPE_CHECKING:
    from tests.simulation.world import World

PATIENCE = 8.0
"""Seconds after which a client asks another server."""
UNKNOWN = (TimeoutError, OutcomeUnknown, LogUnavailable, VersionConflict, HomeInUse)
"""After these the client does not know, and asks again."""

NOTHING = Happening(0.0, "", 0.0, 0.0)

Work = Callable[[ServerNode], Coroutine[Any, Any, Any]]


def works(world: "World") -> Iterator[Coroutine[Any, Any, None]]:
    chance = world.scenario.chance("starts")
    for number in range(world.setup.executions):
        at, path = chance.random() * world.setup.span * 0.5, chance.choice(world.paths)
        yield _start(world, number, at, path)
    for one in world.setup.happenings:
        if one.kind in ORDERS:
            yield _order(world, one)


async def asked(world: "World", first: int, work: Work) -> Any:
    """The answer of some server, in the end; None where it was refused."""
    for attempt in range(100):
        host = world.servers[(first + attempt) % len(world.servers)]
        try:
            return await world.ask(host, work, PATIENCE)
        except UNKNOWN:
            await asyncio.sleep(0.5)
        except NoetlError as refused:
            kind = type(refused).__name__
            world.counts[f"refused: {kind}"] += 1
            world.audit.say(f"client: {kind}: {str(refused)[:160]}")
            return None
    return None


async def _start(world: "World", number: int, at: float, path: str) -> None:
    await asyncio.sleep(at)
    key = f"client {number}"
    world.audit.say(f"client: starts {path}")
    row = await asked(world, number, lambda plane: plane.execute(path=path, payload={}, key=key))
    if row is not None:
        world.accepted[row.execution_id] = world.loop.now
        world.audit.check(
            row.execution_id in world.tables.rows,
            f"{row.execution_id} was accepted before it was durable (promise 1)",
        )


async def _order(world: "World", one: Happening) -> None:
    await asyncio.sleep(one.at)
    names = list(world.tables.rows)
    if not names:
        return
    name = one_of(names, one.who)
    world.counts[one.kind] += 1
    world.audit.say(f"client: {one.kind} {name[-6:]}")
    await asked(world, int(one.seconds * 10), GIVE[one.kind](name, one))


def _plain(kind: Any) -> Callable[[str, Happening], Work]:
    return lambda name, _: lambda plane: plane.order(name, kind, "a client says so")


def _signal(name: str, one: Happening) -> Work:
    given = r.SendSignal(signal=SIGNAL, data=1, sender="client", signal_id=f"{one.at}")
    return lambda plane: plane.signal(name, given)


def _answer(name: str, one: Happening) -> Work:
    approved = one.seconds > 1.0
    return lambda plane: plane.answer(name, None, approved=approved, sender="client")


def _restart(name: str, one: Happening) -> Work:
    return lambda plane: plane.restarts.restart(name, key=f"again {one.at}", sender="client")


def _look(name: str, _: Happening) -> Work:
    return lambda plane: plane.summary(name)


GIVE: dict[str, Callable[[str, Happening], Work]] = {
    "cancel": _plain("cancel"),
    "pause": _plain("pause"),
    "resume": _plain("resume"),
    "signal": _signal,
    "answer": _answer,
    "restart": _restart,
    "look": _look,
}


async def resume_all(world: "World") -> None:
    for name in world.open_rows():
        if world.tables.rows[name].status == "paused":
            await asked(world, 0, _plain("resume")(name, NOTHING))


async def cancel_all(world: "World") -> None:
    for name in world.open_rows():
        await asked(world, 0, _plain("cancel")(name, NOTHING))
