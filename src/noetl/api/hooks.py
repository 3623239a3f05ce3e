"""The route of webhooks: a call of another program starts a playbook (START-4)."""

import asyncio
import time
import uuid
from pathlib import Path
from typing import Annotated, Final

from litestar import Response
from litestar.params import FromPath, QueryParameter

from noetl.api import types as t
from noetl.api.answers import answered
from noetl.api.catalog import path_in
from noetl.api.context import ApiContext, Asking
from noetl.api.signatures import SCHEMES, HookCall, Unproved, looks_signed
from noetl.errors import CredentialMissing, NoetlError, ServerRefused
from noetl.node.trigger_subjects import data_in
from noetl.playbook import stand_in
from noetl.playbook.triggers import Trigger, Webhook
from noetl.ports.large import off_loop
from noetl.ports.triggers import Noted, TriggerRow
from noetl.server.triggering import now_ms
from noetl.server.views.standing import Listed, listed_of

Wait = Annotated[
    float | None, QueryParameter(ge=0, le=60, description="Seconds to wait for the result.")
]
SECRETS = ("secret", "token", "value", "password", "key")
"""Fields of a credential, the first of which is the secret of a hook."""


LARGEST: Final = 8 * 1024 * 1024
"""Bytes of a body that is signed, before it is known whose it is; `max_bytes` is no larger."""
NOWHERE: Final = Webhook(credential="")
"""What is asked for a proof where there is no hook; nothing proves it."""
HELD: Final = 64 * 1024 * 1024
"""Bytes of bodies that nobody has proved yet, of all calls together."""
WITHIN: Final = 60.0
"""Seconds for such a body."""
REFUSED: Final = "the signature or token of the call is missing or wrong for this path"


class UnprovedBody:
    """What came so far of the body of one call."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0


class HooksRoutes:
    """Answers for webhooks."""

    def __init__(self, context: ApiContext) -> None:
        self._context = context
        self._plane = context.plane
        self._reading: dict[UnprovedBody, None] = {}
        self._held = 0

    async def call(
        self, request: Asking, path: FromPath[Path], wait: Wait = None
    ) -> Response[t.HookAnswer]:
        """Start what the trigger names; the answer comes after the commit, or with the result."""
        found = await self._hook(path_in(path))
        headers = {key.lower(): value for key, value in request.headers.items()}
        call = HookCall(path_in(path), headers, time.time())
        body, delivery = await self._proved(request, call, NOWHERE if found is None else found[2])
        if found is None:
            raise unproved()
        row, trigger, hook = found
        refuse_large(len(body), hook.max_bytes)
        if row.paused:
            raise ServerRefused(f"the trigger '{row.path}' is paused", code="paused", status=409)
        begun = await self._start(trigger, delivery or uuid.uuid4().hex, body, headers)
        seconds = hook.wait if wait is None else wait
        answer = t.HookAnswer(execution=begun, result=None)
        if seconds:
            answer = await self._waited(request, begun.execution_id, seconds)
        return answered(answer, status=202)

    async def _hook(self, path: str) -> tuple[TriggerRow, Trigger, Webhook] | None:
        row = await self._plane.storage.triggers.find(path)
        if row is not None and row.kind == "webhook":
            trigger = await self._plane.starts.readable(row)
            if trigger is not None and isinstance(trigger.on, Webhook):
                return row, trigger, trigger.on
        return None

    async def _proved(
        self, request: Asking, call: HookCall, hook: Webhook
    ) -> tuple[bytes, str | None]:
        """
        The body, and the id of the delivery. Until the proof all that is done follows from what the
        call brings, and from nothing of the hook: else names could be found out by trying.
        """
        signed = looks_signed(call)
        body = await self._body(request, LARGEST) if signed else b""
        try:
            secret = await self._secret(hook.credential)
            SCHEMES[hook.scheme].by_headers(secret, call)
            if not signed:
                body = await self._body(request, hook.max_bytes)
            return body, SCHEMES[hook.scheme].delivery(secret, call._replace(body=body))
        except (Unproved, CredentialMissing) as why:
            self._plane.refuse_call("" if hook is NOWHERE else call.path, str(why))
            raise unproved() from None

    async def _secret(self, name: str) -> str:
        plan = await self._plane.library.plan_of(stand_in.TEXT, None)
        fields = await self._plane.keychain.unlock(plan, name)
        found = next((fields[field] for field in SECRETS if fields.get(field)), None)
        if not isinstance(found, str):
            raise CredentialMissing(f"the credential '{name}' has none of: {', '.join(SECRETS)}")
        return found

    async def _body(self, request: Asking, most: int) -> bytes:
        """Nobody has proved anything yet: no more of it is kept than any trigger takes."""
        refuse_large(size_in(request.headers.get("content-length", "")), most)
        read = UnprovedBody()
        self._reading[read] = None
        try:
            async with asyncio.timeout(WITHIN):
                async for piece in request.stream():
                    refuse_large(read.size + len(piece), most)
                    self._grow(read, piece)
        except TimeoutError:
            raise ServerRefused("the body took too long", code="slow", status=408) from None
        finally:
            self._drop(read)
        return b"".join(read.pieces)

    def _grow(self, read: UnprovedBody, piece: bytes) -> None:
        """Who has taken longest makes room: bodies that drip keep no others out."""
        if read in self._reading:
            read.pieces.append(piece)
            read.size += len(piece)
            self._held += len(piece)
        while self._held > HELD:
            oldest = next(iter(self._reading))
            self._drop(oldest)
            oldest.pieces.clear()
        if read not in self._reading:
            raise ServerRefused("too many calls at once", code="busy", status=503)

    def _drop(self, read: UnprovedBody) -> None:
        if read in self._reading:
            del self._reading[read]
            self._held -= read.size

    async def _start(
        self, trigger: Trigger, delivery: str, body: bytes, headers: dict[str, str]
    ) -> Listed:
        now = now_ms()
        try:
            data = await off_loop(len(body), data_in, body)
            row = await self._plane.starts.start(
                trigger, delivery, at=now, data=data, headers=headers
            )
        except NoetlError as why:
            self._plane.starts.note(trigger.path, Noted(at=now, why=f"{delivery}: {why}"))
            raise
        noted = Noted(at=now, execution_id=row.execution_id)
        self._plane.starts.note(trigger.path, noted)
        return listed_of(row, interrupted=False)

    async def _waited(self, request: Asking, execution_id: str, seconds: float) -> t.HookAnswer:
        """The result, and beside it the execution as it stands by then."""
        waiting = self._plane.summary(execution_id, wait=seconds)
        summary = await self._context.unless_gone(request, waiting)
        row = await self._plane.row(execution_id)
        if summary is not None and summary["status"] != row.status:  # it has gone on meanwhile
            summary = await self._plane.summary(execution_id)
            row = await self._plane.row(execution_id)
        result = None if summary is None else t.Summary(**summary)
        return t.HookAnswer(execution=listed_of(row, interrupted=False), result=result)


def size_in(length: str) -> int:
    """What a caller says of its body, so that one too large is refused unread."""
    return int(length) if length.isascii() and length.isdecimal() else 0


def refuse_large(size: int, most: int) -> None:
    if size > most:
        said = f"the body is larger than {most:,} bytes"
        raise ServerRefused(said, code="too_large", status=413)


def unproved() -> ServerRefused:
    """One answer, whatever is missing: nobody learns from it which hooks there are."""
    return ServerRefused(REFUSED, code="unproved", status=401)
