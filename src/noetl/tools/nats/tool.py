"""Talks to NATS for tasks of kind `nats`."""

import asyncio
import importlib.util
from typing import TYPE_CHECKING, Any

import msgspec

from noetl.errors import CredentialMissing
from noetl.kinds.messaging import NatsInputs
from noetl.messages.outcome import Outcome, failed, ok
from noetl.tools.refusal import Refusal, unforeseen
from noetl.tools.retries import repeated
from noetl.tools.tool import ToolCall, Workplace

if TYPE_CHECKING:
    from noetl.tools.nats.connections import NatsConnections

NO_CODE: dict[str, Any] = {"code": None, "description": None}


class NatsTool:
    """The library is imported by the first call: it is an extra, and most workers do without."""

    keeps_time = True

    def __init__(self) -> None:
        self._connections: NatsConnections | None = None

    async def call(self, call: ToolCall[NatsInputs], workplace: Workplace) -> Outcome:
        try:
            outcome = await self._run(call, workplace)
        except Refusal as refusal:
            outcome = refusal.outcome
        except CredentialMissing as missing:
            outcome = failed("auth", str(missing))
        except Exception as fault:
            outcome = unforeseen(fault)
        return outcome if outcome.block else msgspec.structs.replace(outcome, block=NO_CODE)

    async def forget(self, scratch: str) -> None:
        """Nothing lives for a step run."""

    async def close(self) -> None:
        if self._connections is not None:
            await self._connections.close()

    async def _run(self, call: ToolCall[NatsInputs], workplace: Workplace) -> Outcome:
        if importlib.util.find_spec("nats") is None:
            raise Refusal("not_found", "'nats' needs an extra: pip install 'noetl[nats]'")
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
