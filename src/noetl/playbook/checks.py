"""Does the playbook make sense as a whole? Which checks are made, in one table."""

from collections.abc import Callable

from noetl.playbook.check_events import check_events
from noetl.playbook.check_graph import (
    check_arcs,
    check_entry,
    check_final,
    check_reach,
    check_step_names,
)
from noetl.playbook.check_joins import check_joins
from noetl.playbook.check_literals import check_names, check_secrets
from noetl.playbook.check_spelling import check_spelling
from noetl.playbook.check_tasks import check_admission, check_jumps, check_sql
from noetl.playbook.check_workbook import check_workbook_cycles, check_workbook_names
from noetl.playbook.model import Playbook
from noetl.playbook.reader import Reader

Check = Callable[[Reader, Playbook], None]

CHECKS: tuple[Check, ...] = (
    check_step_names,
    check_arcs,
    check_entry,
    check_final,
    check_joins,
    check_jumps,
    check_workbook_names,
    check_workbook_cycles,
    check_events,
    check_admission,
    check_sql,
    check_secrets,
    check_names,
    check_spelling,
    check_reach,  # the last: it speaks only where the arcs are sound
)


def check(reader: Reader, playbook: Playbook) -> None:
    """Run every check; each tells the reader what it finds."""
    for one in CHECKS:
        one(reader, playbook)
