"""What a fleet does while something fails: executions that must end once, and right."""

import asyncio
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.disturbed import child
from tests.support.fleet import Fleet, sailing
from tests.support.ledger import Ledger, keeping
from tests.support.postgres import Database
from tests.system.test_fleet_deaths import (
    NAMES,
    begun,
    ended,
    plain,
    prove,
    reference,
    registered,
    text_of,
)

from noetl.adapters.postgres.storage import open_storage
from noetl.messages.codec import decode_events
from noetl.server.replay import rows_of

EXECUTIONS = 400 if os.environ.get("NOETL_FAULTS") == "full" else 14
"""For each fault; the full size takes minutes."""


class Load:
    """Executions on a fleet, their ledger, and what they must come to."""

    def __init__(
        self, fleet: Fleet, ledger: Ledger, database: Database, expected: dict[str, Any]
    ) -> None:
        self.fleet = fleet
        self.ledger = ledger
        self._database = database
        self._expected = expected
        self._chance = random.Random(1)
        self.started: dict[str, str] = {}
        """Execution → the name of its playbook."""
        self._running: dict[str, str] = {}

    def register(self) -> None:
        for text in (child(), *(text_of(name) for name in NAMES)):
            self.fleet.ask(partial(registered, text), self._chance)

    def start(self, executions: int = EXECUTIONS) -> None:
        for _ in range(executions):
            number = len(self.started)
            name = NAMES[number % len(NAMES)]
            made = self.fleet.ask(partial(begun, name, number, self.ledger.url), self._chance)
            self.started[made.execution_id] = self._running[made.execution_id] = name

    def finish(self) -> None:
        """All of them end as they do where nothing fails."""
        while self._running:
            execution_id, name = self._running.popitem()
            found = plain(ended(self.fleet, execution_id, self._chance))
            assert found == self._expected[name], f"{name} {execution_id}: {self.fleet.told()}"

    def prove(self) -> None:
        """The common oracle, read from the database alone."""
        asyncio.run(prove(self._database, set(self.started), set(self.ledger.effects)))

    def count(self, kind: type[Any]) -> int:
        """How many events of a kind all the logs have."""
        return asyncio.run(self._count(kind))

    async def _count(self, kind: type[Any]) -> int:
        home = await open_storage(self._database.url)
        try:
            found = 0
            for execution_id in self.started:
                async for row in rows_of(home.log, execution_id):
                    found += sum(isinstance(event, kind) for event in decode_events(row.events))
            return found
        finally:
            await home.close()


def undisturbed(folder: Path) -> dict[str, Any]:
    """What each playbook comes to in one process."""
    with keeping() as ledger:
        return {name: reference(name, folder / name, ledger) for name in NAMES}


@contextmanager
def loaded(
    folder: Path, database: Database, queue: str, expected: dict[str, Any]
) -> Iterator[Load]:
    """A fleet without members yet, and a ledger of its effects."""
    with keeping() as ledger, sailing(folder, database, queue) as fleet:
        yield Load(fleet, ledger, database, expected)
