"""OAuth2 client credentials: a token for an id and a secret, kept until it is about to run out."""

import base64
from typing import Any
from urllib.parse import quote, urlencode

from noetl.errors import CredentialMissing
from noetl.keychain.asking import Asking
from noetl.keychain.fields import Fields, check, register_aside
from noetl.keychain.once import Fetched, Once
from noetl.masking import KNOWN, Masking

LIFE = 300.0
"""Seconds for which a token is kept whose server does not say how long it is good."""
ASKED = ("scope", "audience", "resource")
"""Fields of the credential that are sent along."""


class AccessTokens:
    """Access tokens by client."""

    def __init__(self, asking: Asking, once: Once, masking: Masking = KNOWN) -> None:
        self._asking = asking
        self._once = once
        self._masking = masking
        self._earlier: dict[Any, str] = {}

    async def token(self, name: str, fields: Fields) -> str:
        """A token that is good for a while."""
        check(name, "oauth2", fields)
        key = ("oauth2", *(str(fields.get(field)) for field in (*IDENTITY, *ASKED)))
        token: str = await self._once.value(key, lambda: self._fetch(key, name, fields))
        return token

    async def _fetch(self, key: Any, name: str, fields: Fields) -> Fetched:
        body, headers = request_of(fields)
        answer = await self._asking.ask(
            f"the token server of credential '{name}'",
            "POST",
            str(fields["token_url"]),
            headers=headers,
            body=body,
        )
        token = answer.fields.get("access_token")
        if answer.status != 200 or not isinstance(token, str) or not token:
            raise CredentialMissing(
                f"credential '{name}': {fields['token_url']} gave no token "
                f"({self._masking.masked(answer.words())}); "
                "check client_id, client_secret and scope"
            )
        await self._remember(key, token)
        return Fetched(token, seconds_in(answer.fields.get("expires_in")))

    async def _remember(self, key: Any, token: str) -> None:
        """The token before the last one has run out for sure: it need not be masked any more."""
        before = self._once.last(key)
        gone = self._earlier.pop(key, None)
        if gone is not None and gone not in (before, token):
            self._masking.forget(gone)
        if isinstance(before, str):
            self._earlier[key] = before
        await register_aside({"token": token}, self._masking)


IDENTITY = ("token_url", "client_id", "client_secret")


def request_of(fields: Fields) -> tuple[bytes, dict[str, str]]:
    """RFC 6749 §4.4.2; `client_auth: body` sends id and secret in the body (§2.3.1)."""
    form = {"grant_type": "client_credentials"}
    form |= {field: text_of(fields[field]) for field in ASKED if fields.get(field)}
    headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
    client = (str(fields["client_id"]), str(fields["client_secret"]))
    if fields.get("client_auth") == "body":
        form |= {"client_id": client[0], "client_secret": client[1]}
    else:
        pair = ":".join(quote(part, safe="") for part in client)
        headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    return urlencode(form).encode(), headers


def text_of(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def seconds_in(value: Any) -> float:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return LIFE
    return seconds if 0 < seconds < float("inf") else LIFE
