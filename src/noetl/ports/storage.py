"""Everything that one home keeps, whatever it is made of."""

from pathlib import Path
from typing import Protocol

from noetl.ports.audit import Audit
from noetl.ports.cache import CacheEntries
from noetl.ports.catalog import Catalog
from noetl.ports.credentials import Credentials
from noetl.ports.event_log import EventLog, Executions, Inbox, Owners, Playbooks, Printed
from noetl.ports.keys import Keys
from noetl.ports.limits import LimitClaims
from noetl.ports.pools import Pools
from noetl.ports.removals import Removals
from noetl.ports.roster import Roster
from noetl.ports.tokens import Tokens
from noetl.ports.triggers import Triggers


class Storage(Protocol):
    """One process's view of a home; each neighbour has its own contract."""

    @property
    def log(self) -> EventLog: ...
    @property
    def executions(self) -> Executions: ...
    @property
    def playbooks(self) -> Playbooks: ...
    @property
    def catalog(self) -> Catalog: ...
    @property
    def inbox(self) -> Inbox: ...
    @property
    def owners(self) -> Owners: ...
    @property
    def printed(self) -> Printed: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def tokens(self) -> Tokens: ...
    @property
    def roster(self) -> Roster: ...
    @property
    def limits(self) -> LimitClaims: ...
    @property
    def pools(self) -> Pools: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def cache(self) -> CacheEntries: ...
    @property
    def credentials(self) -> Credentials: ...
    @property
    def triggers(self) -> Triggers: ...
    @property
    def removals(self) -> Removals: ...
    @property
    def folder(self) -> Path | None:
        """Where this process keeps files beside the home; None where it has none."""

    @property
    def key(self) -> bytes | None:
        """The key of the credentials where the home brings one; else it is a setting."""

    async def close(self) -> None: ...
