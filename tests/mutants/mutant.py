"""What a planted fault is, and selections of quick tests by what they are about."""

from typing import NamedTuple

NEXT = ("tests/conformance/test_next.py",)
JOINS = ("tests/conformance/test_next_joins.py",)
ADM = ("tests/conformance/test_adm.py",)
LOOP = ("tests/conformance/test_loop.py",)
TASK = ("tests/conformance/test_task.py", "tests/conformance/test_task_retry.py")
SCOPE = ("tests/conformance/test_scope.py",)
WAIT = ("tests/conformance/test_wait.py", "tests/conformance/test_wait_runs.py")
LIMIT = ("tests/conformance/test_limit.py",)
FOUND = ("tests/model/test_found.py",)
LOSSES = ("tests/unit/control/test_losses.py", "tests/conformance/test_wrk.py")
EPOCHS = ("tests/unit/control/test_epochs.py",)
TAKE_OVER = ("tests/unit/server/test_take_over.py",)
CHANCE = ("tests/property/test_control.py",)
LOG = ("tests/contracts/test_event_log.py",)
OWNERS = ("tests/contracts/test_owners.py",)
CLAIMS = ("tests/contracts/test_limits.py", "tests/contracts/test_limit_brought.py")
DUE = ("tests/property/test_due.py", "tests/conformance/test_start.py")
REPLAY = ("tests/unit/server/test_verify.py", "tests/conformance/test_evt.py")
SECRETS = ("tests/conformance/test_key.py", "tests/unit/worker/test_secrecy.py")
SIMULATION = ("tests/simulation/test_simulation.py::test_what_failed_once_holds",)
"""Of a fault that has no other test: it takes crashes at the right moments to see it."""


class Mutant(NamedTuple):
    """One fault."""

    file: str
    """Below src/noetl."""
    before: str
    after: str
    tests: tuple[str, ...]
    why: str
    """What would go wrong."""
