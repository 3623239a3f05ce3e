"""Entries of the catalog and tokens as they are shown, by the API and by the command line."""

from typing import Any

from noetl.api import types as t
from noetl.messages.envelope import timestamp
from noetl.ports.catalog import CatalogEntry
from noetl.ports.tokens import TokenRow


def entry_fields(entry: CatalogEntry) -> dict[str, Any]:
    return {
        "playbook_id": entry.playbook_id,
        "path": entry.path,
        "version": entry.version,
        "digest": entry.digest,
        "registered_at": timestamp(entry.registered_at),
        "name": entry.name,
        "description": entry.description,
        "labels": entry.labels,
        "migrated": entry.original_digest is not None,
    }


def entry_of(entry: CatalogEntry) -> t.CatalogVersion:
    return t.CatalogVersion(**entry_fields(entry))


def token_fields(row: TokenRow) -> dict[str, Any]:
    return {
        "token_id": row.token_id,
        "name": row.name,
        "role": row.role,
        "created_at": timestamp(row.created_at),
        "expires_at": None if row.expires_at is None else timestamp(row.expires_at),
        "revoked_at": None if row.revoked_at is None else timestamp(row.revoked_at),
    }
