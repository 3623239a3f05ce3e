"""Who holds the places under a limit, and what can be done about it? (LIMIT-2)"""

from typing import TYPE_CHECKING

from noetl.playbook.model import Limit
from noetl.ports.event_log import ExecutionRow

if TYPE_CHECKING:
    from noetl.ports.storage import Storage

HOLDERS = 5
"""Of those that have a place under a limit, how many are named."""


async def holders_of(storage: "Storage", group: str, key: str, limit: Limit | None) -> list[str]:
    """Who has the places that are missing: those of the key, or of all where `total` is reached."""
    names = await storage.limits.holding(group, key, HOLDERS + 1)
    if limit is None or limit.total is None:
        return names
    if limit.at_once is not None and len(names) >= min(limit.at_once, HOLDERS + 1):
        return names
    return await storage.limits.holding(group, None, HOLDERS + 1)


async def held_by(storage: "Storage", group: str, key: str, limit: Limit | None) -> str:
    """The same in words, with what to do; one that nobody runs keeps its place."""
    names = await holders_of(storage, group, key, limit)
    if not names:
        return "" if limit is None or limit.count is None else "; it begins when `per` allows it"
    told = [f"{name}{await _left(storage, name)}" for name in names[:HOLDERS]]
    said = f"; held by {listed([*told, *names[HOLDERS:]])}"
    if told != names[:HOLDERS]:
        return said  # it says already what to do
    ends, one = ("it ends", "it") if len(names) == 1 else ("one of them ends", "one")
    return f"{said}; wait until {ends}, or end {one}: `noetl cancel {names[0]}`"


def listed(names: list[str]) -> str:
    more = " and others" if len(names) > HOLDERS else ""
    return f"{', '.join(names[:HOLDERS])}{more}"


async def _left(storage: "Storage", name: str) -> str:
    row = await storage.executions.find(name)
    if row is None or not is_left(row) or await storage.owners.holder(name) is not None:
        return ""
    return f", which no process runs: `noetl resume {name}` or `noetl cancel {name}`"


def is_left(row: ExecutionRow) -> bool:
    """Whether somebody should decide for it; one that is parked needs nobody (LIMIT-2)."""
    return row.finished_at is None and row.queued_at is None
