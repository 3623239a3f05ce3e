"""Routes of tokens: made, listed, revoked; by admins only."""

from litestar import Response
from litestar.params import FromPath, JSONBody

from noetl.api import types as t
from noetl.api.answers import answered, answered_aside
from noetl.api.context import USUAL, ApiContext, Cursor, Limit, tell_about
from noetl.api.paging import page_of, place_in
from noetl.api.tokens import make_token, revoke_token, shown_token
from noetl.errors import ServerRefused


class AccessRoutes:
    """Answers for tokens."""

    def __init__(self, context: ApiContext) -> None:
        self._tokens = context.plane.storage.tokens
        self._keychain = context.plane.keychain
        self._gate = context.gate

    async def make(self, data: JSONBody[t.TokenRequest]) -> Response[t.TokenMade]:
        """Create a token; this response is the only place that shows it."""
        tell_about(f"{data.name} {data.role}")
        made = await make_token(
            self._tokens,
            data.name,
            data.role,
            expires_in=data.expires_in,
            pool=data.pool,
            keychain=self._keychain,
        )
        return answered(made, status=201)

    async def page(self, cursor: Cursor = None, limit: Limit = USUAL) -> Response[t.TokenPage]:
        """All tokens, the oldest first, without their text."""
        rows = list(await self._tokens.all())
        after = place_in(cursor, str)
        ids = [row.token_id for row in rows]
        first = ids.index(after) + 1 if after in ids else 0
        found, next = page_of(rows[first:], limit, lambda row: row.token_id)
        return await answered_aside(
            t.TokenPage(tokens=[shown_token(t.TokenView, row) for row in found], next=next)
        )

    async def revoke(self, token_id: FromPath[str]) -> None:
        """Revoke a token."""
        if not await revoke_token(self._tokens, self._keychain, token_id):
            raise ServerRefused(
                f"no token '{token_id[:100]}'; GET /api/tokens lists them",
                code="token_not_found",
                status=404,
            )
        self._gate.forget()
