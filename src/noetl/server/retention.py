"""What is kept and for how long: old executions go, and bodies that nothing refers to (RES-4)."""

from collections.abc import Awaitable, Callable

from noetl.messages.codec import recorded_events
from noetl.messages.references import chunks_of, in_chunks, references_in
from noetl.ports.event_log import EventLog
from noetl.ports.result_store import ResultStore
from noetl.server.replay import rows_of, with_state

Prune = Callable[[int], Awaitable[list[str]]]


async def forget_old(prune: Prune, results: ResultStore, before: int) -> list[str]:
    """Remove executions that ended before a time (ms), and every body of theirs."""
    gone = await prune(before)
    for execution_id in gone:
        await results.remove(execution_id)
    return gone


async def sweep(log: EventLog, results: ResultStore, execution_id: str) -> int:
    """
    Remove the bodies of an ended execution that its log does not refer to: a crash between
    storing a body and committing the decision about it leaves one behind.
    """
    kept: set[str] = set()
    async for row in rows_of(log, execution_id):
        if b'"$ref"' not in row.events:
            continue
        events = recorded_events(execution_id, row.first, row.events)
        states = [await with_state(event, results.fetch) for event in events]
        for reference in references_in([events, states]):
            kept.add(reference.key)
            if in_chunks(reference):
                kept |= {chunk.key for chunk in chunks_of(await results.fetch(reference))}
    return await results.remove(execution_id, keep=frozenset(kept))
