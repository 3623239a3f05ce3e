"""How a running execution is shown: what every way of showing must offer."""

from collections.abc import Sequence
from typing import Protocol

from noetl.messages.events import Event
from noetl.ports.event_log import PrintedLine
from noetl.server.live import Live


class Show(Protocol):
    """
    Told of every decision, at once and in order; it must be quick, or it slows the run.

    `end` is called once, whatever happens, before the last line is written.
    """

    def begin(self, live: Live) -> None: ...

    def take(self, live: Live, events: Sequence[Event]) -> None: ...

    def hear(self, line: PrintedLine) -> None: ...

    def end(self) -> None: ...
