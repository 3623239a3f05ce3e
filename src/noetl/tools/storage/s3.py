"""The kind `s3`: Amazon's S3 and what speaks its protocol."""

import re
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from noetl.kinds.storage import S3Inputs
from noetl.messages.outcome import Outcome, failed
from noetl.tools.http.failures import is_retryable
from noetl.tools.paths import held
from noetl.tools.refusal import Refusal, first_line, needs_extra
from noetl.tools.storage.bodies import Payload, StoredObject
from noetl.tools.storage.tool import ObjectTool
from noetl.tools.tool import ToolCall

CONNECT_TIMEOUT, READ_TIMEOUT = 30.0, 300.0
_PIECE = 1024 * 1024
_PART = 8 * 1024 * 1024
"""S3 allows 10,000 parts of an upload: 80 GB in one object."""
_AT_ONCE = 2
_TOLD = (
    re.compile(r"non-2xx status code: (\d{3})"),
    re.compile(r"<Code>([^<]+)</Code>"),
    re.compile(r"<Message>([^<]+)</Message>"),
)
_REGION = re.compile(r"[A-Za-z0-9-]+")
_KINDS = {401: "auth", 403: "auth", 404: "not_found"}


def s3_tool() -> ObjectTool:
    """Stores are kept per credential and place, with their pool of connections."""
    stores: dict[str, Any] = {}

    def opening(call: ToolCall[S3Inputs], credential: Mapping[str, Any] | None) -> S3Bucket:
        settings = settings_of(call, credential)
        place = repr(settings)
        if place not in stores:
            stores[place] = store_of(**settings)
        return S3Bucket(stores[place])

    return ObjectTool(opening, failure_of, stores.clear, repeats=False)


class S3Bucket:
    """See `Bucket`."""

    def __init__(self, store: Any) -> None:
        import obstore

        self._store, self._api = store, obstore

    async def head(self, key: str) -> StoredObject:
        return found_of(await self._api.head_async(self._store, key))

    async def read(self, key: str) -> tuple[StoredObject, AsyncIterator[bytes]]:
        answer = await self._api.get_async(self._store, key)
        found = found_of(answer.meta, answer.attributes.get("Content-Type"))
        return found, _pieces(answer.stream(min_chunk_size=_PIECE))

    async def write(self, key: str, payload: Payload, content_type: str) -> StoredObject:
        if not isinstance(payload, Path):
            return await self._write(key, payload, content_type)
        with held(payload, "file") as name:
            return await self._write(key, Path(name), content_type)

    async def _write(self, key: str, payload: Payload, content_type: str) -> StoredObject:
        counted = payload if isinstance(payload, bytes | Path) else CountedBytes(payload)
        try:
            put = await self._api.put_async(
                self._store,
                key,
                counted,
                attributes={"Content-Type": content_type},
                chunk_size=_PART,
                max_concurrency=_AT_ONCE,
                use_multipart=False if isinstance(payload, bytes) else None,
            )
        except Exception:
            if isinstance(counted, CountedBytes) and counted.fault is not None:
                raise counted.fault from None  # the library tells it as its own
            raise
        size = counted.stat().st_size if isinstance(counted, Path) else len(counted)
        return StoredObject(key=key, size=size, etag=_bare(put["e_tag"]), content_type=content_type)

    async def listed(self, prefix: str | None) -> AsyncIterator[StoredObject]:
        """The library lists folders; S3 knows none, and a prefix may end in a name's middle."""
        folder = (prefix or "").rpartition("/")[0]
        async for page in self._api.list(self._store, prefix=folder or None):
            for one in page:
                if one["path"].startswith(prefix or ""):
                    yield found_of(one)

    async def copy(self, source: str, key: str) -> StoredObject:
        await self._api.copy_async(self._store, source, key)
        return await self.head(key)

    async def remove(self, key: str) -> None:
        try:
            await self._api.delete_async(self._store, key)
        except FileNotFoundError as fault:
            if "NoSuchBucket" in str(fault):
                raise


class CountedBytes:
    """A stream that knows how many bytes went through it."""

    def __init__(self, pieces: Any) -> None:
        self._pieces = pieces
        self._length = 0
        self.fault: Refusal | None = None

    def __aiter__(self) -> "CountedBytes":
        return self

    async def __anext__(self) -> bytes:
        try:
            piece: bytes = await anext(self._pieces)
        except Refusal as refusal:
            self.fault = refusal
            raise
        self._length += len(piece)
        return piece

    def __len__(self) -> int:
        return self._length


async def _pieces(stream: Any) -> AsyncIterator[bytes]:
    async for piece in stream:
        yield bytes(piece)


def found_of(meta: Mapping[str, Any], content_type: str | None = None) -> StoredObject:
    return StoredObject(
        key=meta["path"],
        size=meta["size"],
        etag=_bare(meta["e_tag"]),
        last_modified=meta["last_modified"],
        content_type=content_type,
    )


def _bare(etag: str | None) -> str | None:
    """Without the quotes that HTTP puts around it."""
    return etag and etag.strip('"')


def settings_of(call: ToolCall[S3Inputs], credential: Mapping[str, Any] | None) -> dict[str, Any]:
    """Where the bucket is and who asks; what the task says goes before the credential."""
    inputs, told = call.inputs, credential or {}
    region = str(inputs.region or told.get("region") or "us-east-1")
    if not _REGION.fullmatch(region):
        raise Refusal("input", f"region is {region!r}; expected a name such as 'eu-west-1'")
    settings: dict[str, Any] = {
        "bucket": inputs.bucket,
        "region": region,
        "virtual_hosted_style_request": not inputs.path_style,
        "client_options": {
            "allow_http": True,
            "connect_timeout": timedelta(seconds=call.timeout.connect or CONNECT_TIMEOUT),
            "read_timeout": timedelta(seconds=call.timeout.read or READ_TIMEOUT),
            "timeout": timedelta(days=1),
        },
        "retry_config": {"max_retries": call.client_retries},
    }
    endpoint = inputs.endpoint or told.get("endpoint")
    if endpoint:
        settings["endpoint"] = endpoint
    if credential is None:
        return settings
    key, secret = told.get("access_key_id"), told.get("secret_access_key")
    if not key or not secret:
        says = f"credential '{inputs.auth}' cannot be used for s3; expected the fields"
        raise Refusal("auth", f"{says} access_key_id and secret_access_key")
    identity = {"access_key_id": key, "secret_access_key": secret}
    identity |= {"token": told.get("session_token"), "expires_at": None}
    return {**settings, "identity": identity}


def store_of(*, identity: Any = None, **settings: Any) -> Any:
    """Without a credential requests are not signed: the worker's own identity is never lent."""
    try:
        from obstore.store import S3Store
    except ImportError:
        raise needs_extra("'s3'", "s3") from None
    if identity is None:
        return S3Store(**settings, skip_signature=True)
    return S3Store(**settings, credential_provider=lambda: identity)


def failure_of(fault: Exception, name: str) -> Outcome | None:
    """The library speaks through texts: the status, and S3's own code and message in the XML."""
    if isinstance(fault, ValueError):
        return failed("input", f"{name} cannot be asked for: {first_line(fault)}")
    text = str(fault)
    status, code, says = (found and found[1] for found in (told.search(text) for told in _TOLD))
    if status is not None:
        number = int(status)
        words = f": {code}" if code else ""
        words += f": {says}" if says else ""
        kind = _KINDS.get(number, "object")
        return failed(kind, f"{name} got status {number}{words}", retryable=is_retryable(number))
    if isinstance(fault, FileNotFoundError):
        return failed("not_found", f"{name}: {first_line(fault)}")
    if not type(fault).__module__.startswith("obstore"):
        return None
    if "kind: Timeout" in text:
        return failed("timeout", f"{name} was left waiting: {first_line(fault)}", retryable=True)
    if "InvalidCertificate" in text:
        return failed("connection", f"{name} was shown a bad certificate: {first_line(fault)}")
    if "HTTP error" in text:
        says = f"{name} could not connect: {first_line(fault)}"
        return failed("connection", says, retryable=True)
    return failed("object", f"{name} failed: {first_line(fault)}")
