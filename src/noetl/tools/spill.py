"""Writing to the result store, where a full disk is an outcome and no exception."""

from noetl.messages.reference import Reference
from noetl.ports.result_store import BodyWriter
from noetl.tools.refusal import Refusal


def spill(writer: BodyWriter, piece: bytes) -> None:
    """One more piece of the body."""
    try:
        writer.write(piece)
    except OSError as fault:
        raise _unkept(fault) from None


async def finish(writer: BodyWriter) -> Reference:
    """The body is whole."""
    try:
        return await writer.finish()
    except OSError as fault:
        raise _unkept(fault) from None


def _unkept(fault: OSError) -> Refusal:
    says = f"the body could not be kept in the result store: {fault}; is the disk full?"
    return Refusal("internal", says, retryable=True)
