"""Faults: each begins at its time, lasts its seconds, and is over when the world heals."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tests.simulation.scenario import FAULTS, Happening

if TYPE_CHECKING:
    from tests.simulation.world import World

T = TypeVar("T")


def one_of(things: Sequence[T], who: float) -> T:
    return things[int(who * len(things))]


def kill_server(world: "World", one: Happening) -> None:
    host = one_of(world.servers, one.who)
    host.kill()
    world.loop.later(one.seconds, host.start)


def kill_worker(world: "World", one: Happening) -> None:
    host = one_of(world.workers, one.who)
    host.kill()
    world.loop.later(one.seconds, host.start)


def pause_server(world: "World", one: Happening) -> None:
    host = one_of(world.servers, one.who)
    host.pause()
    world.loop.later(one.seconds, host.go_on)


def pause_worker(world: "World", one: Happening) -> None:
    host = one_of(world.workers, one.who)
    host.pause()
    world.loop.later(one.seconds, host.go_on)


def drain_worker(world: "World", one: Happening) -> None:
    host = one_of(world.workers, one.who)
    if host.up and host.node is not None and host.plane is not None:
        world.loop.on(host.node, host.stop(one.seconds))
        world.loop.later(one.seconds + 15.0, host.start)


def set_clock(world: "World", one: Happening) -> None:
    hosts = [*world.servers, *world.workers]
    ahead = (one.seconds - 8.0) * 100.0
    world.audit.say(f"a clock jumps by {ahead:.0f} s")
    one_of(hosts, one.who).set_clock(ahead)


def cut(world: "World", one: Happening) -> None:
    pairs = [(worker.name, server.name) for worker in world.workers for server in world.servers]
    pair = one_of(pairs, one.who)
    world.audit.say(f"{pair} hear nothing of each other")
    world.network.cut.add(pair)
    world.loop.later(one.seconds, world.network.cut.discard, pair)


def disk_away(world: "World", one: Happening) -> None:
    world.audit.say("the database is away")
    for disk in world.disks:
        disk.leave()
        world.loop.later(one.seconds, disk.come_back)


def disk_cut(world: "World", one: Happening) -> None:
    """One server alone does not reach the database: others take over what it owns."""
    host = one_of(world.servers, one.who)
    world.audit.say(f"{host.name} does not reach the database")
    host.disk.leave()
    world.loop.later(one.seconds, host.disk.come_back)


def bucket_away(world: "World", one: Happening) -> None:
    world.audit.say("the result store is away")
    world.bucket.leave()
    world.loop.later(one.seconds, world.bucket.come_back)


def disk_full(world: "World", one: Happening) -> None:
    world.audit.say("the disk of the database is full")
    for disk in world.disks:
        disk.full = True
        world.loop.later(one.seconds, setattr, disk, "full", False)


def bucket_full(world: "World", one: Happening) -> None:
    world.audit.say("the disk of the result store is full")
    world.bucket.full = True
    world.loop.later(one.seconds, setattr, world.bucket, "full", False)


def storm(world: "World", one: Happening) -> None:
    """Half of all messages are lost."""
    world.audit.say("half of all messages are lost")
    world.network.loses = 0.5
    world.loop.later(one.seconds, clear_up, world)


def clear_up(world: "World") -> None:
    world.network.loses = 0.0 if world.healed else world.setup.chances["lost"]


def schedule(world: "World") -> None:
    for one in world.setup.happenings:
        if one.kind in FAULTS:
            world.loop.later(one.at, begin, world, one)


def begin(world: "World", one: Happening) -> None:
    if world.healed:
        return
    happen: Callable[[Any, Happening], None] = globals()[one.kind]
    world.counts[one.kind] += 1
    happen(world, one)


def heal(world: "World") -> None:
    """From now on nothing goes wrong any more, whatever was to last longer."""
    world.audit.say("all faults are over")
    world.healed = True
    world.tables.triggers.clear()  # else something would begin for ever
    world.network.calm()
    for disk in (*world.disks, world.bucket):
        disk.come_back()
        disk.full, disk.lossy = False, 0.0
    for host in (*world.servers, *world.workers):
        host.go_on()
        host.set_clock(0.0)  # what waits for a time waits for that of the clock
        if not host.up:
            host.start()
