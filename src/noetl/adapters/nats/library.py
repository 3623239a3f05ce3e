"""The library that speaks NATS, or what to do where it is not installed."""

from asyncio import CancelledError, current_task

from noetl.errors import SettingRefused
from noetl.extras import needs

try:
    from nats import errors
    from nats.aio.client import Client
    from nats.aio.client import __version__ as release
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext, api
    from nats.js import errors as stream_errors
except ImportError:
    raise SettingRefused(needs("NATS (queue, or results=nats)", "nats")) from None

__all__ = [
    "FAULTS",
    "WORDS",
    "Client",
    "JetStreamContext",
    "Msg",
    "api",
    "errors",
    "leave_if_cancelled",
    "reason_of",
    "release",
    "stream_errors",
]

FAULTS = (errors.Error, OSError, TimeoutError)
"""All that goes wrong between here and the server."""

WORDS: tuple[tuple[type[BaseException], str], ...] = (
    (CancelledError, "the connection was closed"),
    (stream_errors.NoStreamResponseError, "it keeps no stream for wake-ups"),
    (
        stream_errors.ServiceUnavailableError,
        "JetStream does not answer; start nats-server with it (-js)",
    ),
    (stream_errors.APIError, "JetStream refuses: {fault.description}"),
    (errors.AuthorizationError, "it refuses user, password or token"),
    (errors.NoServersError, "nothing listens there"),
    (errors.UnexpectedEOF, "it ended the connection"),
    (errors.TimeoutError, "it does not answer in time"),
)
"""What the library's exceptions mean, from special to general; others speak for themselves."""


def reason_of(fault: BaseException) -> str:
    """One line for a person."""
    for kind, words in WORDS:
        if isinstance(fault, kind):
            return words.format(fault=fault)
    return " ".join(str(fault).split()) or type(fault).__name__


def leave_if_cancelled() -> None:
    """Python's `wait_for` before 3.12 may hand out an answer and lose the order to stop."""
    task = current_task()
    if task is not None and task.cancelling():
        raise CancelledError
