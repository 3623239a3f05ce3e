"""What a worker asks of servers: playbooks, children, credentials; however long they are away."""

import asyncio
from collections.abc import Collection
from typing import Any, NamedTuple

import msgspec

from noetl.errors import ServerAway, ServerRefused
from noetl.messages.codec import decode
from noetl.ports.link import Call, EndWanted, Hold, Link, OwnerWanted, Question
from noetl.worker.outbox import FIRST_PAUSE, LONGEST_PAUSE

MOST_KNOWN = 20_000
PATIENT = 20.0
"""Seconds that one question about a child's end waits."""


class OwnerAnswer(NamedTuple):
    """Who decides for an execution; None: nobody at the moment, or nobody answered."""

    server: str | None = None
    finished: bool = False


class Questions:
    """
    Asks the server that decides for an execution, and finds it again when it has changed. Every
    question names the lease that it is asked under (WRK-1).
    """

    def __init__(self, link: Link, me: Call, holds: Collection[Hold]) -> None:
        self.link = link
        self._me = me
        self._holds = holds
        self.where: dict[str, str] = {}
        """Execution → the server that granted a part of it last."""

    async def ask_for_any(self, question: Question) -> Any:
        """A question that is not about one part: any that is held, the newest first, will do."""
        refused = ServerRefused("this worker holds no part", code="refused")
        for hold in reversed(list(self._holds)):
            try:
                return await self.ask(question, hold)
            except ServerRefused as wrong:
                if wrong.code != "refused":
                    raise
                refused = wrong  # that lease has just ended
        raise refused

    async def ask(self, question: Question, hold: Hold) -> Any:
        """The answer, however long the servers are away; raises ServerRefused."""
        pause, about = FIRST_PAUSE, hold.execution_id
        server = self.server_of(about)
        question = self._mine(question, hold)
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
            server = (await self.standing(about)).server

    def _mine(self, question: Question, hold: Hold | None) -> Question:
        me = self._me
        return msgspec.structs.replace(question, worker=me.worker, pool=me.pool, hold=hold)

    async def end_of(self, execution_id: str, hold: Hold) -> dict[str, Any]:
        """What an execution came to, when it has ended."""
        while True:
            wanted = EndWanted(execution_id=execution_id, wait=PATIENT)
            found: dict[str, Any] = await self.ask(wanted, hold)
            if "ctx" in found:
                return found

    async def standing(self, execution_id: str) -> OwnerAnswer:
        """Who decides for an execution now; of a child that has not begun: for its parent."""
        for name in dict.fromkeys((execution_id, execution_id.partition("-")[0])):
            try:
                reply = await self.link.ask(self._mine(OwnerWanted(name), None))
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
