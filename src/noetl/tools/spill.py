"""Writing to the result store, where a full disk is an outcome and no exception."""

from noetl.errors import LogUnavailable
from noetl.messages.reference import Reference
from noetl.ports.result_store import BodyWriter, ResultStore
from noetl.tools.refusal import Refusal


def spill(writer: BodyWriter, piece: bytes) -> None:
    """One more piece of the body."""
    try:
        writer.write(piece)
    except LogUnavailable as fault:
        raise _unkept(fault) from None


async def finish(writer: BodyWriter, schema_hint: str | None = None) -> Reference:
    """The body is whole."""
    try:
        return await writer.finish(schema_hint)
    except LogUnavailable as fault:
        raise _unkept(fault) from None


async def keep(results: ResultStore, execution_id: str, body: bytes) -> Reference:
    """A body that is whole already."""
    writer = results.open(execution_id)
    try:
        spill(writer, body)
        return await finish(writer)
    except BaseException:
        await writer.discard()
        raise


def _unkept(fault: LogUnavailable) -> Refusal:
    return Refusal("internal", str(fault), retryable=True)
