"""What a worker has to say to one server, in order, and what is under way to it."""

import asyncio
from collections import deque
from typing import NamedTuple

import msgspec

from noetl.ports.commit import Commit
from noetl.ports.link import Call, Hold, Sent

WINDOW = 4
"""Calls to one server that may be under way at once."""

LARGEST = 700_000
"""Bytes of reports in one call, about; one report may be larger."""

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
"""Seconds between two tries while a server is away."""


class Pending(msgspec.Struct, eq=False):
    """A report that waits for its verdict."""

    number: int
    sent: Sent
    commit: Commit
    gap_since: float = 0.0
    """When the server missed a report before this one, by the monotonic clock."""


class Bundle(NamedTuple):
    """One call, and the reports whose verdicts its answer brings."""

    call: Call
    pending: list[Pending]


class Outbox:
    """What is for one server. After a failure nothing new is sent before the old is settled."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.reports: deque[Pending] = deque()
        self.failed: list[Pending] = []
        self.returns: list[Hold] = []
        self.under_way = 0
        self.beats = 0
        """Renewals under way."""
        self.pause = FIRST_PAUSE
        self.recovering = False
        self.sending = False
        self.idle = asyncio.Event()
        self.idle.set()

    @property
    def blocked(self) -> bool:
        return self.under_way >= WINDOW or bool(self.failed) or self.recovering

    @property
    def has_news(self) -> bool:
        return bool(self.reports or self.returns)

    def take_reports(self) -> list[Pending]:
        """As many as a call carries, in order."""
        taken: list[Pending] = []
        size = 0
        while self.reports and (not taken or size < LARGEST):
            pending = self.reports.popleft()
            size += len(pending.sent.events)
            taken.append(pending)
        return taken

    def put_back(self) -> None:
        """What failed goes first again, in the order in which it happened."""
        failed, self.failed = sorted(self.failed, key=lambda pending: pending.number), []
        self.reports.extendleft(reversed(failed))

    def take_out(self, execution_ids: set[str]) -> list[Pending]:
        """The reports of executions that other servers decide for now."""
        leaving = [one for one in self.reports if one.sent.hold.execution_id in execution_ids]
        for pending in leaving:
            self.reports.remove(pending)
        return leaving
