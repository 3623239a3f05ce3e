"""Where bodies too large for the log are kept (RES)."""

from collections.abc import Iterator
from typing import Any, Protocol

from noetl.messages.reference import Reference


class BodyWriter(Protocol):
    """A body that is being written piece by piece; nothing is visible before `finish`."""

    def write(self, piece: bytes) -> None: ...

    async def finish(self, schema_hint: str | None = None) -> Reference: ...

    async def discard(self) -> None: ...


class ResultStore(Protocol):
    """
    Contract, checked for every adapter by tests/contracts/test_result_store.py:
    - a body is the JSON text of a value; `put` and `finish` return after it is durable;
    - the same body of one execution may share one key; a body never changes;
    - `fetch` compares the checksum, and raises BodyLost with the reference in its message when
      the body is missing or differs;
    - `put_now` and `fetch_now` are the same without awaiting;
    - `pieces` gives the JSON text in parts that need little memory, and raises BodyLost at the
      latest after the last: who reads it takes no effect for sure before the end;
    - `remove` forgets every body of an execution but those kept.
    """

    @property
    def name(self) -> str:
        """What references to this store say (RES-1)."""

    async def put(self, execution_id: str, body: bytes) -> Reference: ...

    def put_now(self, execution_id: str, body: bytes) -> Reference: ...

    def open(self, execution_id: str) -> BodyWriter: ...

    async def fetch(self, reference: Reference) -> Any: ...

    def fetch_now(self, reference: Reference) -> Any: ...

    def pieces(self, reference: Reference) -> Iterator[bytes]: ...

    def close(self) -> None:
        """Let go of connections; nothing is asked of it any more."""

    async def remove(self, execution_id: str, keep: frozenset[str] = frozenset()) -> int: ...
