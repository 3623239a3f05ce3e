"""The lines of the text that its author has, where what ran was translated from it (DIA)."""

from collections.abc import Sequence
from typing import Any

import msgspec

from noetl.playbook.finding import Place
from noetl.playbook.plan import digest_of
from noetl.playbook.yaml_checks import MAX_BYTES
from noetl.ports.catalog import number_in
from noetl.ports.event_log import ExecutionRow, Playbooks
from noetl.ports.large import DRAFTS
from noetl.ports.storage import Storage
from noetl.tools.paths import inside, open_file
from noetl.tools.plugins import KnownKinds
from noetl.tools.refusal import Refusal


async def keep_former(playbooks: Playbooks, text: str, path: str, former: str) -> None:
    """Keep the text that another one was translated from, for those that explain its runs."""
    await playbooks.keep(former_key(digest_of(text)), path, former, None)


def former_key(digest: str) -> str:
    return digest_of(f"what became {digest}")


async def former_lines(
    storage: Storage, row: ExecutionRow, text: str, folder: str | None
) -> Sequence[int]:
    """By line of a text, from 1: the line of what it was translated from; nothing if it was not."""
    former = await _former_text(storage, row)
    if former is None:
        return ()

    def read(name: str) -> str | None:
        if folder is None:
            return None
        try:  # whoever translated it read what lies there; a pipe or a device is no text
            with open_file(inside(folder, name)) as file:
                return file.read(MAX_BYTES + 1).decode()
        except (OSError, ValueError, Refusal):
            return None

    from noetl.playbook.dialects.migrate import migrate  # only where something was translated

    made = await DRAFTS.read(len(former), migrate, former, KnownKinds(), read)
    return made.origins if made.text == text else ()  # a newer version may translate otherwise


async def _former_text(storage: Storage, row: ExecutionRow) -> str | None:
    kept = await storage.playbooks.text(former_key(row.digest))
    if kept is not None:
        return kept[0]
    version = number_in(row.version or "")
    entry = await storage.catalog.find(row.path, version) if version is not None else None
    if entry is None or entry.digest != row.digest:
        return None
    return await storage.catalog.original(entry.playbook_id)


def relined(value: Any, lines: Sequence[int]) -> Any:
    """A model with the places that its parts have in the former text."""
    if isinstance(value, Place):
        line = lines[min(value.line, len(lines)) - 1]
        return msgspec.structs.replace(value, line=line)
    if isinstance(value, msgspec.Struct):
        fields = {name: relined(getattr(value, name), lines) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    if isinstance(value, tuple):
        return tuple(relined(one, lines) for one in value)
    return value
