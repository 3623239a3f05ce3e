"""What a worker asks about outcomes that are kept, and what it keeps to itself (CACHE-1)."""

from typing import TYPE_CHECKING

from noetl.masking import KNOWN
from noetl.messages.codec import encode
from noetl.messages.outcome import CacheHit, Outcome
from noetl.messages.references import references_in
from noetl.pipeline.asks import FindKept
from noetl.playbook.caching import kept_as

if TYPE_CHECKING:
    from noetl.worker.part import PartWork


async def find_kept(part: "PartWork", ask: FindKept) -> CacheHit | bool:
    """A hit, or whether the outcome that comes may be kept."""
    if KNOWN and KNOWN.holds(ask.key):
        return False  # a key that holds a secret does not leave this process
    if ask.again:
        return True
    await part.barrier()  # what an iteration before gave is found
    return await part.worker.session.kept(part.command, ask.task, kept_as(ask.key)) or True


def holds_secret(outcome: Outcome) -> bool:
    """Whether an outcome must not be kept: something in it is sealed, or will be (KEY-3)."""
    if any(one.sealed is not None for one in references_in(outcome.result)):
        return True
    return bool(KNOWN) and KNOWN.found_in(encode([outcome.result, outcome.block]))
