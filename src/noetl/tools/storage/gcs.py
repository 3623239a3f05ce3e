"""The kind `gcs`: Google Cloud Storage."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from noetl.kinds.storage import GcsInputs
from noetl.messages.clipping import beginning
from noetl.messages.outcome import Outcome, failed
from noetl.tools.http.failures import is_retryable
from noetl.tools.paths import open_file
from noetl.tools.refusal import Refusal, needs_extra
from noetl.tools.storage.bodies import Payload, StoredObject
from noetl.tools.storage.tool import ObjectTool
from noetl.tools.threads import fetched, in_thread
from noetl.tools.tool import ToolCall

CONNECT_TIMEOUT, READ_TIMEOUT = 30.0, 300.0
AT_ONCE = 16
_PIECE = 1024 * 1024
_PART = 8 * 1024 * 1024
_SERVICE_ACCOUNT = ("client_email", "private_key", "token_uri")
_KINDS = {401: "auth", 403: "auth", 404: "not_found"}

Done = TypeVar("Done")


def gcs_tool() -> ObjectTool:
    """Identities are kept with their tokens; connections live as long as a call."""
    identities: dict[tuple[Any, ...], Any] = {}
    free = asyncio.Semaphore(AT_ONCE)

    def opening(call: ToolCall[GcsInputs], credential: Mapping[str, Any] | None) -> GcsBucket:
        place = tuple(sorted((name, str(value)) for name, value in (credential or {}).items()))
        if place not in identities:
            identities[place] = identity_of(credential, call.inputs.auth)
        return GcsBucket(call, credential or {}, identities[place], free)

    return ObjectTool(opening, failure_of, identities.clear)


class GcsBucket:
    """See `Bucket`. The library waits inside, so that each call of it has a thread."""

    def __init__(
        self,
        call: ToolCall[GcsInputs],
        credential: Mapping[str, Any],
        identity: Any,
        free: asyncio.Semaphore,
    ) -> None:
        from google.auth.transport.requests import AuthorizedSession
        from google.cloud.storage import Client

        from noetl.tools.storage.sockets import Sockets

        self._sockets = Sockets()
        session = AuthorizedSession(identity)  # type: ignore[no-untyped-call]
        self._sockets.watch(session)
        session.hooks["response"].append(self._note)
        self._status = 0
        endpoint = call.inputs.endpoint or credential.get("endpoint")
        client = Client(
            project=call.inputs.project or credential.get("project_id") or "none",
            credentials=identity,
            _http=session,
            client_options={"api_endpoint": endpoint} if endpoint else None,
        )
        self._session, self._client, self._free = session, client, free
        self._bucket = client.bucket(call.inputs.bucket, user_project=call.inputs.project)
        limits = (call.timeout.connect or CONNECT_TIMEOUT, call.timeout.read or READ_TIMEOUT)
        self._options: dict[str, Any] = {"timeout": limits, "retry": None}

    async def head(self, key: str) -> StoredObject:
        blob = self._bucket.blob(key)
        await self._threaded(lambda: blob.reload(**self._options))
        return found_of(blob)

    async def read(self, key: str) -> tuple[StoredObject, AsyncIterator[bytes]]:
        found = await self.head(key)
        reader = self._bucket.blob(key).open("rb", chunk_size=_PIECE, **self._options)
        return found, self._pieces(reader)

    async def write(self, key: str, payload: Payload, content_type: str) -> StoredObject:
        blob = self._bucket.blob(key, chunk_size=_PART)

        parts = payload if isinstance(payload, bytes | Path) else fetched(payload, 1)

        def send() -> None:
            with opened(parts) as file:
                size = len(payload) if isinstance(payload, bytes) else None
                blob.upload_from_file(file, size=size, content_type=content_type, **self._options)

        await self._threaded(send)
        return found_of(blob)

    async def listed(self, prefix: str | None) -> AsyncIterator[StoredObject]:
        pages = self._client.list_blobs(self._bucket, prefix=prefix, **self._options).pages
        while (page := await self._threaded(lambda: next(pages, None))) is not None:
            for blob in page:
                yield found_of(blob)

    async def copy(self, source: str, key: str) -> StoredObject:
        blob = self._bucket.blob(source)
        copied = await self._threaded(
            lambda: self._bucket.copy_blob(blob, self._bucket, key, **self._options)
        )
        return found_of(copied)

    async def remove(self, key: str) -> None:
        from google.api_core.exceptions import NotFound

        try:
            await self._threaded(lambda: self._bucket.blob(key).delete(**self._options))
        except NotFound as fault:
            if "bucket does not exist" in str(fault):
                raise

    async def _pieces(self, reader: Any) -> AsyncIterator[bytes]:
        while piece := await self._threaded(lambda: reader.read(_PIECE)):
            yield piece

    async def _threaded(self, work: Callable[[], Done]) -> Done:
        async with self._free:
            try:
                return await in_thread(work, self._sockets.cut)
            except (AttributeError, KeyError, TypeError):
                # An error whose text is not what Google writes is more than the library can read.
                if self._status < 400:
                    raise
        from google.api_core.exceptions import from_http_status

        raise from_http_status(self._status, "the answer says no more")  # type: ignore[no-untyped-call]

    def _note(self, answer: Any, **_: Any) -> None:
        self._status = answer.status_code


class Parts(io.RawIOBase):
    """Parts that come one by one, as a file that can be read once."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._rest, self._read = parts, b"", 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._read

    def readinto(self, target: Any) -> int:
        while not self._rest:
            part = next(self._parts, None)
            if part is None:
                return 0
            self._rest = part
        given = self._rest[: len(target)]
        target[: len(given)] = given
        self._rest, self._read = self._rest[len(given) :], self._read + len(given)
        return len(given)


def opened(payload: bytes | Path | Iterator[bytes]) -> Any:
    if isinstance(payload, bytes):
        return io.BytesIO(payload)
    if isinstance(payload, Path):
        return open_file(payload)
    return io.BufferedReader(Parts(payload), buffer_size=_PIECE)


def found_of(blob: Any) -> StoredObject:
    return StoredObject(
        key=blob.name,
        size=blob.size,
        etag=blob.etag,
        last_modified=blob.updated,
        content_type=blob.content_type,
    )


def identity_of(credential: Mapping[str, Any] | None, name: str | None) -> Any:
    """A service account, a token, or nobody: the worker's own identity is never lent."""
    try:
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import storage  # noqa: F401
        from google.oauth2 import credentials, service_account
    except ImportError:
        raise needs_extra("'gcs'", "gcs") from None
    if credential is None or credential.get("anonymous"):
        return AnonymousCredentials()  # type: ignore[no-untyped-call]
    if credential.get("token"):
        return credentials.Credentials(token=credential["token"])  # type: ignore[no-untyped-call]
    if not all(credential.get(field) for field in _SERVICE_ACCOUNT):
        says = f"credential '{name}' cannot be used for gcs; expected the fields of a service"
        raise Refusal("auth", f"{says} account's key ({', '.join(_SERVICE_ACCOUNT)}), or token")
    scopes = ["https://www.googleapis.com/auth/devstorage.read_write"]
    try:
        read = service_account.Credentials.from_service_account_info
        return read(credential, scopes=scopes)  # type: ignore[no-untyped-call]
    except ValueError as fault:
        raise Refusal(
            "auth", f"credential '{name}' is not a service account's key: {fault}"
        ) from None


def failure_of(fault: Exception, name: str) -> Outcome | None:
    """By the library's exceptions, from special to general."""
    import requests
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import GoogleAuthError, TransportError

    if isinstance(fault, GoogleAPICallError):
        code = int(fault.code or 0)
        kind = _KINDS.get(code, "object")
        says = f"{name} got status {code}: {_first(fault)}"
        return failed(kind, says, retryable=is_retryable(code))
    if isinstance(fault, requests.Timeout):
        return failed("timeout", f"{name} was left waiting: {_reason(fault)}", retryable=True)
    if isinstance(fault, requests.exceptions.SSLError) and "CERTIFICATE" in str(fault):
        says = f"{name} was shown a bad certificate: {_reason(fault)}"
        return failed("connection", says)
    if isinstance(fault, requests.exceptions.JSONDecodeError):
        return failed("decode", f"{name} got an answer that is not JSON: {fault}")
    if isinstance(fault, requests.RequestException | TransportError):
        says = f"{name} could not connect: {_reason(fault)}"
        return failed("connection", says, retryable=True)
    if isinstance(fault, GoogleAuthError):
        return failed("auth", f"{name} was refused a token: {_first(fault)}")
    wrong = isinstance(fault, ValueError)
    return failed("input", f"{name} cannot be sent: {fault}") if wrong else None


def _first(fault: Exception) -> str:
    return beginning(str(getattr(fault, "message", fault)).strip().partition("\n")[0], 300)


def _reason(fault: Exception) -> str:
    """What the socket said, without the URL and the library's own words around it."""
    inner = getattr(fault.args[0], "reason", None) if fault.args else None
    return beginning(str(inner or fault).rpartition(": ")[2].strip("\"')("), 200)
