"""The result store as tools see it: what they stream there themselves is masked on the way."""

from noetl.masking import KNOWN
from noetl.messages.reference import Reference
from noetl.ports.large import off_loop
from noetl.ports.result_store import BodyWriter, ResultStore, checked_id


class MaskedResults(ResultStore):
    """A body that never was a value in memory cannot be sealed."""

    def __init__(self, results: ResultStore) -> None:
        super().__init__(results.objects, patience=results.patience)

    async def put(
        self, execution_id: str, body: bytes, *, patience: float | None = None
    ) -> Reference:
        masked = await off_loop(len(body), KNOWN.masked_json, body)
        return await super().put(execution_id, masked, patience=patience)

    def open(self, execution_id: str) -> BodyWriter:
        return MaskedWriter(self, checked_id(execution_id))


class MaskedWriter(BodyWriter):
    """Holds back as much as a secret that has begun could still need."""

    def __init__(self, store: ResultStore, execution_id: str) -> None:
        super().__init__(store, execution_id)
        self._held = b""

    def write(self, piece: bytes) -> None:
        seen = KNOWN.masked_json(self._held + piece)
        ready = max(0, len(seen) - KNOWN.longest + 1)
        self._held = seen[ready:]
        if ready:
            super().write(seen[:ready])

    async def finish(
        self, schema_hint: str | None = None, *, patience: float | None = None
    ) -> Reference:
        held, self._held = self._held, b""
        if held:
            super().write(held)
        return await super().finish(schema_hint, patience=patience)


def masked_results(results: ResultStore) -> ResultStore:
    """The store itself while no secret is known."""
    return MaskedResults(results) if KNOWN else results
