"""How a running execution is shown: what every way of showing must offer."""

from collections.abc import Sequence
from typing import Protocol

from noetl.control.execution import Execution
from noetl.messages.events import Event
from noetl.ports.event_log import PrintedLine


class ShownExecution(Protocol):
    """The execution that is shown: one that this process runs, or one of a server."""

    @property
    def execution(self) -> Execution: ...


class Show(Protocol):
    """
    Told of every decision, at once and in order; it must be quick, or it slows the run.

    `end` is called once, whatever happens, before the last line is written.
    """

    def begin(self, active: ShownExecution) -> None: ...

    def take(self, active: ShownExecution, events: Sequence[Event]) -> None: ...

    def hear(self, line: PrintedLine) -> None: ...

    def end(self) -> None: ...
