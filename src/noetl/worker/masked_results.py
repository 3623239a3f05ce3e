"""The result store as tools see it: what they stream there themselves is masked on the way."""

from collections.abc import Iterator
from typing import Any

from noetl.masking import KNOWN
from noetl.messages.reference import Reference
from noetl.ports.result_store import BodyWriter, ResultStore


class MaskedResults:
    """ResultStore; see its contract. A body that never was a value in memory cannot be sealed."""

    def __init__(self, results: ResultStore) -> None:
        self._results = results
        self.name = results.name
        self.fetch = results.fetch
        self.fetch_now = results.fetch_now
        self.remove = results.remove

    async def put(self, execution_id: str, body: bytes) -> Reference:
        return await self._results.put(execution_id, KNOWN.masked_json(body))

    def put_now(self, execution_id: str, body: bytes) -> Reference:
        return self._results.put_now(execution_id, KNOWN.masked_json(body))

    def open(self, execution_id: str) -> BodyWriter:
        return MaskedWriter(self._results.open(execution_id))

    def pieces(self, reference: Reference) -> Iterator[bytes]:
        return self._results.pieces(reference)


class MaskedWriter:
    """BodyWriter; holds back as much as a secret that has begun could still need."""

    def __init__(self, writer: BodyWriter) -> None:
        self._writer = writer
        self._held = b""

    def write(self, piece: bytes) -> None:
        seen = KNOWN.masked_json(self._held + piece)
        ready = max(0, len(seen) - KNOWN.longest + 1)
        self._held = seen[ready:]
        if ready:
            self._writer.write(seen[:ready])

    async def finish(self, schema_hint: str | None = None) -> Reference:
        held, self._held = self._held, b""
        if held:
            self._writer.write(held)
        return await self._writer.finish(schema_hint)

    async def discard(self) -> None:
        await self._writer.discard()


def masked_results(results: ResultStore) -> Any:
    """The store itself while no secret is known."""
    return MaskedResults(results) if KNOWN else results
