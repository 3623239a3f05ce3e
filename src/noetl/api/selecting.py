"""Which executions a list is asked for, beyond what an index of the log can answer."""

from collections.abc import Sequence
from typing import Any

from noetl.api.paging import cursor_of
from noetl.errors import ServerRefused
from noetl.expression.failure import shortened
from noetl.messages.globs import matches
from noetl.ports.event_log import ExecutionRow, Executions
from noetl.server.labels import PlaybookLabels
from noetl.server.policies import label_of

GLOB = frozenset("*?[")
SCANNED = 2000
"""Rows that one page looks at; a page may be short of its limit for that."""
PAGE = 200


class RowFilter:
    """A glob for the path, a part of what a row says, and a label of the playbook."""

    def __init__(
        self, labels: PlaybookLabels, path: str | None, text: str | None, label: str | None
    ) -> None:
        self._labels = labels
        self._glob = path if path is not None and GLOB & set(path) else None
        self._text = text.lower() if text else None
        self._label = wanted_label(label) if label else None
        self.path = None if self._glob else path
        """What an index can answer."""

    @property
    def narrows(self) -> bool:
        """Whether rows must be looked at one by one."""
        return bool(self._glob or self._text or self._label)

    async def fits(self, row: ExecutionRow) -> bool:
        if self._glob is not None and not matches(row.path, self._glob):
            return False
        said = f"{row.path}\n{row.execution_id}\n{shortened(row.error or '')}".lower()
        if self._text is not None and self._text not in said:
            return False
        if self._label is None:
            return True
        labels = await self._labels.of(row.digest)
        return self._label.items() <= labels.items()

    async def page(
        self, executions: Executions, before: str | None, limit: int, asked: dict[str, Any]
    ) -> tuple[Sequence[ExecutionRow], str | None]:
        """Rows that fit, of the next SCANNED, and the cursor behind them."""
        found: list[ExecutionRow] = []
        for _ in range(SCANNED // PAGE):
            page = await executions.page(path=self.path, before=before, limit=PAGE, **asked)
            for row in page:
                before = row.execution_id
                if await self.fits(row):
                    found.append(row)
                    if len(found) == limit:
                        return found, cursor_of(before)
            if len(page) < PAGE:
                return found, None
        return found, cursor_of(before)


def wanted_label(text: str) -> dict[str, str]:
    try:
        return label_of(text)
    except ValueError as wrong:
        raise ServerRefused(str(wrong), code="invalid", status=422) from None
