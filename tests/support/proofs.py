"""Every log of a home proves itself (EVT-5)."""

from noetl.ports.event_log import EventLog, Executions, Playbooks
from noetl.ports.result_store import ResultStore
from noetl.server.verify import Verified, verify

PAGE = 200
MANY = 1_000
"""A home with more was filled by one test with one playbook: of the rest, one of each page."""


async def verify_all(
    log: EventLog, playbooks: Playbooks, results: ResultStore, executions: Executions
) -> dict[str, Verified]:
    """Every execution of a home, up to very many."""
    found: dict[str, Verified] = {}
    before = None
    while page := await executions.page(before=before, limit=PAGE):
        for row in page if len(found) < MANY else page[:1]:
            found[row.execution_id] = await verify(log, playbooks, results, row.execution_id)
        before = page[-1].execution_id
    return found
