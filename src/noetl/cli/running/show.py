"""How a running execution is shown: what every way of showing must offer."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from noetl.cli.output import print_line
from noetl.control.execution import Execution
from noetl.messages.events import Event


class Show(Protocol):
    """
    Told of every decision, at once and in order; it must be quick, or it slows the run.

    `end` is called once, whatever happens, before the last line is written.
    """

    def begin(self, execution: Execution) -> None: ...

    def take(self, execution: Execution, events: Sequence[Event]) -> None: ...

    def hear(self, execution_id: str, place: str, text: str) -> None: ...

    def tell(self, execution_id: str, step: str, text: str) -> None:
        """What was found out about a step beside the events: who holds the place it waits for."""

    def end(self) -> None: ...


class SteadyShow:
    """A show that cannot disturb what it shows: its first fault is told, and it ends there."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._broken = False

    def begin(self, execution: Execution) -> None:
        self._try(lambda: self._show.begin(execution))

    def take(self, execution: Execution, events: Sequence[Event]) -> None:
        self._try(lambda: self._show.take(execution, events))

    def hear(self, execution_id: str, place: str, text: str) -> None:
        self._try(lambda: self._show.hear(execution_id, place, text))

    def tell(self, execution_id: str, step: str, text: str) -> None:
        self._try(lambda: self._show.tell(execution_id, step, text))

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
                said = f"progress can no longer be shown ({fault}); the execution continues"
                with suppress(OSError):
                    print_line(said, err=True)
