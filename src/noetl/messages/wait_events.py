"""The events of waits and signals (WAIT), part of `events`."""

from typing import Any, Literal

from noetl.messages.event import Event, TaskEvent


class WaitStarted(TaskEvent, frozen=True, kw_only=True, tag="wait.started"):
    """A task waits for a time, a signal or a person; nobody holds it meanwhile (WAIT-2)."""

    awaits: list[dict[str, Any]]
    """What can end it, one entry each: `by`, `label`, and what is awaited."""
    timeout: float | None = None
    """Seconds after which it ends with an error."""
    due: int | None = None
    """When `timeout` is over, in ms since 1970 by the server's clock (WAIT-3)."""
    attempt: int = 1
    """Counts from 1 within the task run."""
    lent: str | None = None
    """The task of the workbook that waits, where it is one (TOOL-2)."""


class WaitDone(TaskEvent, frozen=True, kw_only=True, tag="wait.done"):
    """What a task waited for has come, or its time is up."""

    by: Literal["timer", "signal", "approval", "timeout"]
    """What ended it."""
    label: str = ""
    """Of `any`: which one came."""
    about: str = ""
    """The name of the signal, or the title of the approval."""
    result: Any = None
    """What came (WAIT-5)."""
    error: dict[str, Any] | None = None
    """Of `timeout`, or of a guard that could not be evaluated."""
    waited: int = 0
    """Milliseconds since it began, pauses included."""
    kept: int | None = None
    """Of a signal that was kept: its place among those, which it leaves."""


class WaitWithdrawn(TaskEvent, frozen=True, kw_only=True, tag="wait.withdrawn"):
    """Another one came first: these are awaited no more."""

    labels: list[str]
    """Of `any`: those that lost."""


class SignalReceived(Event, frozen=True, kw_only=True, tag="signal.received"):
    """Somebody sent a signal to the execution (WAIT-4)."""

    signal: str
    """Its name."""
    content: Any = None
    """What it carries."""
    sender: str = ""
    """Who sent it."""
    signal_id: str | None = None
    """The id that its sender gave it: the same one twice is one signal."""
    kept: bool = False
    """Nothing waits for it yet: it is kept for the next wait that wants it."""
