"""Where bodies too large for the log are kept (RES), whatever keeps the objects."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, NoReturn, TypeVar
from weakref import WeakValueDictionary

import msgspec

from noetl.errors import BodyLost, ResultsUnavailable
from noetl.late import late
from noetl.messages.codec import WITH_REFERENCES, decode
from noetl.messages.reference import Reference
from noetl.ports.large import decoded, off_loop
from noetl.ports.object_store import ObjectStore, Spool, StoreAway, StoreRefused

PATIENCE = 60.0
"""Seconds for which a store that is away is tried again, unless the caller says otherwise."""
ATTEMPT = 20.0
"""Seconds for one attempt; a body has a second more for each megabyte."""
SHORTEST = 1.0
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
ID = r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,199}"
EXECUTION_ID = late(ID)
KEY = late(rf"({ID})/([0-9a-f]{{64}})")
SHAPES = {b"[": "list", b"{": "object", b'"': "string", b"t": "boolean", b"f": "boolean"}
"""By the first character of the JSON; what is neither here nor `null` is a number."""

T = TypeVar("T")


class ResultStore:
    """
    Bodies by reference; checked over every object store by tests/contracts/test_result_store.py.

    - A body is the JSON text of a value; `put` and `finish` return after it is durable.
    - Its key is its checksum below its execution: the same body is stored once, and never changes.
    - `fetch` gives the value, `pieces` the JSON text in parts that need little memory. Both raise
      BodyLost, which names the reference, where the body is missing or differs from its checksum:
      `pieces` at the latest after the last, so that its reader takes no effect for sure before.
    - `remove` forgets every body of an execution but those kept.
    - While the store is away it is asked again for `patience` seconds; then, and at once where it
      refuses, ResultsUnavailable says which store it is and for how long it has been away.
    """

    def __init__(self, objects: ObjectStore, *, patience: float = PATIENCE) -> None:
        self.objects = objects
        self.patience = patience
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def name(self) -> str:
        """What references to this store say (RES-1)."""
        return self.objects.name

    async def put(
        self, execution_id: str, body: bytes, *, patience: float | None = None
    ) -> Reference:
        checked_id(execution_id)
        checksum, hint = await off_loop(len(body), described, body)
        return await self.keep(execution_id, checksum, Spool(body), hint, patience)

    def open(self, execution_id: str) -> "BodyWriter":
        """For a body that comes piece by piece."""
        return BodyWriter(self, checked_id(execution_id))

    async def keep(
        self, execution_id: str, checksum: str, body: Spool, hint: str, patience: float | None
    ) -> Reference:
        key = f"{execution_id}/{checksum}"
        # Of several who store the same body at once, the others find it there.
        async with self._turns.setdefault(key, asyncio.Lock()):
            await self._tried(lambda: self.objects.put(key, body), body.size, patience)
        return Reference(self.name, key, body.size, checksum, schema_hint=hint)

    async def fetch(self, reference: Reference, *, patience: float | None = None) -> Any:
        size, pieces = 0, []
        async for piece in self._stored(reference, patience):
            size += len(piece)
            if size > reference.size:  # before the rest of it takes memory
                lost(reference, f"has {size} bytes now, or more")
            pieces.append(piece)
        return await off_loop(size, opened, reference, b"".join(pieces))

    async def pieces(
        self, reference: Reference, *, patience: float | None = None
    ) -> AsyncIterator[bytes]:
        size, checksum = 0, hashlib.sha256()
        async for piece in self._stored(reference, patience):
            size += len(piece)
            if size > reference.size:
                lost(reference, f"has {size} bytes now, or more")
            checksum.update(piece)
            yield piece
        compare(reference, size, checksum.hexdigest())

    async def read(
        self, key: str, start: int = 0, *, patience: float | None = None
    ) -> AsyncIterator[bytes]:
        """What is stored there, unchecked; goes on where it broke off. FileNotFoundError."""
        wait = Wait(self.objects.place, self._seconds(patience))
        while True:
            async with aclosing(self.objects.get(key, start)) as source:  # type: ignore[type-var]
                try:
                    while True:
                        async with asyncio.timeout(wait.longest):
                            piece = await anext(source, None)
                        if piece is None:
                            return
                        start += len(piece)
                        wait.over()
                        yield piece
                except (StoreAway, TimeoutError) as away:
                    await wait.again(away)
                except StoreRefused as refused:
                    raise wait.unavailable(refused) from None

    async def remove(self, execution_id: str, keep: frozenset[str] = frozenset()) -> int:
        async def attempt() -> int:
            keys = await self.objects.keys(f"{checked_id(execution_id)}/")
            return await self.objects.remove([key for key in keys if key not in keep])

        return await self._tried(attempt, 0, None)

    async def keys(self, execution_id: str) -> list[str]:
        """Of every body of an execution."""
        prefix = f"{checked_id(execution_id)}/"
        return await self._tried(lambda: self.objects.keys(prefix), 0, None)

    async def close(self) -> None:
        """Let go of connections; nothing is asked of it any more."""
        await self.objects.close()

    def _stored(self, reference: Reference, patience: float | None) -> AsyncIterator[bytes]:
        if reference.store != self.name or KEY.fullmatch(reference.key) is None:
            lost(reference, "is not one of this store")
        return self._found(reference, patience)

    async def _found(self, reference: Reference, patience: float | None) -> AsyncIterator[bytes]:
        try:
            async for piece in self.read(reference.key, patience=patience):
                yield piece
        except FileNotFoundError:
            lost(reference, f"cannot be read: it is not in {self.objects.place}")

    async def _tried(
        self, attempt: Callable[[], Awaitable[T]], size: int, patience: float | None
    ) -> T:
        wait = Wait(self.objects.place, self._seconds(patience))
        while True:
            try:
                async with asyncio.timeout(wait.longest + size / 1_000_000):
                    return await attempt()
            except (StoreAway, TimeoutError) as away:
                await wait.again(away)
            except StoreRefused as refused:
                raise wait.unavailable(refused) from None

    def _seconds(self, patience: float | None) -> float:
        return self.patience if patience is None else patience


class BodyWriter:
    """A body that is written piece by piece; nothing is visible before `finish`."""

    def __init__(self, store: ResultStore, execution_id: str) -> None:
        self._store = store
        self._execution_id = execution_id
        self._spool = Spool()
        self._hash = hashlib.sha256()
        self._shape = "null"

    def write(self, piece: bytes) -> None:
        if piece and not self._spool.size:
            self._shape = shape_of(piece)
        try:
            self._spool.write(piece)
        except OSError as refused:
            self._spool.file.close()
            raise ResultsUnavailable(
                f"a result cannot be set aside: {refused.strerror or refused}; free space in the "
                "folder for temporary files, and try again",
                refused=True,
            ) from refused
        self._hash.update(piece)

    async def finish(
        self, schema_hint: str | None = None, *, patience: float | None = None
    ) -> Reference:
        checksum, hint = self._hash.hexdigest(), schema_hint or self._shape
        try:
            return await self._store.keep(self._execution_id, checksum, self._spool, hint, patience)
        finally:
            self._spool.file.close()

    async def discard(self) -> None:
        self._spool.file.close()


class Wait:
    """How long a store has been away, and how long it is still waited for."""

    def __init__(self, place: str, patience: float) -> None:
        self._place = place
        self._patience = patience
        self.over()

    def over(self) -> None:
        """It answers."""
        self._since = _now()
        self._pause = FIRST_PAUSE

    @property
    def longest(self) -> float:
        """Seconds for the next attempt."""
        left = self._since + self._patience - _now()
        return max(SHORTEST, min(ATTEMPT, left))

    async def again(self, away: Exception) -> None:
        """Pause before the next attempt, if there is to be one."""
        if _now() + self._pause > self._since + self._patience:
            raise self.unavailable(away) from None
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def unavailable(self, why: Exception) -> ResultsUnavailable:
        refused = isinstance(why, StoreRefused)
        said = str(why) or "it does not answer"
        if not refused:
            said += f" (away for {_now() - self._since:.0f} s)"
        return ResultsUnavailable(
            f"a result cannot be stored in or read from {self._place}: {said}; check the store "
            "and its settings, and try again",
            refused=refused,
        )


def _now() -> float:
    return asyncio.get_running_loop().time()


# ── what is said about a body ────────────────────────────────────────────────────────────────


def checked_id(execution_id: str) -> str:
    """The id, if it can be part of a path that stays where it belongs."""
    if EXECUTION_ID.fullmatch(execution_id) is None:
        raise ValueError(
            f"{execution_id!r} is not an execution id: expected letters, digits, '_', '.', '-'"
        )
    return execution_id


def described(body: bytes) -> tuple[str, str]:
    """Checksum and shape, for people and for lists: `list[1000]`, `object`, `string`."""
    shape = shape_of(body)
    if shape == "list":
        shape = f"list[{len(msgspec.json.decode(body, type=list[msgspec.Raw]))}]"
    return hashlib.sha256(body).hexdigest(), shape


def shape_of(first: bytes) -> str:
    """The shape as far as the first piece of a body tells."""
    start = first[:64].lstrip()[:1]
    return "null" if start == b"n" else SHAPES.get(start, "number")


def lost(reference: Reference, why: str) -> NoReturn:
    """The body cannot be had (RES-4)."""
    raise BodyLost(
        f"the body {reference.store}:{reference.key} ({reference.size} bytes) {why}; "
        "restore it from a copy, or run the step again"
    )


def compare(reference: Reference, size: int, checksum: str) -> None:
    """Is this the body that was stored (RES-2)?"""
    if size != reference.size:
        lost(reference, f"has {size} bytes now")
    if checksum != reference.checksum:
        lost(reference, "does not match its checksum")


def opened(reference: Reference, body: bytes) -> Any:
    compare(reference, len(body), hashlib.sha256(body).hexdigest())
    try:
        marked = (reference.schema_hint or "").endswith(WITH_REFERENCES)
        return decode(body) if marked else decoded(body)
    except msgspec.DecodeError as broken:
        lost(reference, f"is not JSON: {broken}")
    except RecursionError:
        lost(reference, "is nested too deeply to be read")
