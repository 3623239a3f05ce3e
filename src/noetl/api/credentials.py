"""Routes of credentials: they go in and never out (KEY-2)."""

from pathlib import Path

from litestar import Response
from litestar.params import FromPath, JSONBody

from noetl.api import types as t
from noetl.api.answers import answered_aside
from noetl.api.context import USUAL, ApiContext, Cursor, Limit, tell_about
from noetl.api.rows import view_of
from noetl.errors import CredentialMissing, ServerRefused
from noetl.keychain.fields import register_aside as mask
from noetl.keychain.store import CredentialSummary, Store


class CredentialsRoutes:
    """Answers for credentials."""

    def __init__(self, context: ApiContext) -> None:
        self._plane = context.plane
        self._questions = context.questions

    async def put(
        self, name: FromPath[Path], data: JSONBody[t.CredentialRequest]
    ) -> Response[t.Credential]:
        """Register a credential, or replace the one of that name."""
        await self._plane.keychain.seals.make_ready()
        await mask(data.fields)  # from now on, so that not even an error repeats one
        named = name_in(name)
        tell_about(data.kind)
        await self._store.add(named, data.kind, data.fields)
        return await answered_aside(view_of(t.Credential, await self._found(named)))

    async def page(self, cursor: Cursor = None, limit: Limit = USUAL) -> Response[t.CredentialPage]:
        """Registered credentials by name, without values."""
        return await answered_aside(await self._questions.credentials(cursor=cursor, limit=limit))

    async def remove(self, name: FromPath[Path]) -> None:
        """Remove a credential."""
        if not await self._store.remove(name_in(name)):
            raise missing(name_in(name))

    @property
    def _store(self) -> Store:
        return self._plane.keychain.opened.store

    async def _found(self, name: str) -> CredentialSummary:
        for row in await self._store.all():
            if row.name == name:
                return row
        raise CredentialMissing(f"credential '{name}' was removed meanwhile")


def name_in(name: Path) -> str:
    """Names may hold slashes; the router puts one in front."""
    return str(name).lstrip("/")


def missing(name: str) -> ServerRefused:
    return ServerRefused(
        f"no credential '{name[:100]}' is registered", code="credential_not_found", status=404
    )
