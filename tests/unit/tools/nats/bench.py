"""The nats tool on a bench, with someone at the other end."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from tests.support.nats import NatsServer
from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.messaging import NatsInputs
from noetl.messages.outcome import Outcome
from noetl.playbook.model import Timeout
from noetl.tools.nats.tool import NatsTool


class Bench:
    """Calls one after the other with one tool; `peer` is another client of the server."""

    def __init__(self, server: NatsServer, **credentials: dict[str, Any]) -> None:
        self.server = server
        self.place = BenchPlace(**credentials)

    def call(self, operation: str, *, timeout: Timeout | None = None, **given: Any) -> Any:
        more = {name: given.pop(name) for name in ("max_inline", "task_run_id") if name in given}
        given.setdefault("url", self.server.url)
        if given["url"] is None:
            del given["url"]
        inputs = NatsInputs(operation=operation, **given)  # type: ignore[arg-type]
        return call_of(inputs, timeout=timeout or Timeout(), **more)

    def run(self, *calls: Any) -> list[Outcome]:
        async def all_of_them() -> list[Outcome]:
            tool = NatsTool()
            try:
                return [await tool.call(call, self.place) for call in calls]
            finally:
                await tool.close()

        return asyncio.run(all_of_them())

    def one(self, operation: str, **given: Any) -> Outcome:
        return self.run(self.call(operation, **given))[0]

    def result(self, operation: str, **given: Any) -> Any:
        outcome = self.one(operation, **given)
        assert (outcome.status, outcome.error) == ("ok", None)
        assert outcome.block == {"code": None, "description": None}
        return outcome.result

    def error(self, operation: str, **given: Any) -> dict[str, Any]:
        outcome = self.one(operation, **given)
        assert outcome.error is not None, outcome
        assert set(outcome.block or {}) == {"code", "description"}
        return outcome.error

    def with_peer(
        self,
        subject: str,
        answer: Callable[[Msg], Awaitable[None]],
        *calls: Any,
    ) -> list[Outcome]:
        """Calls while a peer listens to a subject."""

        async def talk() -> list[Outcome]:
            peer: Client = await nats.connect(self.server.url)
            tool = NatsTool()
            try:
                await peer.subscribe(subject, cb=answer)
                await peer.flush()
                outcomes = [await tool.call(call, self.place) for call in calls]
                await peer.flush()
                return outcomes
            finally:
                await tool.close()
                await peer.drain()

        return asyncio.run(talk())
