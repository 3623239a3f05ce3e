"""Routes of people with a browser: a token is shown once, a cookie speaks for it after that."""

import secrets
import time
from collections.abc import Callable

from litestar import Response
from litestar.datastructures import Cookie
from litestar.exceptions import NotAuthorizedException
from litestar.params import JSONBody
from msgspec.structs import replace

from noetl.api import types as t
from noetl.api.answers import answered
from noetl.api.context import ApiContext, Asking
from noetl.api.gate import SESSION, origin_of, refuse_foreign
from noetl.api.tickets import PREFIX as TICKET
from noetl.api.tickets import SPENT
from noetl.api.tokens import new_token
from noetl.errors import ServerRefused
from noetl.ports.tokens import WORKER, TokenRow, digest_of, maker_of, session_of, split_role

LASTS = 12 * 3600
"""Seconds after which a person signs in again."""
MOST = 50
"""Sessions of one token; with one more the oldest ends."""
UNFIT: dict[Callable[[TokenRow], bool], str] = {
    lambda row: split_role(row.role)[0] == WORKER: (
        "a token of workers cannot sign in; use one of another role"
    ),
    lambda row: maker_of(row) is not None: "a session cannot begin another; sign in with the token",
}
"""What cannot sign in, and what is said of it."""


class SessionsRoutes:
    """Answers for people who sign in."""

    def __init__(self, context: ApiContext) -> None:
        self._gate = context.gate
        self._tokens = context.tokens

    async def sign_in(self, request: Asking, data: JSONBody[t.SignInRequest]) -> Response[t.Me]:
        """Begin a session: a cookie that does what the token may, for twelve hours."""
        refuse_foreign(request)
        row = await self._gate.known(data.token)
        for wrong, said in UNFIT.items():
            if wrong(row):
                raise ServerRefused(said, code="forbidden", status=403)
        now = int(time.time() * 1000)
        until = min(now + LASTS * 1000, row.expires_at or now + LASTS * 1000)
        text, made = new_token(row.name, "viewer", now_ms=now, expires_at=until)
        named = session_of(row, part_of(data.token))
        await self._end_oldest(row, now)
        try:
            await self._tokens.add(replace(made, token_id=named, role=row.role))
        except ValueError:
            raise NotAuthorizedException(SPENT) from None
        try:
            # Revoked meanwhile, perhaps at another server: whoever did so may have missed this one.
            await self._gate.known(data.token, anew=True)
        except NotAuthorizedException:
            await self._tokens.revoke(named)
            raise
        answer = answered(me_of(row))
        answer.set_cookie(cookie(request, text, (until - now) // 1000))
        return answer

    async def _end_oldest(self, row: TokenRow, now: int) -> None:
        """So that nobody who may sign in fills the table with what he began."""
        await self._tokens.forget_sessions(now)
        begun = [one for one in await self._tokens.all() if maker_of(one) == row.token_id]
        for one in begun[: max(0, len(begun) - MOST + 1)]:
            await self._tokens.revoke(one.token_id)
            self._gate.forget()

    async def sign_out(self, request: Asking) -> Response[t.Me]:
        """End the session of this browser."""
        row = request.scope.get("auth")
        if isinstance(row, TokenRow) and maker_of(row) is not None:
            await self._tokens.revoke(row.token_id)
            self._gate.forget()
        answer = answered(me_of(row))
        answer.set_cookie(cookie(request, "", 0))
        return answer

    async def me(self, request: Asking) -> Response[t.Me]:
        """Who asks, and what they may do."""
        return answered(me_of(request.scope.get("auth")))


def part_of(token: str) -> str:
    """Of a session's id: a ticket has one of its own, which no two servers on a database begin."""
    return digest_of(token)[:16] if token.startswith(TICKET) else secrets.token_hex(4)


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
