"""What the processes of one home in memory share."""

import asyncio
import secrets
from itertools import count

import msgspec

from noetl.adapters.memory.credentials import MemoryCredentials
from noetl.errors import ExecutionNotFound
from noetl.ports.audit import AuditRow
from noetl.ports.cache import CacheEntry, CacheIdentity
from noetl.ports.catalog import CatalogEntry
from noetl.ports.event_log import ExecutionRow, LogRow, Note, PrintedLine, Snapshot
from noetl.ports.limits import LimitClaim
from noetl.ports.pools import PoolRow
from noetl.ports.roster import ServerRow, WorkerRow
from noetl.ports.tokens import TokenRow
from noetl.ports.triggers import TriggerRow


class ClaimRow(msgspec.Struct, kw_only=True):
    """A claim on a limit, as it is kept."""

    claim: LimitClaim
    process: str
    turn: int
    asked_at: int
    granted_at: int | None = None


class MemoryTables:
    """What the processes of one home share."""

    def __init__(self) -> None:
        self.rows: dict[str, ExecutionRow] = {}
        self.decisions: dict[str, list[LogRow]] = {}
        self.snapshots: dict[str, Snapshot] = {}
        self.playbooks: dict[str, tuple[str, str | None]] = {}
        self.catalog: dict[str, list[CatalogEntry]] = {}
        self.unlisted: set[tuple[str, int]] = set()
        """Versions that were removed from the catalog."""
        self.keys: dict[str, tuple[str, str, int]] = {}
        self.tokens: dict[str, TokenRow] = {}
        self.workers: dict[str, WorkerRow] = {}
        self.servers: dict[str, ServerRow] = {}
        self.triggers: dict[str, TriggerRow] = {}
        self.taken: dict[str, int] = {}
        """Until when a trigger is somebody's."""
        self.notes: dict[int, Note] = {}
        self.kept: dict[CacheIdentity, CacheEntry] = {}
        self.pools: dict[str, PoolRow] = {}
        self.orders: list[AuditRow] = []
        self.body_uses: dict[tuple[str, str], int] = {}
        """Who refers to bodies of which execution, and since when."""
        self.claims: dict[tuple[str, str], ClaimRow] = {}
        """Claims on limits, by execution and holder."""
        self.begun: list[tuple[str, str, int]] = []
        """What began under a limit on starts: group, key and when."""
        self.left = asyncio.Event()
        """Replaced with every note that is left: whoever waits holds the one before."""
        self.numbers = count(1)
        self.terms = count(1)
        self.alive: set[str] = set()
        self.printed: list[PrintedLine] = []
        self.removed: dict[str, tuple[int, bool]] = {}
        """Removed executions: when, and whether something is left of them."""
        self.credentials = MemoryCredentials()
        self.key = secrets.token_bytes(32)


def find(tables: MemoryTables, execution_id: str) -> ExecutionRow:
    """The row of an execution that must exist."""
    if execution_id not in tables.rows:
        raise ExecutionNotFound(f"no execution {execution_id} in memory; see `noetl list`")
    return tables.rows[execution_id]


def unpark(tables: MemoryTables, execution_id: str) -> None:
    """Whoever looks for orphans finds it from now on (see `LimitClaims.park`)."""
    row = tables.rows.get(execution_id)
    if row is not None and row.queued_at is not None:
        tables.rows[execution_id] = msgspec.structs.replace(row, queued_at=None)
