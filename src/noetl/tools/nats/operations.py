"""What the operations of the kind `nats` do, one function each."""

import io
import math
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from nats.js import JetStreamContext
from nats.js import errors as stream_errors
from nats.js.kv import KeyValue
from nats.js.object_store import ObjectStore

from noetl.kinds.messaging import NatsInputs
from noetl.tools.nats.connections import Connection
from noetl.tools.process.capture import Capture, Captured, read
from noetl.tools.refusal import Refusal, bytes_of
from noetl.tools.tool import ToolCall, Workplace

T = TypeVar("T")

ANSWER = 60.0
"""Seconds for an answer, where the task names none."""
ONCE = "Nats-Msg-Id"
"""By this header a stream keeps a message once, however often it comes (TASK-9)."""


class NatsOperation(msgspec.Struct, frozen=True):
    """One operation on its way."""

    call: ToolCall[NatsInputs]
    workplace: Workplace
    connection: Connection

    @property
    def inputs(self) -> NatsInputs:
        return self.call.inputs

    @property
    def seconds(self) -> float:
        """How long one answer may take."""
        return self.call.timeout.read or self.call.timeout.total or ANSWER

    @property
    def stream(self) -> JetStreamContext:
        return self.connection.client.jetstream(timeout=self.seconds)

    @property
    def key(self) -> str:
        return str(self.inputs.key)


async def publish(work: NatsOperation) -> Any:
    """Sent, and seen by the server; with `ack` also kept by a stream."""
    inputs, subject = work.inputs, str(work.inputs.subject)
    payload = payload_of(inputs)
    headers = {ONCE: work.call.idempotency_key, **inputs.headers}
    if inputs.ack:
        kept = await work.stream.publish(subject, payload, headers=headers)
        where = {"stream": kept.stream, "seq": kept.seq, "duplicate": bool(kept.duplicate)}
        return {"subject": subject, "size": len(payload), **where}
    client = work.connection.client
    await client.publish(subject, payload, headers=headers)
    for _ in range(2):
        # The ping of the first may overtake the message, which waits in a buffer; by the time of
        # its answer the buffer is written, so that the second comes behind the message.
        await client.flush(timeout=math.ceil(work.seconds))
    refuse_if_forbidden(work, subject)
    return {"subject": subject, "size": len(payload)}


async def request(work: NatsOperation) -> Any:
    """The first answer."""
    inputs = work.inputs
    answer = await work.connection.client.request(
        str(inputs.subject),
        payload_of(inputs),
        timeout=work.seconds,
        headers=inputs.headers or None,
    )
    body = await read_whole(work, "the answer", answer.data)
    return {"headers": dict(answer.headers or {}), **body}


async def kv_get(work: NatsOperation) -> Any:
    entry = await (await bucket_of(work)).get(work.key)
    body = await read_whole(work, "the value", entry.value or b"")
    return {"key": work.key, "revision": entry.revision, **body}


async def kv_put(work: NatsOperation) -> Any:
    bucket = await bucket_of(work)
    revision = await bucket.put(work.key, payload_of(work.inputs))
    return {"key": work.key, "revision": revision}


async def kv_delete(work: NatsOperation) -> Any:
    """A key that is not there is deleted already."""
    await (await bucket_of(work)).delete(work.key)
    return {"key": work.key}


async def kv_keys(work: NatsOperation) -> Any:
    try:
        return sorted(await (await bucket_of(work)).keys())
    except stream_errors.NoKeysError:
        return []


async def object_get(work: NatsOperation) -> Any:
    """Large objects go to the result store while they come."""
    capture = Capture("the object", work.call, work.workplace.results)
    try:
        got = await (await store_of(work)).get(work.key, writeinto=ObjectBuffer(capture))
        body = told(await capture.finish(parse=True))
    finally:
        await capture.discard()
    return {"key": work.key, "size": got.info.size, "digest": got.info.digest, **body}


async def object_put(work: NatsOperation) -> Any:
    kept = await (await store_of(work)).put(work.key, payload_of(work.inputs))
    return {"key": work.key, "size": kept.size, "digest": kept.digest}


async def object_delete(work: NatsOperation) -> Any:
    await (await store_of(work)).delete(work.key)
    return {"key": work.key}


OPERATIONS: dict[str, tuple[Callable[[NatsOperation], Awaitable[Any]], tuple[str, ...]]] = {
    "publish": (publish, ("subject",)),
    "request": (request, ("subject",)),
    "kv_get": (kv_get, ("bucket", "key")),
    "kv_put": (kv_put, ("bucket", "key")),
    "kv_delete": (kv_delete, ("bucket", "key")),
    "kv_keys": (kv_keys, ("bucket",)),
    "object_get": (object_get, ("bucket", "key")),
    "object_put": (object_put, ("bucket", "key")),
    "object_delete": (object_delete, ("bucket", "key")),
}
"""Operation → what does it, and the inputs that it needs."""
MAKERS = frozenset({"kv_put", "object_put"})


class ObjectBuffer(io.BufferedIOBase):
    """What the library writes an object into."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture

    def write(self, piece: Any, /) -> int:
        self._capture.feed(bytes(piece))
        return len(piece)


async def bucket_of(work: NatsOperation) -> KeyValue:
    return await found_or_made(work, work.stream.key_value, work.stream.create_key_value)


async def store_of(work: NatsOperation) -> ObjectStore:
    return await found_or_made(work, work.stream.object_store, work.stream.create_object_store)


async def found_or_made(
    work: NatsOperation, find: Callable[..., Awaitable[T]], make: Callable[..., Awaitable[T]]
) -> T:
    name = str(work.inputs.bucket)
    try:
        return await find(name)
    except stream_errors.BucketNotFoundError:
        if not (work.inputs.create and work.inputs.operation in MAKERS):
            raise
        return await make(bucket=name)


async def read_whole(work: NatsOperation, name: str, body: bytes) -> dict[str, Any]:
    """A body that came in one piece; the store takes it where it is large."""
    if len(body) <= work.call.max_inline:
        return told(read(body, parse=True))
    capture = Capture(name, work.call, work.workplace.results)
    try:
        capture.feed(body)
        return told(await capture.finish(parse=True))
    finally:
        await capture.discard()


def told(body: Captured) -> dict[str, Any]:
    """`data` is parsed where it is JSON, else text; bytes that are no text are noted."""
    found = {"data": body.value if body.parsed is None else body.parsed}
    return {**found, "encoding": body.encoding} if body.encoding else found


def payload_of(inputs: NatsInputs) -> bytes:
    return b"" if inputs.value is None else bytes_of(inputs.value, "value cannot be sent")


def refuse_if_forbidden(work: NatsOperation, subject: str) -> None:
    """The server tells it apart from the message; it comes before the answer to the flush."""
    for complaint in work.connection.complaints:
        # The library gives it in lower case.
        if "permissions violation" in str(complaint) and f'"{subject.lower()}"' in str(complaint):
            work.connection.complaints.remove(complaint)
            raise Refusal("auth", f"publishing to '{subject}' is not allowed with this credential")
