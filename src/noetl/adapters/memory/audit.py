"""Who ordered what, in memory."""

from collections.abc import Sequence

from noetl.adapters.memory.tables import MemoryTables
from noetl.ports.audit import AuditFilter, AuditRow


class MemoryAudit:
    """Audit; see its contract."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    async def note(self, row: AuditRow) -> None:
        self._tables.orders.append(row)

    async def page(self, wanted: AuditFilter, *, limit: int = 50) -> Sequence[AuditRow]:
        found = [row for row in reversed(self._tables.orders) if is_wanted(row, wanted)]
        return sorted(found, key=lambda row: row.at, reverse=True)[:limit]


def is_wanted(row: AuditRow, wanted: AuditFilter) -> bool:
    return (
        (wanted.since is None or row.at >= wanted.since)
        and (wanted.until is None or row.at < wanted.until)
        and wanted.who in (None, row.who)
        and wanted.what in (None, row.what)
    )
