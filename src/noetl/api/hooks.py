"""The route of webhooks: a call of another program starts a playbook (START-4)."""

import time
import uuid
from pathlib import Path
from typing import Annotated

from litestar import Response
from litestar.params import FromPath, QueryParameter

from noetl.api import types as t
from noetl.api.answers import answered
from noetl.api.catalog import path_in
from noetl.api.context import ApiContext, Asking
from noetl.api.signatures import HIDDEN, delivery_of
from noetl.errors import CredentialMissing, NoetlError, ServerRefused, TriggerNotFound
from noetl.node.trigger_subjects import data_in
from noetl.playbook import stand_in
from noetl.playbook.triggers import Trigger, Webhook
from noetl.ports.triggers import Noted, TriggerRow
from noetl.server.triggering import now_ms
from noetl.server.views.standing import Listed, listed_of

Wait = Annotated[
    float | None, QueryParameter(ge=0, le=60, description="Seconds to wait for the result.")
]
SECRETS = ("secret", "token", "value", "password", "key")
"""Fields of a credential, the first of which is the secret of a hook."""


class HooksRoutes:
    """Answers for webhooks."""

    def __init__(self, context: ApiContext) -> None:
        self._context = context
        self._plane = context.plane

    async def call(
        self, request: Asking, path: FromPath[Path], wait: Wait = None
    ) -> Response[t.HookAnswer]:
        """Start what the trigger names; the answer comes after the commit, or with the result."""
        row, trigger, hook = await self._hook(path_in(path))
        refuse_large(size_in(request.headers.get("content-length", "")), hook)
        body = await request.body()
        refuse_large(len(body), hook)
        headers = {name.lower(): value for name, value in request.headers.items()}
        secret = await self._secret(hook.credential)
        delivery = delivery_of(hook.scheme, secret, headers, body, time.time())
        if row.paused:
            raise ServerRefused(f"the trigger '{row.path}' is paused", code="paused", status=409)
        begun = await self._start(trigger, delivery or uuid.uuid4().hex, body, headers)
        seconds = hook.wait if wait is None else wait
        result = await self._result(request, begun.execution_id, seconds) if seconds else None
        return answered(t.HookAnswer(execution=begun, result=result), status=202)

    async def _hook(self, path: str) -> tuple[TriggerRow, Trigger, Webhook]:
        """Whatever is no webhook looks like nothing at all to whoever has proved nothing."""
        row = await self._plane.storage.triggers.find(path)
        if row is not None and row.kind == "webhook":
            trigger = await self._plane.starts.trigger(row)
            if isinstance(trigger.on, Webhook):
                return row, trigger, trigger.on
        raise TriggerNotFound(f"no webhook '{path[:200]}'")

    async def _secret(self, name: str) -> str:
        plan = await self._plane.library.plan_of(stand_in.TEXT, None)
        fields = await self._plane.keychain.unlock(plan, name)
        found = next((fields[field] for field in SECRETS if fields.get(field)), None)
        if not isinstance(found, str):
            raise CredentialMissing(f"the credential '{name}' has none of: {', '.join(SECRETS)}")
        return found

    async def _start(
        self, trigger: Trigger, delivery: str, body: bytes, headers: dict[str, str]
    ) -> Listed:
        now = now_ms()
        shown = {name: value for name, value in headers.items() if name not in HIDDEN}
        try:
            row = await self._plane.starts.start(
                trigger, delivery, at=now, data=data_in(body), headers=shown
            )
        except NoetlError as why:
            self._plane.starts.note(trigger.path, Noted(at=now, why=f"{delivery}: {why}"))
            raise
        noted = Noted(at=now, execution_id=row.execution_id)
        self._plane.starts.note(trigger.path, noted)
        return listed_of(row, interrupted=False)

    async def _result(self, request: Asking, execution_id: str, seconds: float) -> t.Summary | None:
        waiting = self._plane.summary(execution_id, wait=seconds)
        summary = await self._context.unless_gone(request, waiting)
        return None if summary is None else t.Summary(**summary)


def size_in(length: str) -> int:
    """What a caller says of its body, so that one too large is refused unread."""
    return int(length) if length.isascii() and length.isdecimal() else 0


def refuse_large(size: int, hook: Webhook) -> None:
    if size > hook.max_bytes:
        raise ServerRefused(
            f"the body is larger than {hook.max_bytes:,} bytes", code="too_large", status=413
        )
