"""Routes of people with a browser: a token is shown once, a cookie speaks for it after that."""

import secrets
import time

from litestar import Response
from litestar.datastructures import Cookie
from litestar.params import JSONBody
from msgspec.structs import replace

from noetl.api import types as t
from noetl.api.answers import answered
from noetl.api.context import ApiContext, Asking
from noetl.api.gate import SESSION, origin_of, refuse_foreign
from noetl.api.tokens import new_token
from noetl.errors import ServerRefused
from noetl.ports.tokens import WORKER, TokenRow, split_role

LASTS = 12 * 3600
"""Seconds after which a person signs in again."""


class SessionsRoutes:
    """Answers for people who sign in."""

    def __init__(self, context: ApiContext) -> None:
        self._gate = context.gate
        self._tokens = context.plane.storage.tokens

    async def sign_in(self, request: Asking, data: JSONBody[t.SignInRequest]) -> Response[t.Me]:
        """Begin a session: a cookie that does what the token may, for twelve hours."""
        refuse_foreign(request)
        row = await self._gate.known(data.token)
        if split_role(row.role)[0] == WORKER:
            raise ServerRefused(
                "a token of workers cannot sign in; use one of another role",
                code="forbidden",
                status=403,
            )
        now = int(time.time() * 1000)
        until = min(now + LASTS * 1000, row.expires_at or now + LASTS * 1000)
        text, made = new_token(row.name, "viewer", now_ms=now, expires_at=until)
        # Named after its token: whoever revokes that ends its sessions, too.
        named = f"{row.token_id}.{secrets.token_hex(4)}"
        await self._tokens.add(replace(made, token_id=named, role=row.role))
        answer = answered(me_of(row))
        answer.set_cookie(cookie(request, text, (until - now) // 1000))
        return answer

    async def sign_out(self, request: Asking) -> Response[t.Me]:
        """End the session of this browser."""
        row = request.scope.get("auth")
        if isinstance(row, TokenRow) and "." in row.token_id:
            await self._tokens.revoke(row.token_id)
            self._gate.forget()
        answer = answered(me_of(row))
        answer.set_cookie(cookie(request, "", 0))
        return answer

    async def me(self, request: Asking) -> Response[t.Me]:
        """Who asks, and what they may do."""
        return answered(me_of(request.scope.get("auth")))


def me_of(row: object) -> t.Me:
    if not isinstance(row, TokenRow):  # without auth whoever reaches the server may do everything
        return t.Me(auth=False, name="", role="admin")
    return t.Me(auth=True, name=row.name, role=split_role(row.role)[0])


def cookie(request: Asking, text: str, seconds: int) -> Cookie:
    """No script can read it, and no other site can make a browser send it."""
    return Cookie(
        key=SESSION,
        value=text,
        path="/api",
        max_age=seconds,
        httponly=True,
        samesite="strict",
        secure=origin_of(request).startswith("https://"),
    )
