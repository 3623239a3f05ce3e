"""What a worker asks of servers: playbooks, children, credentials; however long they are away."""

import asyncio
from typing import Any, NamedTuple

from noetl.errors import ServerAway, ServerRefused
from noetl.messages.codec import decode
from noetl.ports.link import EndWanted, Link, OwnerWanted, Question
from noetl.worker.outbox import FIRST_PAUSE, LONGEST_PAUSE

MOST_KNOWN = 20_000
PATIENT = 20.0
"""Seconds that one question about a child's end waits."""


class OwnerAnswer(NamedTuple):
    """Who decides for an execution; None: nobody at the moment, or nobody answered."""

    server: str | None = None
    finished: bool = False


class Questions:
    """Asks the server that decides for an execution, and finds it again when it has changed."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.where: dict[str, str] = {}
        """Execution → the server that granted a part of it last."""

    async def ask(self, question: Question, about: str | None = None) -> Any:
        """The answer, however long the servers are away; raises ServerRefused."""
        pause = FIRST_PAUSE
        server = None if about is None else self.server_of(about)
        while True:
            try:
                reply = await self.link.ask(question, server)
            except ServerAway:
                pass
            else:
                if reply.error is None:
                    return decode(bytes(reply.value))
                code = str(reply.error.get("code"))
                if code not in ("later", "moved"):
                    raise ServerRefused(str(reply.error.get("message")), code=code)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            server = None if about is None else (await self.standing(about)).server

    async def end_of(self, execution_id: str) -> dict[str, Any]:
        """What an execution came to, when it has ended."""
        while True:
            wanted = EndWanted(execution_id=execution_id, wait=PATIENT)
            found: dict[str, Any] = await self.ask(wanted, execution_id)
            if "ctx" in found:
                return found

    async def standing(self, execution_id: str) -> OwnerAnswer:
        """Who decides for an execution now; of a child that has not begun: for its parent."""
        for name in dict.fromkeys((execution_id, execution_id.partition("-")[0])):
            try:
                reply = await self.link.ask(OwnerWanted(name))
            except ServerAway:
                return OwnerAnswer()
            found = decode(bytes(reply.value)) if reply.error is None else None
            if found and found.get("server"):
                self.where[execution_id] = found["server"]
                return OwnerAnswer(str(found["server"]), bool(found.get("finished")))
        return OwnerAnswer()

    def server_of(self, execution_id: str) -> str | None:
        """A child belongs to the server of its parent, whose id its own begins with."""
        if len(self.where) > MOST_KNOWN:  # whoever is asked instead answers, too
            self.where.clear()
        name = execution_id
        while name:
            if name in self.where:
                return self.where[name]
            name = name.rpartition("-")[0]
        return None
