"""Routes of credentials: they go in and never out (KEY-2)."""

from pathlib import Path

from litestar import Response
from litestar.params import FromPath, JSONBody

from noetl.api import types as t
from noetl.api.answers import answered
from noetl.api.context import ApiContext
from noetl.api.paging import USUAL, Cursor, Limit, page_of, place_in
from noetl.errors import CredentialMissing, ServerRefused
from noetl.keychain.fields import register as mask
from noetl.keychain.store import CredentialSummary, Store
from noetl.messages.envelope import timestamp


class CredentialsRoutes:
    """Answers for credentials."""

    def __init__(self, context: ApiContext) -> None:
        self._plane = context.plane

    async def put(
        self, name: FromPath[Path], data: JSONBody[t.CredentialRequest]
    ) -> Response[t.Credential]:
        """Register a credential, or replace the one of that name."""
        await self._plane.keychain.seals.make_ready()
        mask(data.fields)  # from now on, so that not even an error repeats one
        named = name_in(name)
        await self._store.add(named, data.kind, data.fields)
        return answered(shown_of(await self._found(named)))

    async def page(self, cursor: Cursor = None, limit: Limit = USUAL) -> Response[t.CredentialPage]:
        """What is registered, by name; no values."""
        after = place_in(cursor, str) or ""
        rows = [row for row in await self._store.all() if row.name > after]
        found, next = page_of(rows, limit, lambda row: row.name)
        return answered(t.CredentialPage(credentials=[shown_of(row) for row in found], next=next))

    async def remove(self, name: FromPath[Path]) -> None:
        """Forget a credential."""
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


def shown_of(row: CredentialSummary) -> t.Credential:
    return t.Credential(
        name=row.name, kind=row.kind, key_id=row.key_id, updated_at=timestamp(row.updated_at)
    )
