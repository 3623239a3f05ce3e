"""How a credential is put onto a request (KEY-1)."""

import base64
from collections.abc import Callable, Mapping
from typing import Any

from multidict import CIMultiDict
from yarl import URL

from noetl.tools.refusal import Refusal

Signed = tuple[URL, frozenset[str]]
"""The URL to ask, and the headers that no other host may see."""


def sign(url: URL, headers: CIMultiDict[str], credential: Mapping[str, Any], name: str) -> Signed:
    """Add what the credential says to `headers` or to the URL."""
    kind = str(credential.get("kind") or guess(credential)).removesuffix("_credential")
    way = WAYS.get(kind)
    if way is None:
        says = f"credential '{name}' is of kind '{kind}', which http cannot use"
        raise Refusal("auth", f"{says}; expected one of: {', '.join(WAYS)}")
    try:
        return way(url, headers, credential)
    except KeyError as missing:
        raise Refusal("auth", f"credential '{name}' ({kind}) has no field {missing}") from None


def guess(credential: Mapping[str, Any]) -> str:
    """The kind of a credential that does not say it."""
    told = ((("token",), "bearer"), (("password",), "basic"), (("key", "value"), "api_key"))
    return next((kind for fields, kind in told if any(f in credential for f in fields)), "generic")


def _basic(url: URL, headers: CIMultiDict[str], credential: Mapping[str, Any]) -> Signed:
    user = credential["user"] if "user" in credential else credential["username"]
    pair = f"{user}:{credential['password']}".encode()
    headers["Authorization"] = "Basic " + base64.b64encode(pair).decode()
    return url, frozenset({"authorization"})


def _bearer(url: URL, headers: CIMultiDict[str], credential: Mapping[str, Any]) -> Signed:
    # A secret that is plain text, not JSON, arrives as `value` (KEY-1).
    field = "value" if "token" not in credential and "value" in credential else "token"
    headers["Authorization"] = f"Bearer {credential[field]}"
    return url, frozenset({"authorization"})


def _api_key(url: URL, headers: CIMultiDict[str], credential: Mapping[str, Any]) -> Signed:
    key = str(credential["key"] if "key" in credential else credential["value"])
    if "query" in credential:
        return url.extend_query([(str(credential["query"]), key)]), frozenset()
    header = str(credential.get("header", "X-API-Key"))
    headers[header] = key
    return url, frozenset({header.lower()})


WAYS: dict[str, Callable[[URL, CIMultiDict[str], Mapping[str, Any]], Signed]] = {
    "basic": _basic,
    "bearer": _bearer,
    "api_key": _api_key,
}
