"""Objects in the object store of NATS, in its own layout: any client of it can read them."""

import asyncio
import base64
import hashlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, TypeVar

import msgspec

from noetl.adapters.nats.bucket import ResultBucket, hold_bucket, make_bucket
from noetl.adapters.nats.library import FAULTS, leave_if_cancelled, reason_of, stream_errors
from noetl.adapters.nats.line import NatsLine, Says, silent
from noetl.adapters.nats.names import Names, named, token_of
from noetl.late import late
from noetl.ports.object_store import Spool, StoreAway, StoreRefused

ANSWER = 10.0
"""Seconds for the connection, and for each answer."""
CHUNK = 131_072
HELD = 5.0
"""Seconds between two looks of a server whether its bucket is what it is to be."""
MOST = 32
"""Messages about one object that are looked at."""

PLAIN = late(r"[A-Za-z0-9]{1,100}")

T = TypeVar("T")


class ObjectMeta(msgspec.Struct):
    """What the bucket keeps about an object, in the fields that other clients expect."""

    name: str
    bucket: str
    nuid: str
    """The end of the subject of its chunks."""
    size: int
    chunks: int
    digest: str
    options: dict[str, int] = msgspec.field(default_factory=lambda: {"max_chunk_size": CHUNK})
    deleted: bool = False

    def may_be(self, key: str) -> bool:
        """Whether it names chunks of this object alone."""
        own = self.nuid.removeprefix(_chunks_of(key))
        return self.name == key and not self.deleted and PLAIN.fullmatch(own) is not None


class NatsObjectStore:
    """
    See `ObjectStore`. The connection is made when it is first needed.

    Nothing that is written replaces what was: of several messages about one object, as anybody who
    may write here can add them, the first whose chunks are the object is the one that is good.

    Chunks lie at `C.<execution>.<checksum>.<random>`, so that the server itself finds those of an
    execution. Earlier releases had them at `C.<random>`; such objects are read, and found by a look
    at the whole bucket while there are any.
    """

    name = "nats"

    def __init__(self, url: str, *, root: str = "noetl", says: Says = silent) -> None:
        self._bucket = ResultBucket(f"{token_of(root).replace('=', '_')}-results")
        inbox = Names(root).inbox("results")
        self._line = NatsLine(url, name=f"{root} results", inbox=inbox, says=says)
        self._opening: asyncio.Task[None] | None = None
        self.place = f"NATS at {self._line.place}, bucket {self._bucket.name}"

    async def put(self, key: str, body: Spool) -> None:
        async def keep(stream: Any) -> None:
            try:
                if (await self._about(stream, key)).size == body.size:
                    return
            except stream_errors.NotFoundError:
                await make_bucket(stream, self._bucket)
            await self._write(stream, key, body)

        await self._asked(keep)

    async def get(self, key: str, start: int = 0) -> AsyncIterator[bytes]:
        about = await self._asked(lambda stream: self._about(stream, key))
        async for piece in self._pieces(about, start):
            yield piece

    async def _pieces(self, about: ObjectMeta, start: int = 0) -> AsyncIterator[bytes]:
        chunks, at, seq = self._bucket.chunks(about.nuid), 0, 1
        while at < about.size:
            asked = {"seq": seq, "subject": chunks, "next": True}
            try:
                found = await self._asked(partial(self._message, **asked))
            except FileNotFoundError:
                return  # cut short
            piece, at = found.data[max(0, start - at) :], at + len(found.data)
            seq = found.seq + 1
            if piece:
                yield piece

    async def keys(self, prefix: str) -> list[str]:
        execution = prefix.rstrip("/")

        async def listed(stream: Any) -> list[str]:
            here = await self._subjects(stream, f"{token_of(execution)}.*.*")
            found = {prefix + named(subject.split(".")[-2]) for subject in here}
            if await self._subjects(stream, "*"):
                store = await stream.object_store(self._bucket.name)
                with suppress(stream_errors.NotFoundError):
                    old = await store.list(ignore_deletes=True)
                    found |= {each.name for each in old if each.name.startswith(prefix)}
            return sorted(found)

        try:
            return await self._asked(listed)
        except FileNotFoundError:  # no bucket, nothing in it
            return []

    async def remove(self, keys: Sequence[str]) -> int:
        gone = 0
        for key in keys:
            with suppress(FileNotFoundError):
                gone += await self._asked(lambda stream, key=key: self._forget(stream, key))  # type: ignore[misc]
        return gone

    async def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        await self._line.close()

    def _meta(self, key: str) -> str:
        return self._bucket.meta(base64.urlsafe_b64encode(key.encode()).decode())

    async def _about(self, stream: Any, key: str) -> ObjectMeta:
        subject = self._meta(key)
        first, last = await asyncio.gather(
            self._message(stream, seq=1, subject=subject, next=True),
            self._message(stream, subject=subject),
        )
        told = [first]
        while told[-1].seq < last.seq and len(told) < MOST:
            more = {"seq": told[-1].seq + 1, "subject": subject, "next": True}
            told.append(await self._message(stream, **more))
        found = [one for message in told if (one := _read(message.data)) and one.may_be(key)]
        if not found:
            raise stream_errors.ObjectNotFoundError
        if len(found) > 1:
            for one in found:
                if await self._is_object(one, key):
                    return one
        return found[0]

    async def _is_object(self, about: ObjectMeta, key: str) -> bool:
        size, checksum = 0, hashlib.sha256()
        async with aclosing(self._pieces(about)) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                size += len(piece)
                checksum.update(piece)
        return size == about.size and checksum.hexdigest() == key.partition("/")[2]

    async def _message(self, stream: Any, **asked: Any) -> Any:
        # Not a direct one: a replica may not have it yet.
        return await stream.get_msg(self._bucket.stream, **asked)

    async def _subjects(self, stream: Any, end: str) -> list[str]:
        chunks = self._bucket.chunks(end)
        found = await stream.stream_info(self._bucket.stream, subjects_filter=chunks)
        return list(found.state.subjects or ())

    async def _forget(self, stream: Any, key: str) -> bool:
        """With the chunks of writes that were cut off."""
        try:
            ends = {_chunks_of(key) + "*", (await self._about(stream, key)).nuid}
        except stream_errors.NotFoundError:
            ends = {_chunks_of(key) + "*"}
        for subject in (self._meta(key), *map(self._bucket.chunks, ends)):
            await stream.purge_stream(self._bucket.stream, subject=subject)
        return len(ends) > 1

    async def _write(self, stream: Any, key: str, body: Spool) -> None:
        """The chunks first; the object is there when the message about it is."""
        nuid, count, checksum = _chunks_of(key) + secrets.token_hex(8), 0, hashlib.sha256()
        async for piece in body.pieces(CHUNK):
            checksum.update(piece)
            await stream.publish(self._bucket.chunks(nuid), piece)
            count += 1
        digest = f"SHA-256={base64.urlsafe_b64encode(checksum.digest()).decode()}"
        about = ObjectMeta(key, self._bucket.name, nuid, body.size, count, digest)
        await stream.publish(self._meta(key), msgspec.json.encode(about))

    async def hold(self, says: Says) -> None:
        """See `HeldStore`."""
        while True:
            try:
                if await self._asked(lambda stream: hold_bucket(stream, self._bucket)):
                    says(f"{self.place}: it was set up otherwise, and is as it was meant")
            except (StoreAway, StoreRefused) as fault:
                self._line.complain(fault)
            leave_if_cancelled()
            await asyncio.sleep(HELD)

    async def _asked(self, act: Callable[[Any], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(ANSWER):
                await self._connected()
            return await act(self._line.client.jetstream(timeout=ANSWER))
        except stream_errors.NotFoundError as missing:
            raise FileNotFoundError(str(missing)) from None
        except FAULTS as fault:
            raise kind_of(fault)(reason_of(fault)) from None

    async def _connected(self) -> None:
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._line.open())
        await self._line.up.wait()


def _chunks_of(key: str) -> str:
    execution, _, checksum = key.partition("/")
    return f"{token_of(execution)}.{token_of(checksum)}."


def _read(told: bytes) -> ObjectMeta | None:
    """None for what is no message about an object: others may have written it."""
    try:
        return msgspec.json.decode(told, type=ObjectMeta)
    except msgspec.DecodeError:
        return None


def kind_of(fault: BaseException) -> type[Exception]:
    """An answer of JetStream is a refusal, unless it says that it cannot now."""
    busy = stream_errors.ServerError | stream_errors.ServiceUnavailableError
    refuses = isinstance(fault, stream_errors.APIError) and not isinstance(fault, busy)
    return StoreRefused if refuses else StoreAway
