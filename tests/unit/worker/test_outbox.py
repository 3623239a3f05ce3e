"""What a worker has to say goes out in the order in which it happened (EVT-3)."""

import msgspec
import pytest
from tests.support.asynchronous import pytest_pyfunc_call  # noqa: F401

from noetl.ports.commit import Commit
from noetl.ports.link import Hold, Sent
from noetl.worker.outbox import Outbox, Pending


def pending(number: int) -> Pending:
    sent = Sent(hold=Hold("x1", "4.0", 0, 1), after=number, events=msgspec.Raw(b"[]"))
    return Pending(number=number, sent=sent, commit=Commit())


@pytest.mark.rule("EVT-3")
async def test_what_failed_goes_first_again_and_in_order() -> None:
    """Calls are under way side by side: they fail in any order."""
    outbox = Outbox("s1")
    outbox.reports.extend([pending(5), pending(6)])
    outbox.failed = [pending(3), pending(1), pending(4)]
    outbox.put_back()
    assert [one.number for one in outbox.take_reports()] == [1, 3, 4, 5, 6]
    assert not outbox.blocked
