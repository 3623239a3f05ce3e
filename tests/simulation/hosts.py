"""Machines: each runs a server or a worker, dies, and starts another one."""

import asyncio
from abc import ABC, abstractmethod
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from tests.simulation.audit import AuditedLog
from tests.simulation.line import SimulatedLink
from tests.simulation.loop import Node
from tests.simulation.storage import Disk, SimulatedObjects, SimulatedStorage
from tests.simulation.tools import SimulatedTools

from noetl.errors import NoetlError
from noetl.node.server import ServerNode
from noetl.node.work_plane import WorkPlane
from noetl.ports.result_store import ResultStore
from noetl.settings import Settings
from noetl.tools.plugins import plugins

if TYPE_CHECKING:
    from tests.simulation.world import World

AGAIN = 1.0
"""Seconds after which a server that could not begin is started again."""


class Quiet:
    """Stands for the watchdog: nothing blocks a loop on which no time passes."""

    longest_ms = 0

    async def watch(self) -> None:
        await asyncio.get_running_loop().create_future()


class Host(ABC):
    """A machine; `node` is the process on it."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.lives = 0
        self.node: Node | None = None
        self.skew = 0.0

    @property
    def up(self) -> bool:
        return self.node is not None and not self.node.dead

    def start(self) -> None:
        if self.up:
            return
        self.lives += 1
        self.node = Node(f"{self.name}.{self.lives}")
        self.node.skew = self.skew
        self.world.audit.say(f"{self.node} starts")
        self.world.loop.on(self.node, self._whole_life(self.node))

    async def _whole_life(self, node: Node) -> None:
        try:
            await self._live(node)
        except Exception as fault:
            self.world.audit.check(False, f"{node} ended: {fault!r}")
            raise

    @abstractmethod
    async def _live(self, node: Node) -> None:
        """What a process on it does, from its start on."""

    def kill(self) -> None:
        if self.node is not None and not self.node.dead:
            self.world.audit.say(f"{self.node} is killed")
            self.world.network.detach(self.node)
            self.world.loop.kill(self.node)

    def pause(self) -> None:
        if self.up and self.node is not None:
            self.world.audit.say(f"{self.node} is paused")
            self.node.paused = True

    def go_on(self) -> None:
        if self.node is not None and self.node.paused and not self.node.dead:
            self.world.audit.say(f"{self.node} goes on")
            self.world.loop.go_on(self.node)

    def set_clock(self, skew: float) -> None:
        self.skew = skew
        if self.node is not None:
            self.node.skew = skew

    def says(self, what: str) -> None:
        self.world.heard(self.node.name if self.node else self.name, what)

    def results(self) -> ResultStore:
        return ResultStore(SimulatedObjects(self.world.bodies, self.world.bucket))


class ServerHost(Host):
    """A machine with a server."""

    plane: ServerNode | None = None

    def __init__(self, world: "World", name: str) -> None:
        super().__init__(world, name)
        chance = world.scenario.chance(f"disk of {name}")
        self.disk = Disk(world.loop, chance, world.setup.chances["latency"])

    async def _live(self, node: Node) -> None:
        world = self.world
        while True:
            log = AuditedLog(world.tables, node.name, world.audit)
            storage: Any = SimulatedStorage(
                log, self.disk, node, world.loop, world.settings.lease_ttl
            )
            plane = ServerNode(world.settings, storage, results=self.results(), says=self.says)
            plane.watchdog = Quiet()  # type: ignore[assignment]
            try:
                await plane.serve()
            except NoetlError as away:
                self.says(f"cannot begin: {away}")
                await asyncio.sleep(AGAIN)
                continue
            break
        plane.dispatcher.notifiers.append(world.network.attach(node, plane.dispatcher))
        self.plane = plane

    def kill(self) -> None:
        super().kill()
        self.plane = None


class WorkerHost(Host):
    """A machine with a worker."""

    plane: WorkPlane | None = None

    async def _live(self, node: Node) -> None:
        world = self.world
        tools = SimulatedTools(world.audit, Random(f"{world.seed}/{node.name}"), PLUGINS)
        self.plane = WorkPlane(
            world.settings,
            SimulatedLink(world.network, node),
            results=self.results(),
            tools=tools,
            says=self.says,
            name=node.name,
        )
        await self.plane.run()

    async def stop(self, seconds: float) -> None:
        """As `noetl worker stop` does: it drains, and ends."""
        plane, node = self.plane, self.node
        if plane is None or node is None:
            return
        self.world.audit.say(f"{node} drains")
        await plane.drain(seconds)
        await plane.close()
        if self.node is node:
            self.kill()


PLUGINS = plugins()


def settings(lease: float, *, run_ahead: bool, concurrency: int) -> Settings:
    return Settings(
        home=Path("/nowhere"),
        auth=False,
        lease_ttl=lease,
        run_ahead=run_ahead,
        concurrency=concurrency,
        slots=concurrency,
    )
