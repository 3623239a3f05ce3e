"""Runs operations on objects for tasks of kind `s3` and `gcs`."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any

from noetl.kinds.storage import ObjectInputs
from noetl.messages.outcome import Outcome, failed, ok
from noetl.ports.result_store import ResultStore
from noetl.tools.frame import FramedTool, unforeseen
from noetl.tools.paths import whole_file
from noetl.tools.refusal import Refusal
from noetl.tools.retries import repeated
from noetl.tools.sql.rows import Rows
from noetl.tools.storage.bodies import Bucket, StoredObject, payload_of, value_of
from noetl.tools.tool import ToolCall, Workplace
from noetl.tools.urls import checked_url

Opening = Callable[[ToolCall[Any], Mapping[str, Any] | None], Bucket]
"""The bucket of a call, with the fields of its credential if it names one."""
Failure = Callable[[Exception, str], Outcome | None]
"""What an exception of the kind's library means; None where it is not the library's."""
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
"""What the stores have ever allowed; each says itself where it is stricter today."""
LONGEST = 2 * 1024**3
"""Bytes of an object whose length is not told, or told wrong."""
_LISTED = ("key", "size", "etag", "last_modified")


class ObjectTool(FramedTool):
    """One kind of store; what differs between them is how a bucket is opened and how it fails."""

    keeps_time = True

    def __init__(
        self,
        opening: Opening,
        failure_of: Failure,
        closing: Callable[[], None],
        *,
        repeats: bool = True,
    ) -> None:
        self._opening = opening
        self._failure_of = failure_of
        self._closing = closing
        self._repeats = repeats
        """Whether `client_retries` are this tool's to do, or the library's (TASK-11)."""

    async def close(self) -> None:
        self._closing()

    async def _run(self, call: ToolCall[ObjectInputs], workplace: Workplace) -> Outcome:
        inputs = call.inputs
        tries = call.client_retries if self._repeats else 0
        async with asyncio.timeout(call.timeout.total):
            credential = await workplace.unlock(inputs.auth) if inputs.auth else None
            checked(inputs, credential or {})
            asking = partial(self._ask, call, credential, workplace.results)
            return await repeated(asking, tries)

    def _failure(self, call: ToolCall[ObjectInputs], fault: Exception) -> Outcome | None:
        if not isinstance(fault, TimeoutError):
            return None
        late = f"was not complete in time (total timeout of {call.timeout.total:g} s)"
        return failed("timeout", f"{named(call.inputs)} {late}", retryable=True)

    def _block(self, call: ToolCall[ObjectInputs]) -> dict[str, Any]:
        return block_of(call)

    async def _ask(
        self,
        call: ToolCall[ObjectInputs],
        credential: Mapping[str, Any] | None,
        results: ResultStore,
    ) -> Outcome:
        try:
            bucket = self._opening(call, credential)
            return await done(bucket, call, results)
        except Refusal as refusal:
            return refusal.outcome
        except Exception as fault:
            return self._failure_of(fault, named(call.inputs)) or unforeseen(fault)


def named(inputs: ObjectInputs) -> str:
    """The operation as a message tells it."""
    return f"{inputs.operation} {inputs.bucket}/{inputs.key or inputs.prefix or ''}"


def checked(inputs: ObjectInputs, credential: Mapping[str, Any]) -> None:
    """What the operation cannot do without, and what no library takes without falling over it."""
    if not _BUCKET.fullmatch(inputs.bucket):
        says = f"bucket is {inputs.bucket!r}; expected letters, digits, '.', '_' and '-'"
        raise Refusal("input", says)
    endpoint = inputs.endpoint or credential.get("endpoint")
    if endpoint:
        checked_url(str(endpoint), "endpoint", ("http", "https"))
    if inputs.operation != "list" and not inputs.key:
        raise Refusal("input", f"'{inputs.operation}' needs 'key', the name of an object")
    if inputs.operation == "copy" and not inputs.source:
        raise Refusal("input", "'copy' needs 'source', the key of the object to copy")


def block_of(call: ToolCall[ObjectInputs], found: StoredObject | None = None) -> dict[str, Any]:
    """OUT-2: always with all four fields."""
    return {
        "bucket": call.inputs.bucket,
        "key": call.inputs.key,
        "etag": found and found.etag,
        "size": found and found.size,
    }


async def _get(bucket: Bucket, call: ToolCall[ObjectInputs], results: ResultStore) -> Outcome:
    inputs = call.inputs
    target = None if inputs.path is None else call.path(inputs.path)
    found, pieces = await bucket.read(inputs.key or "")
    pieces = ending(pieces, max(found.size or 0, LONGEST))
    if target is not None:
        with whole_file(target) as file:
            async for piece in pieces:
                file.write(piece)
        return ok({**found.fields(), "path": inputs.path}, block=block_of(call, found))
    body = await value_of(found, pieces, call, results)
    told = {**found.fields(), "encoding": body.encoding, "data": body.value}
    return ok(told, block=block_of(call, found))


async def ending(pieces: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    """A server that says how long an object is may send more, without end."""
    length = 0
    async for piece in pieces:
        length += len(piece)
        if length > most:
            raise Refusal("limit", f"the object is longer than the {most} bytes that may come")
        yield piece


async def _list(bucket: Bucket, call: ToolCall[ObjectInputs], results: ResultStore) -> Outcome:
    rows = Rows(call, results)
    rows.begin(_LISTED)
    try:
        async for found in bucket.listed(call.inputs.prefix):
            fields = found.fields()
            rows.add([fields[name] for name in _LISTED])
        return ok(await rows.finish(), block=block_of(call))
    finally:
        await rows.discard()


async def done(bucket: Bucket, call: ToolCall[ObjectInputs], results: ResultStore) -> Outcome:
    """What the operation of the call comes to."""
    inputs, key = call.inputs, call.inputs.key or ""
    match inputs.operation:
        case "get":
            return await _get(bucket, call, results)
        case "list":
            return await _list(bucket, call, results)
        case "delete":
            # What is not there is no error: a repeat after a crash finds nothing (TASK-9).
            await bucket.remove(key)
            return ok({"key": inputs.key}, block=block_of(call))
        case "put":
            found = await bucket.write(key, *await payload_of(call, results))
        case "head":
            found = await bucket.head(key)
        case "copy":
            found = await bucket.copy(inputs.source or "", key)
    return ok(found.fields(), block=block_of(call, found))
