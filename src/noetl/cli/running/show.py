"""How a running execution is shown: what every way of showing must offer."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

import click

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


class SteadyShow:
    """A show that cannot disturb what it shows: its first fault is told, and it ends there."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._broken = False

    def begin(self, active: ShownExecution) -> None:
        self._try(lambda: self._show.begin(active))

    def take(self, active: ShownExecution, events: Sequence[Event]) -> None:
        self._try(lambda: self._show.take(active, events))

    def hear(self, line: PrintedLine) -> None:
        self._try(lambda: self._show.hear(line))

    def end(self) -> None:
        self._try(self._show.end)

    def _try(self, act: Callable[[], None]) -> None:
        if self._broken:
            return
        try:
            act()
        except Exception as fault:
            self._broken = True
            if not isinstance(fault, BrokenPipeError):  # whoever read it has gone on purpose
                said = f"progress can no longer be shown ({fault}); the execution goes on"
                with suppress(OSError):
                    click.echo(said, err=True)
