"""Writing to the result store, where a full disk is an outcome and no exception."""

from noetl.errors import LogUnavailable
from noetl.messages.reference import Reference
from noetl.ports.result_store import BodyWriter
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


def _unkept(fault: LogUnavailable) -> Refusal:
    return Refusal("internal", str(fault), retryable=True)
