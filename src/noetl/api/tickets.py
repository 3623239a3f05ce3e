"""
One-time tickets: how a command opens a browser that is signed in (decision 0069).

Whoever knows a secret of the server (the token of its home, or one made for the moment) writes a
ticket into the fragment of an address, which no browser sends and no server logs. It is good for a
minute, once, and for signing in only: no route takes it as a token.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable

from noetl.ports.tokens import TokenRow

PREFIX = "ticket_"
SPENT = "the ticket was used or is too old; sign in again"
LASTS = 60
"""Seconds: a browser that begins to open must be able to."""


def new_ticket(secret: str, *, now: float | None = None) -> str:
    until = int((time.time() if now is None else now) + LASTS)
    body = f"{secrets.token_hex(12)}.{until}"
    return f"{PREFIX}{body}.{signature(secret, body)}"


def signature(secret: str, body: str) -> str:
    return hmac.new(secret.encode(), f"ticket {body}".encode(), hashlib.sha256).hexdigest()


class Tickets:
    """Takes each ticket once; `row` is whom its bearer comes as."""

    def __init__(self, secret: str, row: TokenRow, *, now: Callable[[], float] = time.time) -> None:
        self._secret = secret
        self.row = row
        """Whom a ticket lets in."""
        self._now = now
        self._spent: dict[str, int] = {}
        """Ticket → when it would have ended."""

    def spend(self, text: str) -> TokenRow | None:
        """Whom this ticket lets in; None where it is none, is old, or was shown before."""
        body, _, signed = text.removeprefix(PREFIX).rpartition(".")
        until = body.rpartition(".")[2]
        expected = signature(self._secret, body)
        if not hmac.compare_digest(signed.encode(), expected.encode()) or not until.isdecimal():
            return None
        now = self._now()
        self._spent = {one: end for one, end in self._spent.items() if end >= now}
        if int(until) < now or body in self._spent:
            return None
        self._spent[body] = int(until)
        return self.row


def address_with(url: str, page: str, ticket: str | None) -> str:
    """The address that signs in and shows a page (`executions/ID`)."""
    return f"{url}/ui/{page}" + (f"#{ticket}" if ticket else "")
