"""Who ordered what, on any SQL database; the statements are each one's own."""

from collections.abc import Sequence

from msgspec.structs import astuple

from noetl.adapters.sql import Statements, struct_of
from noetl.ports.audit import AuditFilter, AuditRow


class SqlAudit:
    """Audit; see its contract."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def note(self, row: AuditRow) -> None:
        await self._statements.write("note_order", *astuple(row))

    async def page(self, wanted: AuditFilter, *, limit: int = 50) -> Sequence[AuditRow]:
        rows = await self._statements.rows("page_orders", *astuple(wanted), limit)
        return [struct_of(AuditRow, row) for row in rows]
