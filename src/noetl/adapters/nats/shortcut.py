"""
Messages past the queue and the tasks of the library.

The library hands what is published to one task and what is read to another: for each message two
turns of the event loop, two switches of tasks, and a third of the processor time of a call. Here a
message is written when it is said, and heard when it is read. Whatever else there is goes the way
of the library, and nothing overtakes it: headers, pings, errors, a message that has come in part.
All messages do where the library is of another release than the one that this was tested with.
"""

import re
from collections.abc import Callable
from typing import Any

from noetl.adapters.nats.library import Client, release

TESTED = "2.16."
"""Releases of the library whose private parts are what is read here."""
FULL = 1_048_576
"""Bytes on their way from which on whoever says more waits, as the library lets them."""
BREAK = re.compile(r"\s")
HEAD = re.compile(rb"MSG ([^ \r]+) (\d+) (?:([^ \r]+) )?(\d+)\r\n")
"""Subject, subscription, where answers go, size."""
END = b"\r\n"
BETWEEN = 1
"""State of the library's parser: no message is open."""


def writer_of(client: Client) -> Any:
    """What the library writes to; None where it is none of a plain connection."""
    return getattr(client._transport, "_io_writer", None)


def is_tested() -> bool:
    return release.startswith(TESTED)


def write_now(client: Client, subject: str, payload: bytes, reply: str) -> bool:
    """Whether it is on its way; if not, the library takes it, or says why nobody does."""
    writer = writer_of(client)
    if (
        writer is None
        or not is_tested()
        or client._pending  # what was said before goes first
        or writer.transport.get_write_buffer_size() > FULL
        or not client.is_connected
        or len(payload) > client._max_payload
        or not subject
        or BREAK.search(subject)
        or BREAK.search(reply)
    ):
        return False
    head = f"PUB {subject} {reply} {len(payload)}\r\n".encode()
    writer.write(b"".join((head, payload, END)))
    return True


def hear_now(client: Client, ear: type[Any]) -> None:
    """From now on whole messages for an `ear` do not wait for the task that reads."""
    reader = getattr(client._transport, "_io_reader", None)
    if reader is not None and is_tested():
        reader.feed_data = _feeding(client, reader, reader.feed_data, ear)


def _feeding(
    client: Client, reader: Any, usual: Callable[[bytes], None], ear: type[Any]
) -> Callable[[bytes], None]:
    parser = client._ps

    def feed(data: bytes) -> None:
        # What came before and is not parsed yet is heard first.
        if reader._buffer or parser.buf or parser.state != BETWEEN:
            usual(data)
            return
        start = 0
        while (head := HEAD.match(data, start)) is not None:
            subject, number, reply, size = head.groups(b"")
            begin = head.end()
            end = begin + int(size)
            told = client._subs.get(int(number))
            heard: Any = getattr(told, "_future", None)
            if type(heard) is not ear or len(data) < end + len(END):
                break
            payload = data[begin:end]
            heard.set_result(client._build_message(int(number), subject, reply, payload, None))
            start = end + len(END)
        if start < len(data):
            usual(data[start:] if start else data)

    return feed
