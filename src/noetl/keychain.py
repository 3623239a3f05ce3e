"""Credentials of a playbook's keychain, resolved just before use (KEY-1)."""

import os
from pathlib import Path
from typing import Any

import msgspec

from noetl.errors import CredentialMissing
from noetl.playbook.model import KeychainEntry
from noetl.playbook.plan import Plan


def unlock(plan: Plan, name: str) -> dict[str, Any]:
    """The fields of the credential `name`, its `kind` among them."""
    for entry in plan.keychain:
        if entry.name == name:
            return {"kind": entry.kind.removesuffix("_credential"), **fields_of(entry)}
    raise CredentialMissing(
        f"no credential '{name}': add it to the playbook's `keychain`, with `provider: environment`"
        " or `provider: file` and the `key` where its value is"
    )


def fields_of(entry: KeychainEntry) -> dict[str, Any]:
    """What the entry's provider knows under its key; fields in the playbook itself come on top."""
    key = entry.key or entry.name
    if entry.provider == "environment":
        return {**parsed(entry, os.environ.get(key), f"environment variable {key}"), **entry.fields}
    if entry.provider == "file":
        path = Path(key)
        text = path.read_text() if path.is_file() else None
        return {**parsed(entry, text, f"file {key}"), **entry.fields}
    if entry.fields:
        return entry.fields
    raise CredentialMissing(
        f"credential '{entry.name}': provider '{entry.provider}' has no such key"
    )


def parsed(entry: KeychainEntry, text: str | None, where: str) -> dict[str, Any]:
    """A secret with several fields is JSON; any other text is the value itself."""
    if text is None:
        raise CredentialMissing(f"credential '{entry.name}': there is no {where}")
    try:
        fields = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {"value": text}
    return fields if isinstance(fields, dict) else {"value": fields}
