"""A workplace for tools under test: bodies in memory, lines in a list, credentials in a table."""

import hashlib
from typing import Any

import msgspec

from noetl.errors import BodyLost, CredentialMissing
from noetl.messages.reference import Reference
from noetl.ports.result_store import BodyWriter
from noetl.tools.tool import Call


class KeptBodies:
    """A result store in memory; `unfinished` counts bodies begun and neither kept nor dropped."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.unfinished = 0
        self.largest_piece = 0

    async def put(self, execution_id: str, body: bytes) -> Reference:
        checksum = hashlib.sha256(body).hexdigest()
        key = f"{execution_id}/{checksum[:12]}"
        self.bodies[key] = body
        return Reference("memory", key, len(body), checksum)

    def open(self, execution_id: str) -> BodyWriter:
        self.unfinished += 1
        return _Writer(self, execution_id)

    async def fetch(self, reference: Reference) -> Any:
        return self.fetch_now(reference)

    def fetch_now(self, reference: Reference) -> Any:
        if reference.key not in self.bodies:
            raise BodyLost(f"{reference} is gone")
        return msgspec.json.decode(self.bodies[reference.key])

    async def remove(self, execution_id: str, keep: frozenset[str] = frozenset()) -> int:
        gone = [k for k in self.bodies if k.startswith(f"{execution_id}/") and k not in keep]
        for key in gone:
            del self.bodies[key]
        return len(gone)


class _Writer:
    def __init__(self, store: KeptBodies, execution_id: str) -> None:
        self._store = store
        self._execution_id = execution_id
        self._pieces: list[bytes] = []

    def write(self, piece: bytes) -> None:
        self._store.largest_piece = max(self._store.largest_piece, len(piece))
        self._pieces.append(piece)

    async def finish(self, schema_hint: str | None = None) -> Reference:
        self._store.unfinished -= 1
        reference = await self._store.put(self._execution_id, b"".join(self._pieces))
        reference.schema_hint = schema_hint
        return reference

    async def discard(self) -> None:
        self._store.unfinished -= 1


class BenchPlace:
    """What a tool may ask of its worker, without a worker."""

    def __init__(self, **credentials: dict[str, Any]) -> None:
        self.results = KeptBodies()
        self.lines: list[tuple[str, str]] = []
        self._credentials = credentials

    def log(self, call: Call[Any], stream: str, text: str) -> None:  # noqa: ARG002
        self.lines.append((stream, text))

    async def unlock(self, name: str) -> dict[str, Any]:
        if name not in self._credentials:
            raise CredentialMissing(f"no credential '{name}'; add it to the keychain")
        return self._credentials[name]


def call_of(inputs: Any, **more: Any) -> Call[Any]:
    """A call with made-up ids; `more` are further fields of Call."""
    named = {"execution_id": "e1", "step": "s", "label": "t", "task_run_id": "r1", "scratch": "s1"}
    return Call(inputs=inputs, **{**named, **more})
