"""Writing to the result store, where a full disk is an outcome and no exception."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from noetl.errors import LogUnavailable
from noetl.messages.reference import Reference
from noetl.ports.result_store import BodyWriter, ResultStore
from noetl.tools.refusal import Refusal


class StoredBody:
    """A body on its way into the store; whoever begins one finishes or discards it."""

    def __init__(self, results: ResultStore, execution_id: str) -> None:
        self._writer: BodyWriter | None = results.open(execution_id)

    def write(self, piece: bytes) -> None:
        assert self._writer is not None, "not finished yet"
        try:
            self._writer.write(piece)
        except LogUnavailable as fault:
            raise _unkept(fault) from None

    async def finish(self, last: bytes = b"", schema_hint: str | None = None) -> Reference:
        """The body is whole."""
        self.write(last)
        assert self._writer is not None, "not finished yet"
        try:
            reference = await self._writer.finish(schema_hint)
        except LogUnavailable as fault:
            raise _unkept(fault) from None
        self._writer = None
        return reference

    async def discard(self) -> None:
        """Forget what was begun; after `finish` there is nothing to forget."""
        writer, self._writer = self._writer, None
        if writer is not None:
            await writer.discard()


@asynccontextmanager
async def spilled(results: ResultStore, execution_id: str) -> AsyncIterator[StoredBody]:
    """A body that is finished within, or discarded."""
    body = StoredBody(results, execution_id)
    try:
        yield body
    finally:
        await body.discard()


async def keep(results: ResultStore, execution_id: str, body: bytes) -> Reference:
    """A body that is whole already."""
    async with spilled(results, execution_id) as stored:
        return await stored.finish(body)


def _unkept(fault: LogUnavailable) -> Refusal:
    return Refusal("internal", str(fault), retryable=True)
