"""Talks to NATS for tasks of kind `nats`."""

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

from noetl.extras import is_installed
from noetl.kinds.messaging import NatsInputs
from noetl.messages.outcome import Outcome, ok
from noetl.tools.frame import FramedTool
from noetl.tools.refusal import Refusal, needs_extra
from noetl.tools.retries import repeated
from noetl.tools.tool import ToolCall, Workplace

if TYPE_CHECKING:
    from noetl.tools.nats.connections import NatsConnections


class NatsTool(FramedTool):
    """The library is imported by the first call: it is an extra, and most workers do without."""

    keeps_time = True
    empty: ClassVar[dict[str, Any]] = {"code": None, "description": None}

    def __init__(self) -> None:
        self._connections: NatsConnections | None = None

    async def close(self) -> None:
        if self._connections is not None:
            await self._connections.close()

    async def _run(self, call: ToolCall[NatsInputs], workplace: Workplace) -> Outcome:
        if not is_installed("nats"):
            raise needs_extra("'nats'", "nats")
        from noetl.tools.nats import connections, failures, operations

        operation, needs = operations.OPERATIONS[call.inputs.operation]
        for name in needs:
            if not getattr(call.inputs, name):
                raise Refusal("input", f"{call.inputs.operation} needs '{name}'")
        address = await connections.address_of(call, workplace)
        if self._connections is None:
            self._connections = connections.NatsConnections()
        pool = self._connections

        async def send() -> Outcome:
            seconds = call.timeout.connect or connections.CONNECT
            name = f"the connection to {address.url.rpartition('@')[2]}"
            try:
                connection = await pool.find(address, seconds)
                name = named(call.inputs)
                work = operations.NatsOperation(call, workplace, connection)
                seconds = work.seconds
                return ok(await connection.while_alive(operation(work)))
            except Refusal:
                raise
            except Exception as fault:
                return failures.failure_of(name, fault, seconds=seconds)

        try:
            async with asyncio.timeout(call.timeout.total):
                return await repeated(send, call.client_retries)
        except TimeoutError as fault:
            return failures.failure_of(named(call.inputs), fault, seconds=call.timeout.total)


def named(inputs: NatsInputs) -> str:
    """The operation as a message tells it."""
    parts = [part for part in (inputs.subject, inputs.bucket, inputs.key) if part]
    return f"{inputs.operation} {'/'.join(parts)}"
