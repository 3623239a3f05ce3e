"""The rows of a result as they arrive: a list, or, when they grow large, a body in the store."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from noetl.messages.reference import Reference
from noetl.ports.result_store import ResultStore
from noetl.tools.refusal import Refusal
from noetl.tools.spill import StoredBody
from noetl.tools.tool import ToolCall

LARGEST_ROW = 64 * 1024 * 1024
"""Bytes of one row as JSON: it is written in one piece, while the worker does nothing else."""
TURN = 1024 * 1024
"""Bytes after which everybody else has a turn."""


class Rows:
    """Gathers rows as mappings; beyond `call.max_inline` bytes memory stays flat (EVT-4)."""

    def __init__(self, call: ToolCall[Any], results: ResultStore) -> None:
        self.count = 0
        self.owed = 0
        """Bytes since others had a turn; who adds many rows without a wait calls `turn`."""
        self._names: Sequence[str] = ()
        self._rows: list[dict[str, Any]] = []
        self._size = 0
        self._call = call
        self._results = results
        self._stored: StoredBody | None = None

    def begin(self, names: Sequence[str]) -> None:
        self._names = names

    def add(self, row: Sequence[Any]) -> None:
        named = dict(zip(self._names, row, strict=True))
        try:
            encoded = msgspec.json.encode(named)
        except (ValueError, TypeError) as fault:
            says = f"row {self.count + 1} cannot be kept as JSON: {fault}"
            raise Refusal("result", says) from None
        self.count += 1
        if len(encoded) > LARGEST_ROW:
            says = f"row {self.count} has more than {LARGEST_ROW:,} bytes"
            raise Refusal("limit", f"{says}: select less of it, or write it to a file with COPY")
        self.owed += len(encoded)
        if self._stored is not None:
            self._stored.write(b"," + encoded)
            return
        self._rows.append(named)
        self._size += len(encoded) + 1
        if self._size > self._call.max_inline:
            self._stored = StoredBody(self._results, self._call.execution_id)
            self._stored.write(msgspec.json.encode(self._rows)[:-1])
            self._rows = []

    async def turn(self) -> None:
        """Rows that are all there without a wait would cost the worker its leases (WRK-1)."""
        self.owed = 0
        await asyncio.sleep(0)

    async def finish(self) -> list[dict[str, Any]] | Reference:
        if self._stored is None:
            return self._rows
        return await self._stored.finish(b"]", f"list[{self.count}]")

    async def discard(self) -> None:
        """Forget what was begun; after `finish` there is nothing to forget."""
        if self._stored is not None:
            await self._stored.discard()
