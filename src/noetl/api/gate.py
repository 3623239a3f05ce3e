"""Who may pass: deny by default, on every route alike; the role is the route's own word."""

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.exceptions import (
    ClientException,
    HTTPException,
    MethodNotAllowedException,
    NotAuthorizedException,
    PermissionDeniedException,
)
from litestar.handlers import BaseRouteHandler

from noetl.api.loopback import host_in, is_loopback
from noetl.api.roles import Access, allows
from noetl.api.tickets import PREFIX as TICKET
from noetl.api.tickets import SPENT, Tickets
from noetl.api.tokens import LONGEST
from noetl.ports.tokens import HOME, TokenRow, Tokens, digest_of, is_good, maker_of

ACCESS = "access"
TAKES = "takes"
"""Keys of a route's options: whom it lets in, and which types of body it takes."""

CALLER = "noetl.caller"
"""Key of a request's scope: the token that it came with, whether its role allows it or not; None
where auth is off. It is missing of a stranger."""

SESSION = "noetl_session"
"""The cookie of a browser that has signed in."""
FRESH = 2.0
"""Seconds for which a token that was good is not looked up again."""
MOST = 1000

Connection = ASGIConnection[BaseRouteHandler, object, object, State]
Asked = ASGIConnection[Any, Any, Any, State]


class Gate:
    """The guard of the whole app. `tokens` is None where auth is off; `own`: those of the home."""

    def __init__(
        self,
        tokens: Tokens | None,
        own: Mapping[str, TokenRow] = MappingProxyType({}),
        *,
        tickets: Tickets | None = None,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tokens = tokens
        self._own = own
        self._tickets = tickets
        self._now = now
        self._clock = clock
        self._seen: dict[str, tuple[float, TokenRow]] = {}

    async def __call__(self, connection: Connection, route: BaseRouteHandler) -> None:
        access: Access | None = route.opt.get(ACCESS)
        if access is None:  # not one of the table: nobody has said who may
            raise MethodNotAllowedException
        if access == "open":
            refuse_nul(connection)
            return
        if self._tokens is None:
            refuse_strangers(connection)
            connection.scope[CALLER] = None  # type: ignore[literal-required]
        else:
            await self._admit(self._tokens, connection, access)
        refuse_nul(connection)
        refuse_type(connection, route.opt.get(TAKES, ()))

    def forget(self) -> None:
        """A token was revoked: look all of them up again."""
        self._seen.clear()

    async def _admit(self, tokens: Tokens, connection: Connection, access: Access) -> None:
        row = await self._good(tokens, text_of(connection))
        connection.scope[CALLER] = row  # type: ignore[literal-required]
        if not allows(row.role, access):
            raise PermissionDeniedException(
                f"the token's role is {row.role}, and this needs {access}"
            )
        connection.scope["auth"] = row

    async def known(self, text: str, *, anew: bool = False) -> TokenRow:
        """Whose token this is, now if `anew`; whoever it is not good for is told so."""
        if self._tokens is None:
            raise ClientException("auth is off: nobody needs to sign in")
        if anew:
            self._seen.pop(digest_of(text), None)
        if text.startswith(TICKET) and self._tickets is not None:
            row = self._tickets.row if anew else self._tickets.spend(text)
            if row is None:
                raise NotAuthorizedException(SPENT)
            return row
        return await self._good(self._tokens, text)

    async def lasts(self, row: object) -> bool:
        """Whether whoever was let in would be now, too: for answers that take long."""
        if self._tokens is None or not isinstance(row, TokenRow):
            return self._tokens is None
        found = await self._row(self._tokens, row.digest)
        return is_good(found, row.digest, int(self._now() * 1000))

    async def _good(self, tokens: Tokens, text: str) -> TokenRow:
        digest = digest_of(text)
        row = await self._row(tokens, digest)
        if row is None or not is_good(row, digest, int(self._now() * 1000)):
            raise NotAuthorizedException("the token is not known, has expired or was revoked")
        return row

    async def _row(self, tokens: Tokens, digest: str) -> TokenRow | None:
        if digest in self._own:
            return self._own[digest]
        kept = self._seen.get(digest)
        if kept is not None and self._clock() - kept[0] < FRESH:
            return kept[1]
        row = await tokens.find(digest)
        if row is not None and self._is_of_others(row):
            return None
        if row is not None:
            if len(self._seen) >= MOST:
                self._seen.clear()
            self._seen[digest] = (self._clock(), row)
        return row

    def _is_of_others(self, row: TokenRow) -> bool:
        """A session of a home's token is good where that token is, and as long, nowhere else."""
        maker = maker_of(row)
        at_home = maker is not None and maker.startswith(HOME)
        return at_home and all(maker != own.token_id for own in self._own.values())


def text_of(connection: Connection) -> str:
    """The token of a program, or of the session of a browser (decision 0065)."""
    session = session_in(connection.headers.get("cookie", ""))
    if session is None or "authorization" in connection.headers:
        return bearer(connection)
    refuse_foreign(connection)
    if len(session) > LONGEST:
        raise NotAuthorizedException("the session has ended; sign in again")
    return session


def session_in(cookies: str) -> str | None:
    """
    The session among all cookies of this host. The framework would unquote the values of all of
    them, which took Python a minute for one of 60 KB, and keep the last thousand headers.
    """
    pairs = (one.partition("=") for one in cookies.split(";"))
    return next((value.strip() for name, _, value in pairs if name.strip() == SESSION), None)


def bearer(connection: Connection) -> str:
    """The token of a request; it is never taken from the URL, which others log."""
    scheme, _, text = connection.headers.get("authorization", "").partition(" ")
    text = text.strip()
    if scheme.lower() != "bearer" or not text or len(text) > LONGEST:
        raise NotAuthorizedException("the request carries no bearer token")
    return text


def refuse_strangers(connection: Connection) -> None:
    """
    Without auth the browser of whoever runs the server is a way in for any page it shows: a name
    that was made to point here is refused, and so is a page of any other origin, one of another
    port of this machine included; whatever the method, and with a body or without.
    """
    given = connection.headers.get("host", "")
    host = host_in(f"//{given}")
    if not is_loopback(host):
        raise PermissionDeniedException(
            f"without auth the server answers to localhost only, not to '{host[:100]}'"
        )
    origin = connection.headers.get("origin", f"http://{given}")
    site = connection.headers.get("sec-fetch-site", "none")
    if origin != f"http://{given}" or site not in ("none", "same-origin"):
        raise PermissionDeniedException("without auth the server answers no other origin's page")


def refuse_foreign(connection: Asked) -> None:
    """
    A browser sends a cookie for any page of this site, other ports included: only our own may ask.
    What the browser says of the page counts first; a proxy may have changed the name of the host.
    """
    site = connection.headers.get("sec-fetch-site")
    if site is not None:
        ours = site in ("same-origin", "none")
    elif origin_of(connection):
        ours = urlsplit(origin_of(connection)).netloc == connection.headers.get("host", "")
    else:
        ours = connection.scope.get("method") in ("GET", "HEAD")
    if not ours:
        raise PermissionDeniedException("a session is for the pages of this server only")


def origin_of(connection: Asked) -> str:
    return str(connection.headers.get("origin", ""))


def refuse_nul(connection: Connection) -> None:
    # No name of ours has one, and PostgreSQL takes none in a text.
    if "\x00" in connection.scope["path"] or b"%00" in connection.scope["query_string"]:
        raise ClientException("the URL holds a NUL character")


def refuse_type(connection: Connection, takes: tuple[str, ...]) -> None:
    """415 for a body of another type. A form of a foreign page cannot send these types."""
    headers = connection.headers
    empty = headers.get("content-length") in (None, "0") and "transfer-encoding" not in headers
    if not takes or empty:
        return
    found = headers.get("content-type", "").partition(";")[0].strip().lower()
    if found not in takes:
        raise HTTPException(
            status_code=415,
            detail=f"the body is '{found[:100]}', and this takes {' or '.join(takes)}",
        )
