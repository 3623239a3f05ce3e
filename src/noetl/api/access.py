"""Routes of tokens: made, listed, revoked; by admins only."""

import time

from litestar import Response
from litestar.params import FromPath, JSONBody

from noetl.api import types as t
from noetl.api.answers import answered
from noetl.api.context import USUAL, ApiContext, Cursor, Limit
from noetl.api.paging import page_of, place_in
from noetl.api.rows import view_of
from noetl.api.tokens import new_token
from noetl.errors import ServerRefused


class AccessRoutes:
    """Answers for tokens."""

    def __init__(self, context: ApiContext) -> None:
        self._tokens = context.plane.storage.tokens
        self._gate = context.gate

    async def make(self, data: JSONBody[t.TokenRequest]) -> Response[t.TokenMade]:
        """Make a token; its text is in this answer and nowhere else."""
        now = int(time.time() * 1000)
        expires = None if data.expires_in is None else now + int(data.expires_in * 1000)
        text, row = new_token(data.name, data.role, now_ms=now, expires_at=expires)
        await self._tokens.add(row)
        return answered(view_of(t.TokenMade, row, token=text), status=201)

    async def page(self, cursor: Cursor = None, limit: Limit = USUAL) -> Response[t.TokenPage]:
        """All tokens, the oldest first; no text of any."""
        rows = list(await self._tokens.all())
        after = place_in(cursor, str)
        ids = [row.token_id for row in rows]
        first = ids.index(after) + 1 if after in ids else 0
        found, next = page_of(rows[first:], limit, lambda row: row.token_id)
        return answered(t.TokenPage(tokens=[view_of(t.TokenView, row) for row in found], next=next))

    async def revoke(self, token_id: FromPath[str]) -> None:
        """From now on the token opens nothing."""
        if not await self._tokens.revoke(token_id):
            raise ServerRefused(
                f"no token '{token_id[:100]}'; GET /api/tokens lists them",
                code="token_not_found",
                status=404,
            )
        self._gate.forget()
