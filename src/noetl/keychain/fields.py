"""What a credential consists of: its kind, its fields, and which of them are secret (KEY-1)."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from noetl.errors import CredentialMissing
from noetl.masking import KNOWN, Masking, add_all, texts_in
from noetl.ports.large import off_loop

Fields = dict[str, Any]

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-/]{0,199}")
KIND = re.compile(r"[a-z][a-z0-9_]{0,63}")

REQUIRED: dict[str, tuple[tuple[str, ...], ...]] = {
    "postgres": (("host", "dsn"),),
    "snowflake": (("account",), ("user", "username")),
    "gcs": (("value", "private_key", "token"),),
    "s3": (("access_key_id",), ("secret_access_key",)),
    "basic": (("user", "username"), ("password",)),
    "bearer": (("token", "value"),),
    "api_key": (("key", "value"),),
    "oauth2": (("token_url",), ("client_id",), ("client_secret",)),
    "vault": (("address",), ("token", "role_id")),
    "aws": (("access_key_id",), ("secret_access_key",)),
    "gcp": (("private_key", "refresh_token", "token", "value"),),
    "generic": (),
}
"""Kind → its needs, each met by any one of the fields named; other kinds are for plugins."""

MAIN = {
    "postgres": "password",
    "snowflake": "password",
    "s3": "secret_access_key",
    "aws": "secret_access_key",
    "basic": "password",
    "bearer": "token",
    "api_key": "key",
    "oauth2": "client_secret",
    "vault": "token",
}
"""Kind → the field that a secret of plain text is registered as; `value` for the others."""

WHERE = """
    kind type host hostname port address endpoint endpoint_url region bucket project project_id
    database dbname schema warehouse namespace mount version sslmode sslrootcert ca options
    token_url token_uri auth_uri universe_domain addressing_style url_style header query
"""
WHO = """
    user username role account client_id client_email client_auth scope scopes audience resource
    role_id access_key_id private_key_id client_x509_cert_url auth_provider_x509_cert_url
"""
PUBLIC = frozenset((WHERE + WHO).split())
"""Fields that say where and who, not how to get in. Every other field is secret."""


def kind_of(kind: str) -> str:
    """KEY-1: a suffix `_credential` is allowed."""
    return kind.removesuffix("_credential")


def parsed(text: str) -> Fields:
    """A secret with several fields is JSON; any other text is the value itself."""
    try:
        fields = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return {"value": text}
    return fields if isinstance(fields, dict) else {"value": text}


def placed(kind: str, fields: Fields) -> Fields:
    """Plain text is the field that makes its kind a secret; of a database also the whole URL."""
    if fields.keys() != {"value"} or kind not in MAIN:
        return fields
    text = fields["value"]
    whole = kind == "postgres" and str(text).startswith(("postgres://", "postgresql://"))
    return {"dsn" if whole else MAIN[kind]: text}


def filled(
    login: Fields | None,
    environment: Mapping[str, str],
    names: Mapping[str, Sequence[str]],
    address: str,
) -> Fields:
    """A login; the environment fills what it leaves out, unless it says itself where to go."""
    given = login or {}
    elsewhere = given.get(address) not in (None, "", *map(environment.get, names[address]))
    known = {} if elsewhere else environment
    return {
        field: given.get(field) or next(filter(None, map(known.get, variables)), None)
        for field, variables in names.items()
    }


def digest(login: Fields | None) -> str:
    """Tells logins apart without keeping them."""
    return hashlib.sha256(msgspec.json.encode(login)).hexdigest()


def refuse_dots(who: str, key: str) -> None:
    """A client of HTTP would resolve them, and so ask for something else than a secret."""
    if {".", ".."} & set(key.split("/")):
        raise CredentialMissing(
            f"{who}: '{key}' is not the name of a secret; leave '.' and '..' out"
        )


def missing_in(kind: str, fields: Mapping[str, Any]) -> list[str]:
    """What a credential of this kind still needs, in words."""
    return [
        " or ".join(names)
        for names in REQUIRED.get(kind, ())
        if not any(fields.get(name) not in (None, "") for name in names)
    ]


def check(name: str, kind: str, fields: Mapping[str, Any]) -> None:
    """Refuse what no tool could use."""
    lacks = missing_in(kind, fields)
    if lacks:
        raise CredentialMissing(
            f"credential '{name}' of kind {kind} lacks {', '.join(lacks)}; "
            f"it has: {', '.join(sorted(fields)) or 'no fields'}"
        )


def register(fields: Mapping[str, Any], masking: Masking = KNOWN) -> None:
    """From now on these secrets are masked (KEY-2); where and who stays readable."""
    add_all(masking, secrets_in(fields))


async def register_aside(fields: Mapping[str, Any], masking: Masking = KNOWN) -> None:
    """
    The same without holding up the loop. Whoever writes a playbook says what is a secret: each
    part of it is looked for in every report and every line from now on, so it has bounds.
    """
    texts = list(texts_in(secrets_in(fields)))
    if masking.knows(texts):
        return
    parts = sum(1 + text.count("\n") for text in texts)
    size = sum(map(len, texts))
    if parts > MOST_PARTS or size > LARGEST_SECRET:
        raise CredentialMissing(
            f"the credential has {parts:,} fields and lines and {size:,} characters: at most "
            f"{MOST_PARTS:,} and {LARGEST_SECRET:,} can be kept secret"
        )
    await off_loop(size * FORMS, register, fields, masking)


def secrets_in(fields: Mapping[str, Any]) -> list[Any]:
    return [value for name, value in fields.items() if name not in PUBLIC]


MOST_PARTS: Final = 1000
LARGEST_SECRET: Final = 256 * 1024
FORMS: Final = 100
"""How much longer a character of a secret takes than one of JSON, for all its forms."""
